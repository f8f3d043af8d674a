"""What the real Velero makes of the specs that tenants come to: what is in the backup, and what comes back."""

import gzip
import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec

from foresail.api.policy import SelfServicePolicySpec
from foresail.cli.install.manifests import InstallOptions, operators
from foresail.plan import Key
from foresail.selfservice.specs.build import backup_spec, restore_spec
from foresail.tenancy.policies import PolicyRow
from foresail.tenancy.volume_policies import VOLUME_POLICIES
from testbed import Cluster

NAMESPACE = "tenant-specs"
RBAC = "rbac.authorization.k8s.io"
POLICY = PolicyRow(Key("", "team"), msgspec.convert({"namespaceSelector": {}}, SelfServicePolicySpec))


def of_tenant(kind: str, name: str, api_version: str = "v1", **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, **more}


OBJECTS = [
    of_tenant("ConfigMap", "settings", data={"a": "b"}),
    of_tenant("ServiceAccount", "robot"),
    of_tenant("Role", "reader", f"{RBAC}/v1", rules=[]),
    of_tenant("ResourceQuota", "few", spec={"hard": {"pods": "9"}}),
    of_tenant(
        "PersistentVolumeClaim",
        "data",
        spec={
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": "tenant-specs-data",
            "storageClassName": "",
        },
    ),
]
OUTSIDE: list[dict[str, Any]] = [
    {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "storageClassName": "",
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": "/tmp/nowhere"},  # noqa: S108 - nothing mounts it
        },
    }
    for name in ("tenant-specs-data", "another-teams-data")
] + [
    {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "robot-of-tenant-specs"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": NAMESPACE}],
    }
]


def velero_object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "velero.io/v1", "kind": kind, "metadata": {"name": name, "namespace": "velero"}, "spec": spec}


def phase(cluster: Cluster, kind: str, name: str) -> str:
    found: dict[str, Any] = cluster.get(kind, name, "--namespace=velero")
    status = found.get("status", {})
    assert not status.get("validationErrors"), status
    return str(status.get("phase", ""))


def kinds_in(cluster: Cluster, backup: str, folder: Path) -> dict[str, set[str]]:
    """Return what a backup holds, by kind."""
    file = folder / f"{backup}.tar.gz"
    cluster.velero("backup", "download", backup, "--output", str(file), "--insecure-skip-tls-verify")
    found: dict[str, set[str]] = {}
    with tarfile.open(fileobj=BytesIO(gzip.decompress(file.read_bytes()))) as archive:
        for path in archive.getnames():
            parts = path.split("/")
            if parts[0] == "resources" and path.endswith(".json"):
                found.setdefault(parts[1], set()).add(parts[-1].removesuffix(".json"))
    return found


def volume_policies() -> list[dict[str, Any]]:
    """Return the ConfigMaps of the chart that tenants' Backups name."""
    pieces = operators(InstallOptions(("self-service",), "velero", "velero", "foresail"))
    return [
        dict(piece.body) for piece in pieces if piece.kind.name == "ConfigMap" and piece.key.name in VOLUME_POLICIES
    ]


