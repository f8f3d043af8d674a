"""`foresail plan --restore`: the administrator's way from the plan to the restore."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.main import main
from foresail.cli.restore_plan import plan as planning
from foresail.cli.restore_plan.planning import RestorePlan
from foresail.plan import Key
from foresail.proof.restore_plan.decide import Outcome, Verdict
from foresail.proof.restore_plan.items import ItemKey
from tests.unit.cli.canned import Canned, canned

BACKUPS = "/apis/velero.io/v1/namespaces/velero/backups/nightly"
RESTORES = "/apis/velero.io/v1/namespaces/velero/restores"
EXISTS = "could not restore, ConfigMap:settings already exists. Warning: the in-cluster version is different"
LISTED = {
    "v1/ConfigMap": ["shop/settings(failed)", "shop/gone(created)"],
    "v1/PersistentVolume": ["pv-1(created)"],
}
RESULTS = {"warnings": {"namespaces": {"shop": [EXISTS]}}}
DID = """\
  created                     2  PersistentVolume pv-1, ConfigMap gone
  changed back                0
  left as they are            1  ConfigMap settings
  failed                      0
  unchanged since the backup  0"""

CHANGE_IT_BACK = (
    "1 object exists and differs from the backup. To change it back: the same command with"
    " --existing-resource-policy update"
)


def answers(status: Mapping[str, Any] | None = None, refusal: Mapping[str, Any] | None = None) -> dict[str, Any]:
    def created(_: str, sent: dict[str, Any]) -> dict[str, Any]:
        return dict(refusal) if refusal else sent

    ended = {"phase": "Completed", "warnings": 1} if status is None else status
    return {
        BACKUPS: {"spec": {"includedNamespaces": ["shop"]}},
        RESTORES: created,
        f"{RESTORES}/undo": {"status": ended},
    }


@pytest.fixture(autouse=True)
def _what_velero_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"RestoreResourceList": LISTED, "RestoreResults": RESULTS}

    async def planned(*_: object) -> RestorePlan:
        return RestorePlan("nightly", (Verdict(ItemKey("pods", "shop", "a"), Outcome.REFUSED, reason="no room"),))

    async def stored(_: Cluster, __: Key, kind: str, ___: object) -> bytes:
        return json.dumps(files[kind]).encode()

    monkeypatch.setattr(planning, "planned", planned)
    monkeypatch.setattr(planning, "read_velero_file", stored)


def run(server: Canned, *words: str) -> int:
    return main(["plan", "nightly", "--kubeconfig", str(server.kubeconfig), *words])


def creations(server: Canned) -> list[bool]:
    """Return of each creation whether it was a dry run."""
    queries = zip(server.asked, server.queries, strict=True)
    return ["dryRun" in query for asked, query in queries if asked == f"POST {RESTORES}"]


def test_a_plan_names_the_option_that_does_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with canned(tmp_path, answers()) as server:
        assert run(server) == 0
    assert server.writes == []
    told = capsys.readouterr()
    assert told.out.startswith("Restore of backup nightly: 1 item\n")
    assert told.err == "hint: nothing was restored; the same command with --restore does it\n"


def test_the_planned_restore_is_written_and_the_wait_ends_in_the_words_of_a_tenants_restore(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--to", "copy", "--selector", "app=web", "--resource-modifier-configmap", "rules", "--name", "undo")
    with canned(tmp_path, answers()) as server:
        assert run(server, "--restore", "--yes", "--wait", *words) == 0
    assert creations(server) == [True, False]
    assert server.bodies[f"POST {RESTORES}"] == {
        "apiVersion": "velero.io/v1",
        "kind": "Restore",
        "metadata": {"name": "undo", "namespace": "velero"},
        "spec": {
            "backupName": "nightly",
            "namespaceMapping": {"shop": "copy"},
            "labelSelector": {"matchLabels": {"app": "web"}},
            "resourceModifier": {"kind": "configmap", "name": "rules"},
        },
    }
    told = capsys.readouterr()
    assert told.out.startswith("Restore of backup nightly: 1 item\n")
    assert told.err.splitlines() == [
        "Restore velero/undo created.",
        "Completed",
        "Restore velero/undo: Restore completed",
        *DID.splitlines(),
        f"hint: {CHANGE_IT_BACK}",
    ]


def test_definitions_of_kinds_are_not_changed_back_without_a_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The backup may be older than the last upgrade, and the kinds of the whole cluster would go back with it."""
    name = "primers.foresail.dev"
    exists = f"could not restore, CustomResourceDefinition:{name} already exists. Warning: the in-cluster version is"
    files = {
        "RestoreResourceList": {"apiextensions.k8s.io/v1/CustomResourceDefinition": [f"{name}(failed)"]},
        "RestoreResults": {"warnings": {"cluster": [f"{exists} different than the backed-up version"]}},
    }

    async def stored(_: Cluster, __: Key, kind: str, ___: object) -> bytes:
        return json.dumps(files[kind]).encode()

    monkeypatch.setattr(planning, "read_velero_file", stored)
    with canned(tmp_path, answers()) as server:
        assert run(server, "--restore", "--yes", "--wait", "--name", "undo") == 0
    last = capsys.readouterr().err.splitlines()[-1]
    assert "may be newer than the backup" in last
    assert "add --exclude-resources customresourcedefinitions" in last


