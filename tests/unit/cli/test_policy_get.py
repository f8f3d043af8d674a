"""`foresail policy get` and `describe`: where policies apply, and how much of their quotas is used."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foresail.cli.main import main
from foresail.cli.policy.use import Use, VeleroObject, use_by_namespace
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from tests.unit.cli.canned import Canned, canned

Capture = pytest.CaptureFixture[str]
META = {"resourceVersion": "7"}


def policy(name: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    selector = {"matchLabels": labels} if labels else {}
    metadata = {"name": name, "creationTimestamp": "2026-11-01T00:00:00Z"}
    return {"metadata": metadata, "spec": {"namespaceSelector": selector, **spec}}


def namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}}


def made(family: Family, namespace: str, name: str, phase: str) -> dict[str, Any]:
    annotations = {family.origin_namespace: namespace}
    return {"metadata": {"name": name, "annotations": annotations}, "status": {"phase": phase}}


WEB = policy("web", {"team": "web"}, priority=5, quotas={"stored": 3, "active": 1, "restores": {"stored": 9}})
EVERYONE = policy("everyone")
BACKUP_OBJECTS = [made(BACKUPS, "shop", "b1", "Completed"), made(BACKUPS, "shop", "b2", "InProgress")]
ACCEPTED = {
    "metadata": {"name": "new", "namespace": "shop"},
    "status": {"phase": "Created", "veleroBackup": {"nacuuid": "b3"}},
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Canned]:
    policies, velero = "/apis/foresail.dev/v1alpha1/selfservicepolicies", "/apis/velero.io/v1/namespaces/velero"
    tenants = "/apis/oadp.openshift.io/v1alpha1"
    spaces = [namespace("shop", team="web"), namespace("lab"), namespace("kube-system"), namespace("velero")]
    lists = {
        policies: [EVERYONE, WEB],
        "/api/v1/namespaces": spaces,
        f"{velero}/backups": BACKUP_OBJECTS,
        f"{velero}/restores": [made(RESTORES, "shop", "r1", "Completed")],
        f"{tenants}/nonadminbackups": [ACCEPTED],
        f"{tenants}/nonadminrestores": [],
    }
    answers: dict[str, Any] = {path: {"metadata": META, "items": items} for path, items in lists.items()}
    answers |= {f"{policies}/{each['metadata']['name']}": each for each in (EVERYONE, WEB)}
    with canned(tmp_path, answers) as found:
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
    assert said == "error: SelfServicePolicy gone does not exist\nhint: list what exists: foresail policy get\n"


def test_what_velero_does_not_have_yet_counts_once() -> None:
    objects = [_object(each) for each in BACKUP_OBJECTS]
    accepted = {"metadata": ACCEPTED["metadata"], "status": {"veleroBackup": {"nacuuid": "b2", "name": "b2"}}}
    assert use_by_namespace(BACKUPS, objects, [accepted])["shop"] == Use(2, 1)
    assert use_by_namespace(BACKUPS, objects, [ACCEPTED])["shop"] == Use(3, 2)
    assert use_by_namespace(BACKUPS, [], []) == {}


def _object(content: dict[str, Any]) -> VeleroObject:
    return msgspec.convert(content, VeleroObject)
