"""`foresail policy get` and `describe`: where policies apply, and how much of their quotas is used."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foresail.api.crds import DEFINITIONS
from foresail.api.instants import stamp
from foresail.api.marks import NAMESPACE_UID
from foresail.api.policy import SelfServicePolicy
from foresail.cli.errors import UNREACHABLE
from foresail.cli.main import main
from foresail.cli.policy.get import SHORT_NAMES, Use, VeleroObject, shares_of, use_by_namespace
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from foresail.selfservice.policy.quotas import over_quota
from foresail.tenancy.policies import policy_row
from tests.unit.cli.canned import Canned, canned

Capture = pytest.CaptureFixture[str]
META = {"resourceVersion": "7"}
AT = datetime(2026, 11, 16, 12, tzinfo=UTC)


def policy(name: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    selector = {"matchLabels": labels} if labels else {}
    metadata = {"name": name, "creationTimestamp": "2026-11-01T00:00:00Z"}
    return {"metadata": metadata, "spec": {"namespaceSelector": selector, **spec}}


def namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}", "labels": labels}}


def made(family: Family, namespace: str, name: str, phase: str) -> dict[str, Any]:
    annotations = {family.origin_namespace: namespace, NAMESPACE_UID: f"uid-{namespace}"}
    return {"metadata": {"name": name, "annotations": annotations}, "status": {"phase": phase}}


WEB = policy("web", {"team": "web"}, priority=5, quotas={"stored": 3, "active": 1, "restores": {"stored": 9}})
EVERYONE = policy("everyone", schedules={"schedulePolicy": "nights"})
NIGHTS: dict[str, Any] = {
    "metadata": {"name": "nights", "creationTimestamp": "2026-11-01T00:00:00Z", "labels": {"team": "ops"}},
    "spec": {
        "selector": {"matchLabels": {"tier": "db"}, "names": ["daily", "hourly"]},
        "priority": 3,
        "timeZone": "Europe/Berlin",
        "spread": {"within": "2h"},
        "windows": {"allowed": [{"schedule": "0 22 * * *", "duration": "6h"}]},
        "retention": {"keepLast": 7, "monthly": 12, "keepWithin": "720h", "keepGood": 2},
        "concurrency": {"max": 4, "group": "nightly"},
        "objective": {"rpo": "25h"},
    },
}
PLAIN: dict[str, Any] = {"metadata": {"name": "plain"}, "spec": {"selector": {}}}
BACKUP_OBJECTS = [made(BACKUPS, "shop", "b1", "Completed"), made(BACKUPS, "shop", "b2", "InProgress")]
ACCEPTED = {
    "metadata": {"name": "new", "namespace": "shop"},
    "status": {"phase": "Created", "veleroBackup": {"nacuuid": "b3"}},
}


def schedule(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "velero", "labels": labels}}


SCHEDULES = [schedule("daily", tier="db"), schedule("hourly"), schedule("weekly", tier="db")]


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Canned]:
    """Return a cluster with policies of both kinds."""
    group, velero = "/apis/foresail.dev/v1alpha1", "/apis/velero.io/v1/namespaces/velero"
    web = policy("nights", {"team": "web"})
    lists = {
        f"{group}/selfservicepolicies": [EVERYONE, web],
        f"{group}/schedulepolicies": [PLAIN, NIGHTS],
        "/api/v1/namespaces": [namespace("lab")],
        f"{velero}/schedules": SCHEDULES,
    }
    with canned(tmp_path, {path: {"metadata": META, "items": items} for path, items in lists.items()}) as found:
        yield found


def answers() -> dict[str, Any]:
    """Return a cluster with two policies, and backups and a restore of one namespace."""
    policies, velero = "/apis/foresail.dev/v1alpha1/selfservicepolicies", "/apis/velero.io/v1/namespaces/velero"
    tenants = "/apis/oadp.openshift.io/v1alpha1"
    spaces = [namespace("shop", team="web"), namespace("lab"), namespace("kube-system"), namespace("velero")]
    lists = {
        policies: [EVERYONE, WEB],
        "/api/v1/namespaces": spaces,
        "/apis/apps/v1/deployments": [],
        f"{velero}/backups": BACKUP_OBJECTS,
        f"{velero}/restores": [made(RESTORES, "shop", "r1", "Completed")],
        f"{tenants}/nonadminbackups": [ACCEPTED],
        f"{tenants}/nonadminrestores": [],
    }
    found: dict[str, Any] = {path: {"metadata": META, "items": items} for path, items in lists.items()}
    return found | {f"{policies}/{each['metadata']['name']}": each for each in (EVERYONE, WEB)}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Canned]:
    with canned(tmp_path, answers()) as found:
        yield found


def test_the_table_has_where_each_policy_applies_and_its_quotas(server: Canned, capsys: Capture) -> None:
    assert main(["policy", "get", "--kubeconfig", str(server.kubeconfig)]) == 0
    header, web, everyone = capsys.readouterr().out.splitlines()
    assert header.split() == ["NAME", "PRIORITY", "NAMESPACES", "STORED", "ACTIVE", "RESTORES", "AGE"]
    assert web.split()[:6] == ["web", "5", "1", "3", "1", "9"]
    assert everyone.split()[:6] == ["everyone", "0", "1", "-", "-", "-"]
    assert main(["policy", "get", "-o", "wide", "--kubeconfig", str(server.kubeconfig)]) == 0
    _, web, everyone = capsys.readouterr().out.splitlines()
    assert web.endswith("team=web")
    assert everyone.endswith("every namespace")
    assert server.writes == []


def test_describe_has_the_use_of_each_namespace_against_its_quota(server: Canned, capsys: Capture) -> None:
    assert main(["policy", "describe", "web", "--kubeconfig", str(server.kubeconfig)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].split() == ["NAMESPACE", "BACKUPS", "ACTIVE", "RESTORES", "ACTIVE", "RESTORES"]
    assert lines[-1].split("   ")[:1] == ["  shop"]
    assert lines[-1].split() == [*["shop", "3", "of", "3", "2", "of", "1", "1", "of", "9", "0"]]
    assert "Priority:  5" in lines


def test_programs_get_the_objects_in_the_order_asked(server: Canned, capsys: Capture) -> None:
    words = ["policy", "get", "web", "everyone", "-o", "json", "--kubeconfig", str(server.kubeconfig)]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["metadata"]["name"] for each in found["items"]] == ["web", "everyone"]
    assert main(["policy", "get", "gone", "--kubeconfig", str(server.kubeconfig)]) == 1
    said = capsys.readouterr().err
    assert said == "error: policy gone does not exist\nhint: list what exists: foresail policy get\n"


def run(cluster: Canned, *words: str) -> int:
    return main(["policy", *words, "--kubeconfig", str(cluster.kubeconfig)])


def test_policies_of_both_kinds_have_tables_with_their_kind_in_the_name(both: Canned, capsys: Capture) -> None:
    assert run(both, "get") == 0
    tenants, schedules = capsys.readouterr().out.split("\n\n")
    assert [line.split()[0] for line in tenants.splitlines()] == [
        "NAME",
        "selfservicepolicy/everyone",
        "selfservicepolicy/nights",
    ]
    header, nights, plain = schedules.splitlines()
    assert header.split() == ["NAME", "PRIORITY", "SCHEDULES", "ZONE", "RETENTION", "RPO", "AGE"]
    assert nights.split()[:4] == ["schedulepolicy/nights", "3", "1", "Europe/Berlin"]
    assert "keepLast 7, monthly 12, keepWithin 720h, keepGood 2   25h" in nights
    assert plain.split() == ["schedulepolicy/plain", "0", "2", "-", "-", "-", "n/a"]
    assert both.writes == []


def test_wide_table_has_the_rest_of_a_schedule_policy(both: Canned, capsys: Capture) -> None:
    assert run(both, "get", "schedulepolicy/nights", "schedulepolicy/plain", "-o", "wide") == 0
    header, nights, plain = capsys.readouterr().out.splitlines()
    assert header.split()[7:] == ["SPREAD", "WINDOWS", "DEADLINE", "MAX", "RETRIES", "SELECTOR"]
    assert nights.startswith("nights ")
    assert nights.endswith("2h       1         -          4     -         name in (daily,hourly),tier=db")
    assert plain.endswith("every Schedule")


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("nights", ["SelfServicePolicy", "SchedulePolicy"]),
        ("schedulepolicy/nights", ["SchedulePolicy"]),
        ("schedulepolicies.foresail.dev/nights", ["SchedulePolicy"]),
        ("sp/nights", ["SchedulePolicy"]),
        ("SelfServicePolicy/nights", ["SelfServicePolicy"]),
        ("plain", ["SchedulePolicy"]),
    ],
)
def test_name_means_both_kinds_unless_its_kind_is_given(
    both: Canned, capsys: Capture, name: str, kinds: list[str]
) -> None:
    assert run(both, "get", name, "-o", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["kind"] for each in found.get("items", [found])] == kinds


def test_labels_select_policies_of_both_kinds(both: Canned, capsys: Capture) -> None:
    assert run(both, "get", "-l", "team=ops", "-o", "name") == 0
    assert [query.get("labelSelector") for query in both.queries][-2:] == [["team=ops"], ["team=ops"]]
    assert len(capsys.readouterr().out.split()) == 4  # the canned server answers every selector with all


def test_short_names_are_those_that_kubectl_knows() -> None:
    known = {each.kind.name: each.short_name for each in DEFINITIONS}
    assert {kind: known[kind] for kind in SHORT_NAMES} == SHORT_NAMES


def test_missing_policy_is_named_with_its_kind(both: Canned, capsys: Capture) -> None:
    assert run(both, "describe", "ssp/plain") == 1
    assert "error: policy ssp/plain does not exist" in capsys.readouterr().err


def test_describe_shows_a_schedule_policy_with_its_schedules_and_tenants(both: Canned, capsys: Capture) -> None:
    assert run(both, "describe", "sp/nights") == 0
    found = capsys.readouterr().out
    assert "Kind:                 SchedulePolicy" in found
    assert "SelfServicePolicies:  everyone" in found
    assert "  retention:\n    keepLast: 7" in found
    assert found.endswith("Schedules:\n  daily\n")


def test_policy_that_cannot_be_read_or_used_hides_no_other(tmp_path: Path, capsys: Capture) -> None:
    odd = {"metadata": {"name": "odd"}, "spec": {"selector": {}, "priority": "high"}}
    window = {"schedule": "at night", "duration": "6h"}
    useless = {"metadata": {"name": "useless"}, "spec": {"selector": {}, "windows": {"allowed": [window]}}}
    items = {"metadata": META, "items": [odd, useless, NIGHTS]}
    with canned(tmp_path, {"/apis/foresail.dev/v1alpha1/schedulepolicies": items}) as cluster:
        assert run(cluster, "get") == 0
    said = capsys.readouterr()
    assert [line.split()[:3] for line in said.out.splitlines()[1:]] == [
        ["nights", "3", "n/a"],
        ["odd", "n/a", "n/a"],
        ["useless", "0", "n/a"],
    ]
    assert "SchedulePolicy odd cannot be read: Expected `int`" in said.err
    assert "SchedulePolicy useless cannot be used: spec.windows.allowed" in said.err
    assert "to which Schedules they apply is unknown: the cluster does not serve schedules.velero.io" in said.err


def test_what_velero_does_not_have_yet_counts_once() -> None:
    accepted = {"metadata": ACCEPTED["metadata"], "status": {"veleroBackup": {"nacuuid": "b2", "name": "b2"}}}
    assert _use(BACKUP_OBJECTS, accepted) == Use(2, 1)
    assert _use(BACKUP_OBJECTS, ACCEPTED) == Use(3, 2)
    assert _use([]) == Use()


def test_backups_of_an_earlier_namespace_of_the_same_name_do_not_count() -> None:
    """The operator counts by the UID of the namespace."""
    earlier = made(BACKUPS, "shop", "b0", "Completed")
    earlier["metadata"]["annotations"][NAMESPACE_UID] = "uid-before"
    assert _use([earlier, *BACKUP_OBJECTS]) == Use(2, 1)


@pytest.mark.parametrize(
    ("quota", "expired", "used"), [(3, 0, 3), (3, 1, 2), (3, 2, 1), (2, 2, 1), (4, 2, 3), (None, 2, 3), (0, 2, 3)]
)
def test_expired_backups_count_as_for_the_operator(quota: int | None, expired: int, used: int) -> None:
    """Whether the next backup fits is what the numbers say, and what the operator decides."""
    passed: dict[str, Any] = {"phase": "Completed", "expiration": "2026-11-16T11:00:00Z"}
    later = {"phase": "Completed", "expiration": "2026-11-16T13:00:00Z"}
    objects = [
        {**made(BACKUPS, "shop", f"b{number}", ""), "status": passed if number < expired else later}
        for number in range(3)
    ]
    use = _use(objects)
    row = policy_row(msgspec.convert(policy("web", quotas={"stored": quota}), SelfServicePolicy))
    refused = over_quota(row, use.stored, use.active, use.expired)
    assert shares_of(row.spec.quotas, use, None)["stored"] == (used, quota)
    assert (refused is None) is (quota is None or used < quota)


def test_backup_that_runs_past_its_expiration_counts() -> None:
    running = {**made(BACKUPS, "shop", "b1", ""), "status": {"phase": "InProgress", "expiration": stamp(AT)}}
    assert _use([running]) == Use(1, 1)


def test_use_that_cannot_be_read_is_unknown_and_not_zero(tmp_path: Path, capsys: Capture) -> None:
    path = "/apis/velero.io/v1/namespaces/velero/backups"
    with canned(tmp_path, {name: each for name, each in answers().items() if name != path}) as server:
        assert run(server, "describe", "web") == 0
        said = capsys.readouterr()
        assert run(server, "usage", "-A", "-o", "json") == 0
    assert " ".join(said.out.splitlines()[-1].split()) == "shop unknown of 3 unknown of 1 1 of 9 0"
    first = json.loads(capsys.readouterr().out)[0]
    assert (first["namespace"], first["quotas"]["stored"]) == ("shop", {"used": None, "limit": 3})
    assert "the use of backups is unknown" in said.err


def test_api_server_that_stops_to_answer_ends_the_command(tmp_path: Path, capsys: Capture) -> None:
    def hang_up(path: str, _: object) -> None:
        raise ConnectionAbortedError(path)

    with canned(tmp_path, {**answers(), "/apis/velero.io/v1/namespaces/velero/backups": hang_up}) as server:
        assert run(server, "describe", "web") == UNREACHABLE
    assert capsys.readouterr().out == ""


def _use(objects: list[dict[str, Any]], *requests: dict[str, Any]) -> Use:
    return use_by_namespace(BACKUPS, map(_object, objects), requests, {"shop": "uid-shop"}, AT)["shop"]


def _object(content: dict[str, Any]) -> VeleroObject:
    return msgspec.convert(content, VeleroObject)
