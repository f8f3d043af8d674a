"""Velero's file-system data path on the real cluster: closed to tenants by Velero itself, whatever their pods get.

No node agent runs here. Velero that tries to copy files reports so as an error, and its Backup is PartiallyFailed.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from testbed import Cluster
from tests.cluster.tenants import (
    VELERO,
    Eventually,
    Tenant,
    allow_file_system,
    arrive,
    as_velero,
    condition,
    install,
    of_namespace,
    operator,
)
from tests.cluster.test_selfservice_results import run_pod

OPTED_IN = {"backup.velero.io/backup-volumes": "cache"}
IN_VELERO = f"--namespace={VELERO}"


@pytest.fixture(scope="module")
def served(own_velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Velero with both charts, and the operator at work."""
    install(own_velero_cluster, resource_policies="rules-closed")
    with operator(own_velero_cluster, tmp_path_factory.mktemp("operator") / "log"):
        yield own_velero_cluster


def made_for(cluster: Cluster, tenant: Tenant, name: str) -> dict[str, Any]:
    velero_backup = tenant.status(f"nonadminbackup/{name}")["veleroBackup"]["name"]
    found: dict[str, Any] = cluster.get("backups.velero.io", velero_backup, IN_VELERO)
    return found


def refused(tenant: Tenant, target: str) -> tuple[str, str]:
    tenant.wait(target, "--for=jsonpath={.status.phase}=BackingOff", seconds=90)
    status, reason, message = condition(tenant.status(target), "Accepted")
    assert status == "False"
    return reason, message


def test_a_pod_that_asks_for_a_copy_of_its_files_is_refused_and_named(served: Cluster, eventually: Eventually) -> None:
    ann = arrive(served, "copies", eventually)
    run_pod(as_velero(served, "copies"), OPTED_IN)
    ann.back_up("asked")
    reason, message = refused(ann, "nonadminbackup/asked")
    assert reason == "PolicyViolation"
    assert "Pod front has annotation backup.velero.io/backup-volumes" in message
    assert not of_namespace(served, "backups", "copies")
    ann.back_up("without-pods", excludedResources=["pods"])
    ann.wait("nonadminbackup/without-pods", "--for=condition=Succeeded", seconds=90)


@pytest.mark.parametrize("snapshots", [None, True, False])
def test_an_annotation_that_comes_after_the_check_has_no_effect(
    served: Cluster, eventually: Eventually, snapshots: bool | None
) -> None:
    name = f"race-{str(snapshots).lower()}"
    bob = arrive(served, name, eventually)
    run_pod(bob, {})
    served.fault.stop("velero")
    try:
        bob.back_up("raced", **({} if snapshots is None else {"snapshotVolumes": snapshots}))
        bob.wait("nonadminbackup/raced", "--for=jsonpath={.status.phase}=Created", seconds=90)
        patch = json.dumps({"metadata": {"annotations": OPTED_IN}})
        as_velero(served, name).kubectl("patch", "pod", "front", "--type=merge", f"--patch={patch}")
    finally:
        served.fault.cont("velero")
    bob.wait("nonadminbackup/raced", "--for=condition=Succeeded", seconds=90)
    made = made_for(served, bob, "raced")
    assert made["spec"]["defaultVolumesToFsBackup"] is False
    assert made["status"]["phase"] == "Completed"
    assert not served.get("podvolumebackups.velero.io", IN_VELERO)["items"]
    # The same pod in a Backup of an administrator: so it looks if Velero tries.
    plain = f"{name}-plain"
    served.velero("backup", "create", plain, f"--include-namespaces={name}", "--wait")
    assert served.get("backups.velero.io", plain, IN_VELERO)["status"]["phase"] == "PartiallyFailed"


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("[{conditions: {}, action: {type: fs-backup}}]", "action fs-backup"),
        ("[{conditions: {nfs: {}}, action: {type: skip}}]", "does not end with"),
        ("[{conditions: {nfs: {}}, action: {type: skip}}, {conditions: {}, action: {type: snapshot}}]", ""),
    ],
    ids=["copies", "open", "closed"],
)
def test_a_resource_policy_of_the_administrator_must_decide_about_every_volume(
    served: Cluster, eventually: Eventually, rules: str, said: str, request: pytest.FixtureRequest
) -> None:
    name = f"rules-{request.node.callspec.id}"
    cat = arrive(served, name, eventually)
    data = {"policy": f"{{version: v1, volumePolicies: {rules}}}"}
    served.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": VELERO}, "data": data}
    )
    spec = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
        "backup": {"required": {"resourcePolicy": {"kind": "configmap", "name": name}}},
    }
    served.apply(
        {"apiVersion": "foresail.dev/v1alpha1", "kind": "SelfServicePolicy", "metadata": {"name": name}, "spec": spec}
    )
    run_pod(cat, {})
    cat.back_up("ruled")
    if said:
        reason, message = refused(cat, "nonadminbackup/ruled")
        assert reason == "PolicyViolation"
        assert said in message
    else:
        cat.wait("nonadminbackup/ruled", "--for=condition=Succeeded", seconds=90)
        assert made_for(served, cat, "ruled")["status"]["phase"] == "Completed"


def test_files_in_a_backup_are_written_into_no_pod_of_a_tenant(served: Cluster, eventually: Eventually) -> None:
    dan = arrive(served, "written", eventually)
    run_pod(dan, {})
    dan.back_up("held")
    dan.wait("nonadminbackup/held", "--for=condition=Succeeded", seconds=90)
    made = made_for(served, dan, "held")["metadata"]
    copied(served, made["name"], made["uid"])
    dan.restore("all", "held")
    reason, message = refused(dan, "nonadminrestore/all")
    assert (reason, "claim data" in message) == ("PolicyViolation", True)
    body = {"restoreSpec": {"backupName": "held", "excludedResources": ["pods"]}}
    request = {"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminRestore", "metadata": {"name": "rest"}}
    dan.kubectl("create", "--filename=-", body={**request, "spec": body})
    dan.wait("nonadminrestore/rest", "--for=condition=Succeeded", seconds=90)

    allow_file_system("written", served)
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "none",
        "resources": {"requests": {"storage": "1Mi"}},
    }
    dan.kubectl(
        "create",
        "--filename=-",
        body={"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": claim},
    )
    dan.restore("existing", "held")
    reason, message = refused(dan, "nonadminrestore/existing")
    assert (reason, "existing claim data" in message) == ("VolumeNotNew", True)


def copied(cluster: Cluster, backup: str, uid: str) -> None:
    """Record the files of claim data as Velero does, in a PodVolumeBackup."""
    metadata = {
        "name": f"{backup}-1",
        "namespace": VELERO,
        "labels": {"velero.io/backup-name": backup, "velero.io/backup-uid": uid},
        "annotations": {"velero.io/pvc-name": "data"},
    }
    spec = {
        "backupStorageLocation": "default",
        "node": "node-0",
        "pod": {"kind": "Pod", "namespace": "written", "name": "front"},
        "repoIdentifier": "",
        "volume": "cache",
    }
    status = {"phase": "Completed", "snapshotID": "0123456789"}
    body = {"apiVersion": "velero.io/v1", "kind": "PodVolumeBackup", "metadata": metadata, "spec": spec}
    cluster.apply({**body, "status": status})