def test_the_real_velero_takes_only_what_is_the_tenants_and_brings_no_rights_back(
    own_velero_cluster: Cluster, eventually: Callable[[Callable[[], object], float], None], tmp_path: Path
) -> None:
    cluster = own_velero_cluster
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    cluster.apply(*OUTSIDE, *OBJECTS, *volume_policies())
    eventually(
        lambda: cluster.get("pvc", "data", "--namespace", NAMESPACE).get("status", {}).get("phase") == "Bound", 120
    )

    made = backup_spec({"snapshotVolumes": False}, NAMESPACE, POLICY)
    assert isinstance(made, dict)
    cluster.apply(velero_object("Backup", "tenant-specs-1", made))
    eventually(lambda: phase(cluster, "backup.velero.io", "tenant-specs-1") == "Completed", 300)
    cluster.apply(velero_object("Backup", "tenant-specs-plain", {"includedNamespaces": [NAMESPACE]}))
    eventually(lambda: phase(cluster, "backup.velero.io", "tenant-specs-plain") == "Completed", 300)
    plain = kinds_in(cluster, "tenant-specs-plain", tmp_path)
    assert {f"clusterroles.{RBAC}", f"clusterrolebindings.{RBAC}"} <= set(plain), "left alone, Velero takes them along"
    held = kinds_in(cluster, "tenant-specs-1", tmp_path)
    assert held.pop("persistentvolumes") == {"tenant-specs-data"}
    assert held.pop("namespaces") == {NAMESPACE}
    assert "settings" in held["configmaps"]
    assert not {f"clusterroles.{RBAC}", f"clusterrolebindings.{RBAC}"} & set(held)

    cluster.kubectl("delete", "configmap/settings", "role/reader", "resourcequota/few", "--namespace", NAMESPACE)
    back = restore_spec({"backupName": "daily"}, NAMESPACE, "tenant-specs-1", POLICY)
    assert isinstance(back, dict)
    cluster.apply(velero_object("Restore", "tenant-specs-back", back))
    eventually(lambda: phase(cluster, "restore.velero.io", "tenant-specs-back") == "Completed", 300)
    assert cluster.get("configmap", "settings", "--namespace", NAMESPACE)["data"] == {"a": "b"}
    listed = cluster.get("roles,resourcequotas", "--namespace", NAMESPACE)
    assert listed["items"] == []


def test_policy_test_asks_the_cluster(own_velero_cluster: Cluster, tmp_path: Path) -> None:
    cluster = own_velero_cluster
    label = {"policy-test": "yes"}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tenant-tested", "labels": label}})
    spec = {"namespaceSelector": {"matchLabels": label}}
    policy = {"kind": "SelfServicePolicy", "metadata": {"name": "tested"}, "spec": spec}
    (tmp_path / "policy.json").write_text(json.dumps(policy))
    command = [sys.executable, "-m", "foresail", "policy", "test", "-f", str(tmp_path / "policy.json"), "-o", "json"]
    done = subprocess.run(
        [*command, "--kubeconfig", str(cluster.kubeconfig)], capture_output=True, text=True, check=True
    )
    (found,) = json.loads(done.stdout)
    assert (found["namespace"], found["then"]) == ("tenant-tested", "tested")


def test_an_annotation_of_the_tenants_can_still_take_along_what_we_leave_out(
    own_velero_cluster: Cluster, eventually: Callable[[Callable[[], object], float], None], tmp_path: Path
) -> None:
    """A limit that the threat model names: if this fails, Velero has closed it, and the page is wrong."""
    cluster, namespace = own_velero_cluster, "tenant-annotated"
    robot = {"name": "robot", "namespace": namespace}
    annotations = {"backup.velero.io/must-include-additional-items": "true"}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    binding = {
        **OUTSIDE[-1],
        "metadata": {"name": "robot-of-annotated"},
        "subjects": [{"kind": "ServiceAccount", **robot}],
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {**robot, "annotations": annotations}}
    cluster.apply(binding, account, *volume_policies())
    made = backup_spec({}, namespace, POLICY)
    assert isinstance(made, dict)
    cluster.apply(velero_object("Backup", "tenant-annotated-1", made))
    eventually(lambda: phase(cluster, "backup.velero.io", "tenant-annotated-1") == "Completed", 300)
    assert kinds_in(cluster, "tenant-annotated-1", tmp_path)[f"clusterrolebindings.{RBAC}"] == {"robot-of-annotated"}
    cluster.kubectl("delete", "clusterrolebinding", "robot-of-annotated")
    cluster.kubectl("delete", "serviceaccount", "robot", "--namespace", namespace)
    back = restore_spec({"backupName": "daily"}, namespace, "tenant-annotated-1", POLICY)
    assert isinstance(back, dict)
    cluster.apply(velero_object("Restore", "tenant-annotated-back", back))
    eventually(lambda: phase(cluster, "restore.velero.io", "tenant-annotated-back") == "Completed", 300)
    bindings = cluster.get("clusterrolebindings")["items"]
    assert "robot-of-annotated" not in {each["metadata"]["name"] for each in bindings}, "no right comes back by it"
    assert cluster.get("serviceaccount", "robot", "--namespace", namespace)