def test_a_restore_is_named_after_its_backup_and_the_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with canned(tmp_path, answers()) as server:
        assert run(server, "--restore", "--yes") == 0
    name = server.bodies[f"POST {RESTORES}"]["metadata"]["name"]
    assert name.startswith("nightly-20")
    assert f"Follow it with velero restore describe {name} -n velero" in capsys.readouterr().err


def test_a_dry_run_prints_the_restore_and_plans_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with canned(tmp_path, answers()) as server:
        assert run(server, "--restore", "--name", "undo", "--dry-run") == 0
        assert server.writes == []
        assert yaml.safe_load(capsys.readouterr().out)["spec"] == {"backupName": "nightly"}
        assert run(server, "--restore", "--name", "undo", "--dry-run=server", "-o", "json") == 0
    assert creations(server) == [True]
    told = capsys.readouterr()
    assert json.loads(told.out)["metadata"]["name"] == "undo"
    assert told.err == "Restore velero/undo would be created (server dry run).\n"


def test_nothing_is_asked_without_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with canned(tmp_path, answers()) as server:
        assert run(server, "--restore", "--name", "undo") == 2
    assert server.asked == []
    text = "error: refusing to restore without confirmation (no terminal): Backup velero/nightly\nhint: add --yes\n"
    assert capsys.readouterr().err == text


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_the_question_follows_the_plan(
    answer: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin.readline", lambda: answer, raising=False)
    with canned(tmp_path, answers()) as server:
        assert run(server, "--restore", "--name", "undo") == code
    assert creations(server) == ([True, False] if code == 0 else [True])
    told = capsys.readouterr()
    assert "refused   1" in told.out
    assert "Restore 1 item of Backup velero/nightly as Restore velero/undo? [y/N] " in told.err
    assert ("error: nothing was restored" in told.err) is (code == 1)


def test_a_caller_without_leave_is_refused_before_the_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forbidden = {"kind": "Status", "reason": "Forbidden", "message": "no", "code": 403}
    with canned(tmp_path, answers(refusal=forbidden)) as server:
        assert run(server, "--restore", "--yes", "--name", "undo") == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "you may not create restores.velero.io in namespace velero" in told.err


def test_with_fail_on_refused_a_plan_with_a_refused_item_is_not_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with canned(tmp_path, answers()) as server:
        assert run(server, "--restore", "--yes", "--fail-on", "refused") == 1
    assert creations(server) == [True]
    assert "error: nothing was restored: --fail-on refused" in capsys.readouterr().err


def test_a_restore_that_fails_is_an_error_with_its_cause_and_what_it_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with canned(tmp_path, answers({"phase": "PartiallyFailed", "errors": 2})) as server:
        assert run(server, "--restore", "--yes", "--wait", "--name", "undo") == 1
    told = capsys.readouterr().err
    assert DID in told
    assert "error: Restore velero/undo: Restore partially failed: 2 errors" in told
    assert "hint: see velero restore logs undo -n velero" in told


def test_what_a_restore_did_that_cannot_be_read_is_a_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stored(*_: object) -> bytes:
        raise CommandError("no bucket")

    monkeypatch.setattr(planning, "read_velero_file", stored)
    with canned(tmp_path, answers()) as server:
        assert run(server, "--restore", "--yes", "--wait", "--name", "undo") == 0
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "hint: what it did to each object cannot be read: no bucket"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--wait",), "--wait needs --restore"),
        (("--yes",), "--yes needs --restore"),
        (("--name", "undo"), "--name needs --restore"),
        (("--dry-run",), "--dry-run needs --restore"),
        (("--restore", "--as", "ann"), "--as cannot be combined with --restore"),
        (("--restore", "--name", "Undo"), "Restore Undo: the name is not valid"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    words: tuple[str, ...], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "nightly", *words]) == 2
    assert f"error: {text}" in capsys.readouterr().err


def test_a_velero_whose_rules_are_not_known_is_not_planned_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = {"name": "velero", "image": "velero/velero:v1.19.0", "args": ["server"]}
    body = {
        "metadata": {"name": "velero", "namespace": "velero"},
        "spec": {"template": {"spec": {"containers": [server]}}},
    }
    deployments = {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [body]}
    cluster = {**answers(), "/apis/apps/v1/namespaces/velero/deployments": deployments}
    with canned(tmp_path, cluster) as canned_server:
        assert main(["plan", "nightly", "--kubeconfig", str(canned_server.kubeconfig)]) == 1
    assert "Velero v1.19.0 is unknown: Foresail has the rules of 1.17 and 1.18" in capsys.readouterr().err
