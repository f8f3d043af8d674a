"""`foresail policy test` on files: what it shows, and what it says when it cannot."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foresail.api.core import NAMESPACE
from foresail.cli.access.cluster import refusal
from foresail.cli.main import main
from foresail.kube.failures import Cause, Failure
from foresail.plan import Key
from tests.unit.cli.canned import canned

NAMESPACES = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: web}}}
- {apiVersion: v1, kind: Namespace, metadata: {name: bank, labels: {team: web, tier: gold}}}
- {apiVersion: v1, kind: Namespace, metadata: {name: lab}}
- {apiVersion: v1, kind: Namespace, metadata: {name: kube-system, labels: {team: web}}}
- {apiVersion: v1, kind: Namespace, metadata: {name: velero, labels: {team: web}}}
"""
WEB = """
apiVersion: foresail.dev/v1alpha1
kind: SelfServicePolicy
metadata: {name: web}
spec:
  namespaceSelector: {matchLabels: {team: web}}
  priority: 5
"""
HELD = """
apiVersion: foresail.dev/v1alpha1
kind: SelfServicePolicy
metadata: {name: everyone}
spec: {namespaceSelector: {}}
---
apiVersion: foresail.dev/v1alpha1
kind: SelfServicePolicy
metadata: {name: gold}
spec: {namespaceSelector: {matchLabels: {tier: gold}}, priority: 9}
"""
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `foresail policy test` on texts instead of files; returns the exit code and what was printed."""

    def run(policy: str = WEB, *more: str, namespaces: str = NAMESPACES, policies: str = HELD) -> tuple[int, str, str]:
        for name, text in (("new.yaml", policy), ("namespaces.yaml", namespaces), ("held.yaml", policies)):
            (tmp_path / name).write_text(text)
        files = ["--namespaces", str(tmp_path / "namespaces.yaml"), "--policies", str(tmp_path / "held.yaml")]
        code = main(["policy", "test", "-f", str(tmp_path / "new.yaml"), *files, *more])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_it_shows_where_the_policy_matches_which_holds_now_and_which_would(run: Run) -> None:
    code, out, err = run()
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [
        ["NAMESPACE", "NOW", "THEN", "ALSO", "MATCHING"],
        ["bank", "gold", "gold", "web,", "everyone"],
        ["shop", "everyone", "web", "everyone"],
    ]
    assert "the file's policies would apply to 1 of 5 namespaces; the policy would change in 1" in err


def test_a_namespace_that_is_asked_for_is_shown_matched_or_not(run: Run) -> None:
    _, out, _ = run(WEB, "-n", "lab", "-n", "kube-system", "-n", "velero")
    assert [line.split() for line in out.splitlines()[1:]] == [
        ["kube-system", "-", "-", "(no", "policy", "applies)"],
        ["lab", "everyone", "everyone"],
        ["velero", "-", "-", "(no", "policy", "applies)"],
    ]


def test_a_policy_of_the_same_name_is_replaced(run: Run) -> None:
    narrower = WEB.replace("name: web", "name: everyone")
    _, out, _ = run(narrower, "-n", "lab", "-n", "shop")
    assert [line.split() for line in out.splitlines()[1:]] == [
        ["lab", "everyone", "-"],
        ["shop", "everyone", "everyone"],
    ]


def test_programs_get_json(run: Run) -> None:
    _, out, _ = run(WEB, "-o", "json")
    read: list[dict[str, Any]] = json.loads(out)
    assert read[0] == {"namespace": "bank", "now": "gold", "then": "gold", "matching": ["gold", "web", "everyone"]}


def test_a_policy_that_matches_nothing_prints_no_table(run: Run) -> None:
    code, out, err = run(WEB.replace("team: web", "team: nobody"))
    assert (code, out) == (0, "")
    assert "would apply to 0" in err


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("", "has no SelfServicePolicy"),
        ("kind: ConfigMap", "has no SelfServicePolicy"),
        (WEB.replace("priority: 5", "priority: high"), "Expected `int`, got `str` - at `$.spec.priority`"),
        (WEB.replace("{matchLabels: {team: web}}", "{matchExpressions: [{key: a, operator: In}]}"), "has no values"),
        (WEB + "---" + WEB, "has SelfServicePolicy web twice"),
        (WEB.replace("priority: 5", "priorty: 5"), "spec.priorty does not exist; did you mean priority?"),
        ("{", "is neither YAML nor JSON"),
    ],
)
def test_a_file_that_is_not_in_order_is_named_with_the_cause(run: Run, policy: str, said: str) -> None:
    code, out, err = run(policy)
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert said in err


def test_a_namespace_that_is_not_there_is_an_error(run: Run) -> None:
    code, _, err = run(WEB, "-n", "shoop")
    assert code == 1
    assert "namespace shoop does not exist" in err


def test_policies_from_a_file_need_namespaces_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "new.yaml").write_text(WEB)
    file = str(tmp_path / "new.yaml")
    assert main(["policy", "test", "-f", file, "--policies", file]) == 1
    assert "add --namespaces" in capsys.readouterr().err


def test_without_a_cluster_and_without_files_it_says_what_to_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "new.yaml").write_text(WEB)
    nowhere = str(tmp_path / "no-kubeconfig")
    assert main(["policy", "test", "-f", str(tmp_path / "new.yaml"), "--kubeconfig", nowhere]) == 3
    said = capsys.readouterr().err
    assert "; or read files: --namespaces, --policies" in said


def test_a_refusal_does_not_say_in_which_namespaces_there_are_namespaces() -> None:
    error = refusal(Failure(Cause.FORBIDDEN, "said"), "list", NAMESPACE, Key("", ""))
    assert error.problem == "namespaces: you may not list namespaces"
    assert error.hint == "a ClusterRole must allow {apiGroups: [''], resources: [namespaces], verbs: [list]}"


def test_bounds_that_leave_nothing_between_them_are_found(run: Run) -> None:
    code, out, err = run(WEB + "  backup: {ttl: {minimum: 48h, maximum: 90m}, hooks: {timeout: {minimum: 1h}}}\n")
    assert code == 1
    assert "bank" in out
    assert "error: SelfServicePolicy web: spec.backup.ttl: the minimum 48h is longer than the maximum 90m" in err
    assert err.count("error: ") == 1
    assert run(WEB + "  restore: {hooks: {timeout: {minimum: 2m, maximum: 1m}}}\n")[0] == 1
    assert run(WEB + "  backup: {ttl: {minimum: 60m, maximum: 1h}}\n")[0] == 0


UNKNOWN = """
  backup:
    allowed: {storageLocations: [default, moon], volumeSnapshotLocations: [disks]}
    defaults: {storageLocation: default}
    required: {storageLocation: mars}
