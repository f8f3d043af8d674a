"""`foresail backup create` and `foresail restore create`: what works without a cluster, and what is refused before."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from foresail.cli.access import self_service
from foresail.cli.access.cluster import refusal
from foresail.cli.errors import CommandError
from foresail.cli.main import main
from foresail.cli.tenant.new_request import judge
from foresail.kube.failures import Cause, Failure
from foresail.plan import Key
from foresail.selfservice.access.discovery import ApiResource
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from tests.unit.cli.canned import Canned, canned

SERVED = (
    ApiResource("apps", "deployments", "Deployment", aliases=("deployment", "deploy")),
    ApiResource(
        "rbac.authorization.k8s.io", "clusterroles", "ClusterRole", is_namespaced=False, aliases=("clusterrole",)
    ),
    ApiResource("storage.k8s.io", "storageclasses", "StorageClass", is_namespaced=False, aliases=("sc",)),
)


@pytest.fixture
def no_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))


@pytest.mark.usefixtures("no_kubeconfig")
@pytest.mark.parametrize(
    "words",
    [
        ("backup", "create", "first"),
        ("restore", "create", "first", "--from-backup", "b"),
    ],
)
def test_a_manifest_needs_no_cluster(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["metadata"] == {"name": "first"}
    assert main([*words, "-n", "shop", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["metadata"] == {"name": "first", "namespace": "shop"}
    assert main([*words, "-o", "yaml"]) == 0
    assert "name: first" in capsys.readouterr().out


@pytest.mark.usefixtures("no_kubeconfig")
@pytest.mark.parametrize("policy", ["foo", "Update", ""])
def test_an_unknown_existing_resource_policy_is_refused(policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["restore", "create", "r", "--from-backup", "b", "--existing-resource-policy", policy, "-o", "yaml"]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "none" in said.err
    assert "update" in said.err


@pytest.mark.usefixtures("no_kubeconfig")
@pytest.mark.parametrize(
    ("words", "problem", "hint"),
    [
        (["First_Backup"], "NonAdminBackup First_Backup: the name is not valid", "such as first-backup"),
        (["-x-"], "NonAdminBackup -x-: the name is not valid", "such as x"),
        (["a" * 254], "the name has 254 characters", "253"),
        ([], "no NAME is given", "foresail backup create NAME"),
    ],
)
def test_a_wrong_or_missing_name_is_one_line_and_a_hint(
    words: list[str], problem: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["backup", "create", "-o", "yaml", "--", *words]) == 2
    error, advice = capsys.readouterr().err.splitlines()
    assert error.startswith("error: ")
    assert problem in error
    assert advice.startswith("hint: ")
    assert hint in advice


@pytest.mark.usefixtures("no_kubeconfig")
def test_a_restore_is_named_after_its_backup_and_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    for backup, longest in (("daily", 20), ("b" * 253, 253)):
        assert main(["restore", "create", "--from-backup", backup, "-o", "json"]) == 0
        name = json.loads(capsys.readouterr().out)["metadata"]["name"]
        assert re.fullmatch(r"(daily|b+)-20\d{12}", name)
        assert len(name) == longest


def test_a_missing_kind_and_a_missing_namespace_are_told_apart_from_a_missing_object() -> None:
    key = Key("shop", "first")
    unknown = Failure(Cause.NOT_FOUND, "the server could not find the requested resource", 404, "NotFound")
    error = refusal(unknown, "create", BACKUPS.kind, key)
    assert error.problem == "the cluster does not serve nonadminbackups.oadp.openshift.io"
    assert error.hint == "install Foresail with self-service: foresail install --self-service"
    no_namespace = Failure(Cause.NOT_FOUND, 'namespaces "shop" not found', 404, "NotFound")
    error = refusal(no_namespace, "create", BACKUPS.kind, key)
    assert error.problem == "namespace shop does not exist"
    assert error.hint == "name an existing namespace with -n"
    gone = Failure(Cause.NOT_FOUND, 'nonadminbackups.oadp.openshift.io "first" not found', 404, "NotFound")
    assert refusal(gone, "get", BACKUPS.kind, key).problem == "NonAdminBackup shop/first does not exist"
    no_group = Failure(Cause.NOT_FOUND, "404 page not found\n", 404)
    assert refusal(no_group, "get", BACKUPS.kind, key).problem.startswith("the cluster does not serve nonadminbackups")


def test_whoever_may_not_create_is_asked_about_the_namespace_too() -> None:
    error = refusal(Failure(Cause.FORBIDDEN, "no", 403), "create", BACKUPS.kind, Key("shpo", "first"))
    assert error.hint is not None
    assert "or check that shpo is the right namespace" in error.hint


@pytest.mark.parametrize("family", [BACKUPS, RESTORES])
@pytest.mark.parametrize("field", ["includedResources", "includedNamespaceScopedResources"])
@pytest.mark.parametrize("names", [["clusterroles"], ["clusterrole", "storageclasses.storage.k8s.io"], ["sc", "typo"]])
def test_cluster_scoped_kinds_alone_are_refused(family: Family, field: str, names: list[str]) -> None:
    with pytest.raises(CommandError, match=rf"--include-resources has only cluster-scoped kinds: {names[0]}"):
        judge(family, {field: names}, SERVED)


def test_cluster_scoped_kinds_beside_others_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    judge(BACKUPS, {"includedResources": ["deployments", "clusterroles"]}, SERVED)
    assert capsys.readouterr().err == "hint: not in the backup (cluster-scoped): clusterroles\n"
    judge(BACKUPS, {"includedResources": ["persistentvolumeclaims", "pv"]}, SERVED)
    assert capsys.readouterr().err == ""


TENANTS = "/apis/oadp.openshift.io/v1alpha1/namespaces/shop"


def restore_from(name: str, cluster: Canned) -> int:
    where = ["-n", "shop", "--kubeconfig", str(cluster.kubeconfig)]
    return main(["restore", "create", "back", "--from-backup", name, *where])


def having(*names: str) -> dict[str, Any]:
    """Return the answers of a namespace with these backups, the oldest first."""
    metadata = [
        {"name": name, "namespace": "shop", "creationTimestamp": f"2026-11-{number:02}T00:00:00Z"}
        for number, name in enumerate(names, 1)
    ]
    items = [{"metadata": each} for each in metadata]
    backups = f"{TENANTS}/nonadminbackups"
    answers: dict[str, Any] = {backups: {"metadata": {"resourceVersion": "7"}, "items": items}}
    answers |= {f"{backups}/{each['metadata']['name']}": each for each in items}
    return {**answers, f"{TENANTS}/nonadminrestores": lambda _, sent: sent}


@pytest.mark.parametrize(
    ("names", "hint"),
    [
        (["old", "new"], "namespace shop has new, old; foresail backup get -n shop shows them"),
        (list("abcdefg"), "namespace shop has g, f, e, d, c and 2 more; foresail backup get -n shop shows them"),
        ([], "namespace shop has no backups; name another with -n, or create one with foresail backup create NAME"),
    ],
)
def test_restore_from_a_backup_that_does_not_exist_names_what_there_is(
    names: list[str], hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with canned(tmp_path, having(*names)) as cluster:
        assert restore_from("nosuch", cluster) == 1
    assert capsys.readouterr().err == f"error: NonAdminBackup nosuch does not exist in namespace shop\nhint: {hint}\n"
    assert cluster.writes == []


def test_restore_from_a_backup_that_exists_is_created(tmp_path: Path) -> None:
    with canned(tmp_path, having("old")) as cluster:
        assert restore_from("old", cluster) == 0
    assert f"POST {TENANTS}/nonadminrestores" in cluster.writes


def test_whoever_may_not_list_backups_leaves_the_check_to_the_operator(tmp_path: Path) -> None:
    answers = having("old")
    del answers[f"{TENANTS}/nonadminbackups"]
    with canned(tmp_path, answers) as cluster:
        assert restore_from("nosuch", cluster) == 0
    assert f"POST {TENANTS}/nonadminrestores" in cluster.writes


NAMESPACE = "/api/v1/namespaces/legacy"
REQUESTS = "/apis/oadp.openshift.io/v1alpha1/namespaces/legacy"
COMMANDS = [
    (["backup", "create", "now"], "NonAdminBackup", "velero backup create NAME --include-namespaces legacy"),
    (
        ["restore", "create", "undo", "--from-backup", "b"],
        "NonAdminRestore",
        "foresail plan BACKUP --include-namespaces legacy --restore",
    ),
    (
        ["backup", "schedule", "create", "daily", "--schedule", "0 3 * * *"],
        "NonAdminSchedule",
        "foresail schedule create NAME --schedule '0 3 * * *' --include-namespaces legacy",
    ),
]


@pytest.mark.parametrize(("words", "kind", "instead"), COMMANDS, ids=[kind for _, kind, _ in COMMANDS])
def test_without_self_service_nothing_is_created_and_the_way_out_is_named(
    words: list[str],
    kind: str,
    instead: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(self_service, "_PAUSE", 0.0)
    answers = {NAMESPACE: {"metadata": {"name": "legacy"}}, f"{REQUESTS}/nonadminbackups/b": {"metadata": {}}}
    with canned(tmp_path, answers) as server:
        assert main([*words, "-n", "legacy", "--kubeconfig", str(server.kubeconfig)]) == 1
    assert server.writes == []
    enable = "kubectl label namespace legacy foresail.dev/self-service=enabled"
    assert capsys.readouterr().err == (
        f"error: Self-service is not enabled in namespace legacy, so no {kind} is created\n"
        f"hint: ask a cluster administrator to enable it: {enable}; or to run {instead}\n"
    )


@pytest.mark.parametrize(
    ("last", "is_readable"),
    [
        ({"foresail.dev/velero-annotations": "Refused"}, True),
        ({"foresail.dev/self-service": "enabled"}, True),
        ({}, False),
    ],
    ids=["served a moment later", "asked for", "may not be read"],
)
def test_what_is_not_known_to_be_without_self_service_is_no_obstacle(
    last: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_readable: bool
) -> None:
    monkeypatch.setattr(self_service, "_PAUSE", 0.0)
    labels: list[dict[str, str]] = [last, {}]

    def read(_: str, __: dict[str, Any]) -> dict[str, Any]:
        forbidden = {"kind": "Status", "reason": "Forbidden", "message": "no", "code": 403}
        return {"metadata": {"name": "legacy", "labels": labels.pop()}} if is_readable else forbidden

    answers = {NAMESPACE: read, f"{REQUESTS}/nonadminbackups": {"metadata": {"name": "now"}}}
    with canned(tmp_path, answers) as server:
        main(["backup", "create", "now", "-n", "legacy", "--kubeconfig", str(server.kubeconfig)])
    assert f"POST {REQUESTS}/nonadminbackups" in server.writes
