from typing import Any

import msgspec
import pytest

from foresail.api.specs import BackupSpec
from foresail.scope.policies import policies_of
from foresail.scope.volumes import Method, data_backup, pod_volumes

CLAIM = {
    "metadata": {"name": "data", "labels": {"tier": "gold"}},
    "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"},
    "status": {"phase": "Bound"},
}
VOLUME = {
    "spec": {
        "capacity": {"storage": "5Gi"},
        "storageClassName": "fast",
        "csi": {"driver": "disk.example", "volumeAttributes": {"zone": "a"}},
    }
}


def pod(phase: str = "Running", **annotations: str) -> dict[str, Any]:
    prefix = "backup.velero.io/"
    return {
        "metadata": {"annotations": {prefix + key.replace("_", "-"): value for key, value in annotations.items()}},
        "spec": {
            "volumes": [
                {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "tmp", "emptyDir": {}},
                {"name": "host", "hostPath": {"path": "/"}},
            ]
        },
        "status": {"phase": phase},
    }


@pytest.mark.parametrize(
    ("spec", "pods", "expected"),
    [
        ({}, [], Method.SNAPSHOT),
        ({"snapshotVolumes": False}, [pod()], Method.NONE),
        ({"snapshotVolumes": False}, [pod(backup_volumes="tmp,d")], Method.FILE_SYSTEM),
        ({"defaultVolumesToFsBackup": True}, [pod()], Method.FILE_SYSTEM),
        ({"defaultVolumesToFsBackup": True}, [pod(phase="Pending")], Method.NONE),
        ({"defaultVolumesToFsBackup": True}, [], Method.SNAPSHOT),
        ({"defaultVolumesToFsBackup": True}, [pod(backup_volumes_excludes="d")], Method.SNAPSHOT),
    ],
)
def test_annotations_and_defaults_choose_the_method(
    spec: dict[str, Any], pods: list[dict[str, Any]], expected: Method
) -> None:
    assert data_backup(msgspec.convert(spec, BackupSpec), CLAIM, VOLUME, pods).method == expected


@pytest.mark.parametrize(
    ("conditions", "is_met"),
    [
        ("{}", True),
        ("{capacity: '1Gi,10Gi'}", True),
        ("{capacity: '10Gi,'}", False),
        ("{capacity: ',5Gi'}", True),
        ("{storageClass: [slow]}", False),
        ("{csi: {}}", True),
        ("{csi: {driver: disk.example, volumeAttributes: {zone: b}}}", False),
        ("{nfs: {}}", False),
        ("{volumeTypes: [csi]}", True),
        ("{pvcLabels: {tier: gold}}", True),
        ("{pvcPhase: [Pending]}", False),
        ("{pvcVolumeMode: Block}", False),
        ("{pvcAccessModes: [ReadWriteOnce]}", True),
    ],
)
def test_a_volume_policy_skips_what_meets_all_its_conditions(conditions: str, is_met: bool) -> None:
    text = f"version: v1\nvolumePolicies: [{{conditions: {conditions}, action: {{type: skip}}}}]"
    found = data_backup(BackupSpec(), CLAIM, VOLUME, [], policies_of({"policy": text}))
    assert found.method == (Method.NONE if is_met else Method.SNAPSHOT)


def test_volumes_without_data_are_never_saved() -> None:
    assert pod_volumes(BackupSpec(default_volumes_to_fs_backup=True), pod()) == ["d", "tmp"]