"""


def test_locations_that_do_not_exist_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    meta = {"resourceVersion": "7"}
    velero = "/apis/velero.io/v1/namespaces/velero"
    answers: dict[str, Any] = {
        "/api/v1/namespaces": {"metadata": meta, "items": [{"metadata": {"name": "shop", "labels": {"team": "web"}}}]},
        "/apis/foresail.dev/v1alpha1/selfservicepolicies": {"metadata": meta, "items": []},
        f"{velero}/backupstoragelocations": {"metadata": meta, "items": [{"metadata": {"name": "default"}}]},
    }
    (tmp_path / "new.yaml").write_text(WEB + UNKNOWN)
    with canned(tmp_path, answers) as server:
        words = ["policy", "test", "-f", str(tmp_path / "new.yaml"), "--kubeconfig", str(server.kubeconfig)]
        assert main(words) == 1
        said = capsys.readouterr().err.splitlines()
        where = "error: SelfServicePolicy web: spec.backup"
        assert f"{where}.allowed.storageLocations: BackupStorageLocation moon does not exist; existing: default" in said
        assert f"{where}.required.storageLocation: BackupStorageLocation mars does not exist; existing: default" in said
        assert sum(line.startswith("error: ") for line in said) == 2
        assert any(line.startswith("hint: cannot check the volumesnapshotlocations of the policies") for line in said)
        answers[f"{velero}/volumesnapshotlocations"] = {"metadata": meta, "items": []}
        assert main(words) == 1
        assert "VolumeSnapshotLocation disks does not exist; existing: none" in capsys.readouterr().err


def test_a_policy_that_allows_the_copy_of_files_is_warned_about(run: Run) -> None:
    code, _, err = run(WEB + "  backup: {fileSystem: Allowed, defaults: {defaultVolumesToFsBackup: true}}\n")
    assert code == 0
    assert "warning: SelfServicePolicy web: fileSystem is Allowed, so a tenant who may run pods can reach data" in err
    assert "warning" not in run(WEB)[2]


def test_defaults_that_would_have_every_backup_refused_are_found(run: Run) -> None:
    code, _, err = run(WEB + "  backup: {required: {defaultVolumesToFsBackup: true}}\n")
    assert code == 1
    assert "error: SelfServicePolicy web: spec.backup.required.defaultVolumesToFsBackup: fileSystem is Refused" in err


def test_resource_policies_that_leave_room_for_the_copy_of_files_are_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    meta, maps = {"resourceVersion": "7"}, "/api/v1/namespaces/velero/configmaps"
    closed = "{version: v1, volumePolicies: [{conditions: {}, action: {type: skip}}]}"
    answers: dict[str, Any] = {
        "/api/v1/namespaces": {"metadata": meta, "items": []},
        "/apis/foresail.dev/v1alpha1/selfservicepolicies": {"metadata": meta, "items": []},
        f"{maps}/closed": {"metadata": {"name": "closed"}, "data": {"rules": closed}},
        f"{maps}/open": {"metadata": {"name": "open"}, "data": {"rules": closed.replace("skip", "fs-backup")}},
    }
    named = "  backup: {allowed: {resourcePolicies: [closed, open, gone]}}\n"
    (tmp_path / "new.yaml").write_text(WEB + named)
    with canned(tmp_path, answers) as server:
        assert main(["policy", "test", "-f", str(tmp_path / "new.yaml"), "--kubeconfig", str(server.kubeconfig)]) == 1
    wrong = [each for each in capsys.readouterr().err.splitlines() if each.startswith("error: ")]
    assert ["ConfigMap open has a volume policy" in wrong[0], "ConfigMap gone does not exist" in wrong[1]] == [
        True,
        True,
    ]
    assert len(wrong) == 2
