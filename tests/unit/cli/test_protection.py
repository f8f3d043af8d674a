"""`foresail protection`: what is shown, what is chosen, and what a class would do."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from foresail.api.marks import PROTECTION_LEASE
from foresail.api.metadata import Metadata
from foresail.api.protection import NotCovered, Protection, ProtectionStatus
from foresail.cli.doctor.installation import protection as doctor_says
from foresail.cli.main import main
from foresail.cli.protection.get import described, is_wanted, protection_table
from foresail.cli.protection.preview import Past, Snapshot, groups_of
from foresail.plan import Key
from foresail.protection.rows import ScheduleRow
from tests.unit.cli.canned import canned
from tests.unit.cli.test_doctor import APART, HEALTHY, OPERATOR
from tests.unit.protection import rows

NOW = datetime(2026, 11, 19, 7, tzinfo=UTC)
PROTECTED = {"type": "Protected", "status": "True", "reason": "Protected", "message": "class gold has good backups"}
WRONG = {"type": "Protected", "status": "False", "reason": "UnknownClass", "message": "no ProtectionClass is named x"}
SHOP: dict[str, Any] = {
    "metadata": {"name": "protection", "namespace": "shop"},
    "status": {
        "class": "gold",
        "schedules": ["gold-1"],
        "nextRun": "2026-11-20T01:00:00Z",
        "newestGood": {"backup": "gold-1-a", "started": "2026-11-19T01:00:00Z"},
        "points": [{"backup": "gold-1-a", "started": "2026-11-19T01:00:00Z", "good": False}],
        "conditions": [PROTECTED],
    },
}
BLOG: dict[str, Any] = {
    "metadata": {"name": "protection", "namespace": "blog"},
    "status": {"conditions": [WRONG], "notCovered": [{"reason": "UnknownClass", "message": "no class x"}]},
}


def test_the_table_has_a_row_for_each_namespace() -> None:
    header, row, wrong = protection_table([SHOP, BLOG], NOW, wide=False, width=None).splitlines()
    assert header.split() == ["NAMESPACE", "CLASS", "PROTECTED", "REASON", "NEWEST", "GOOD", "NEXT", "RUN"]
    assert row.split()[:5] == ["shop", "gold", "True", "Protected", "6h"]
    assert wrong.split() == ["blog", "-", "False", "UnknownClass", "-", "-"]


def test_gaps_and_a_class_are_selected() -> None:
    assert [is_wanted(each, gaps=True, of_class=None) for each in (SHOP, BLOG)] == [False, True]
    assert [is_wanted(each, gaps=False, of_class="gold") for each in (SHOP, BLOG)] == [True, False]


def test_a_description_has_the_points_in_time_and_the_gaps() -> None:
    text = "\n".join([*described(SHOP, NOW), *described(BLOG, NOW)])
    assert "gold-1-a (not good)" in text
    assert "Gap:\tUnknownClass: no class x" in text


NAMESPACES = "/api/v1/namespaces/shop"
GOLD = "/apis/foresail.dev/v1alpha1/protectionclasses/gold"


def run(folder: Path, answers: dict[str, Any], *words: str) -> tuple[int, dict[str, Any]]:
    with canned(folder, answers) as server:
        code = main(["protection", *words, "--kubeconfig", str(server.kubeconfig)])
        return code, server.bodies


def test_a_namespace_gets_a_class_that_exists_and_loses_its_exemption(tmp_path: Path) -> None:
    code, bodies = run(tmp_path, {NAMESPACES: {"metadata": {}}, GOLD: {"metadata": {}}}, "set", "gold", "-n", "shop")
    assert code == 0
    metadata = bodies[f"PATCH {NAMESPACES}"]["metadata"]
    assert metadata["labels"] == {"foresail.dev/protection": "gold"}
    assert set(metadata["annotations"].values()) == {None}


def test_a_class_that_does_not_exist_is_not_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, bodies = run(tmp_path, {NAMESPACES: {"metadata": {}}}, "set", "gold", "-n", "shop")
    assert (code, bodies) == (1, {})
    assert "ProtectionClass gold does not exist" in capsys.readouterr().err


def test_an_exemption_has_a_reason_and_a_date(tmp_path: Path) -> None:
    words = ("set", "none", "-n", "shop", "--reason", "test data", "--until", "2999-01-01")
    code, bodies = run(tmp_path, {NAMESPACES: {"metadata": {}}}, *words)
    assert code == 0
    assert bodies[f"PATCH {NAMESPACES}"]["metadata"]["annotations"]["foresail.dev/protection-until"] == "2999-01-01"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("none",), "needs a reason and a date"),
        (("none", "--reason", "x"), "needs a reason and a date"),
        (("none", "--reason", "x", "--until", "2001-01-01"), "not a date that is to come"),
        (("none", "--reason", "x", "--until", "soon"), "not a date that is to come"),
        (("gold", "--reason", "x"), "are for an exemption"),
    ],
)
def test_an_exemption_that_would_not_hold_is_refused(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["protection", "set", *words, "-n", "shop", "--kubeconfig=missing"]) == 2
    assert said in capsys.readouterr().err


def listed(*items: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"metadata": {}, "items": [*items]}


def namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z", "labels": labels}}


def previewed(folder: Path, capsys: pytest.CaptureFixture[str], *backups: Any, **spec: object) -> str:  # noqa: ANN401
    names = [f"team-{number}" for number in range(5)]
    schedule = {
        "metadata": {"name": "old", "namespace": "velero", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"schedule": "0 3 * * *", "template": {"includedNamespaces": ["team-0"]}},
    }
    answers = {
        "/apis/foresail.dev/v1alpha1/protectionclasses": listed(),
        "/apis/foresail.dev/v1alpha1/schedulepolicies": listed(),
        "/api/v1/namespaces": listed(
            *(namespace(each, **{"foresail.dev/protection": "gold"}) for each in names), namespace("other")
        ),
        "/apis/velero.io/v1/namespaces/velero/schedules": listed(schedule),
        "/apis/velero.io/v1/namespaces/velero/backups": listed(*backups),
        "/apis/apps/v1/namespaces/velero/deployments": listed(),
        "/apis/apps/v1/deployments": listed(),
    }
    file = folder / "class.yaml"
    body = {"schedule": "0 1 * * *", "namespacesPerBackup": 2, **spec}
    kind = {"apiVersion": "foresail.dev/v1alpha1", "kind": "ProtectionClass", "metadata": {"name": "gold"}}
    file.write_text(json.dumps({**kind, "spec": body}))
    code, bodies = run(folder, answers, "preview", "-f", str(file))
    assert bodies == {}
    return capsys.readouterr().out if code == 0 else capsys.readouterr().err


def test_a_preview_says_how_many_backups_when_and_what_it_closes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = previewed(tmp_path, capsys)
    assert "ProtectionClass gold: 5 namespaces, of which 5 by their label" in text
    assert "3 at each run, of up to 2 namespaces" in text
    assert "T01:00:00Z" in text
    assert "closes:    4 of 5 namespaces in no Schedule now: team-1, team-2, team-3, team-4" in text
    assert "unknown, for no backup of the last 7 days has completed" in text


@pytest.mark.parametrize(("ttl", "is_said"), [("24h0m0s", True), ("72h0m0s", False)])
def test_a_preview_says_that_no_backup_is_left_after_a_run_that_fails(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    ttl: str,
    is_said: bool,
) -> None:
    text = previewed(tmp_path, capsys, template={"ttl": ttl})
    assert ("lifetime:  Velero deletes each Backup after 1d, and runs are up to 1d apart" in text) is is_said


def test_a_preview_of_a_default_class_takes_those_that_say_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "6 namespaces, of which 5 by their label" in previewed(tmp_path, capsys, default=True)


def snapshot(*schedules: ScheduleRow, **asked: str) -> Snapshot:
    """Return a cluster with the classes gold, whose schedule is to be another one, and gold-eu."""
    named = {name: rows.namespace(name, of) for name, of in asked.items()}
    found = rows.classes(rows.protection_class("gold", schedule="0 2 * * *"), rows.protection_class("gold-eu"))
    return Snapshot(named, found, schedules, frozenset(), (), Past(0, None), 1)


def test_a_preview_of_a_change_keeps_the_groups_that_exist() -> None:
    seen = snapshot(rows.schedule("gold-1", "shop"), shop="gold")
    assert groups_of(seen, "gold", NOW) == {"gold-1": ("shop",)}


def test_a_preview_counts_no_groups_of_a_class_whose_name_goes_on() -> None:
    assert groups_of(snapshot(shop="gold", blog="gold-eu"), "gold", NOW) == {"gold-1": ("shop",)}


def test_the_length_of_a_run_comes_from_past_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    now = datetime.now(UTC).replace(microsecond=0)  # noqa: TID251 - what is old is told by the clock
    times = {"startTimestamp": f"{now:%Y-%m-%dT%H}:00:00Z", "completionTimestamp": f"{now:%Y-%m-%dT%H}:01:00Z"}
    backup = {
        "metadata": {"name": "old-1", "namespace": "velero"},
        "spec": {"includedNamespaces": ["a", "b"]},
        "status": {"phase": "Completed", **times},
    }
    text = previewed(tmp_path, capsys, backup)
    assert "length:    about 2m30s, with 1 backup at a time: 30s for a namespace in 1 backup" in text


def test_an_object_that_cannot_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = {"metadata": {"name": "odd", "namespace": "velero"}, "status": {"phase": 5}}
    assert "error: Backup odd cannot be read: Expected `str`" in previewed(tmp_path, capsys, broken)


def test_a_class_that_cannot_be_used_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "invalid schedule" in previewed(tmp_path, capsys, schedule="no expression")


SERVING = replace(APART, key=Key("velero", PROTECTION_LEASE), primers=False, protection=True, lease=PROTECTION_LEASE)
RECORDING = replace(OPERATOR, records_namespaces=True)


def test_the_doctor_says_what_is_not_protected() -> None:
    ok = Protection(Metadata("protection", "shop"))
    gap = Protection(Metadata("protection", "blog"), ProtectionStatus(not_covered=(NotCovered("NoClass", "it is"),)))
    seen = replace(HEALTHY, operators=(RECORDING, SERVING), protection_lease=HEALTHY.primers_lease, protections=(ok,))
    assert [each.says for each in doctor_says(seen)] == ["1 namespaces have no gap in their protection"]
    [found] = doctor_says(replace(seen, protections=(ok, gap)))
    assert found.says == "not protected as they ask: blog: it is"
    [found] = doctor_says(replace(seen, protection_lease=None))
    assert "labels of namespaces have no effect" in found.says
    found, _ = doctor_says(replace(seen, operators=(OPERATOR, SERVING)))
    assert "records namespaces" in found.says
    assert list(doctor_says(HEALTHY)) == []


MANIFESTS = """
apiVersion: foresail.dev/v1alpha1
kind: ProtectionClass
metadata: {name: gold}
spec: {schedule: 0 1 * * *}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {foresail.dev/protection: gold}}
---
apiVersion: v1
kind: Namespace
metadata: {name: blog, labels: {foresail.dev/protection: glod}}
---
apiVersion: v1
kind: Namespace
metadata: {name: new}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
"""


def manifests(folder: Path, text: str, *words: str) -> int:
    (folder / "prod").mkdir()
    (folder / "prod" / "all.yaml").write_text(text)
    return main(["coverage", "--manifests", str(folder), *words])


def test_a_pipeline_finds_the_gaps_of_manifests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert manifests(tmp_path, MANIFESTS, "--fail-on", "gaps", "-o", "json") == 1
    found = {each["namespace"]: each["gap"] for each in json.loads(capsys.readouterr().out)}
    assert found == {"blog": "UnknownClass", "new": "NoClass", "shop": ""}


def test_a_default_class_leaves_only_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = MANIFESTS.replace("0 1 * * *", "0 1 * * *, default: true")
    assert manifests(tmp_path, text) == 0
    assert "2 of 3 namespaces have no gap" in capsys.readouterr().err


def test_without_classes_in_the_folder_their_names_are_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert manifests(tmp_path, MANIFESTS.partition("---")[2], "--fail-on", "gaps", "-o", "json") == 1
    told = capsys.readouterr()
    assert [each["gap"] for each in json.loads(told.out)] == ["", "NoClass", ""]
    assert "contains no ProtectionClass" in told.err


def test_a_folder_without_namespaces_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert manifests(tmp_path, "kind: ConfigMap\n") == 1
    assert "contains no Namespace" in capsys.readouterr().err
