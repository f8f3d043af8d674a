from typing import Any

import msgspec
import pytest

from foresail.api.specs import BackupSpec
from foresail.scope.resource_policies import Policies, merged, policies_of
from foresail.scope.server import ServerFlags
from foresail.scope.volumes import BackedUp, Method, data_backup, pod_volumes

CLAIM = {
    "metadata": {"name": "data", "labels": {"tier": "gold", "replicas": "3", "encrypted": "true", "empty": ""}},
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
            "nodeName": "worker",
            "volumes": [
                {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "tmp", "emptyDir": {}},
                {"name": "host", "hostPath": {"path": "/"}},
            ],
            "containers": [{"name": "c", "volumeMounts": [{"name": "d", "mountPath": "/d"}]}],
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
        ("{volumeTypes: [CSI]}", False),
        ("{pvcLabels: {tier: gold}}", True),
        ("{pvcLabels: {replicas: 3}}", True),
        ("{pvcLabels: {replicas: 3.0}}", True),
        ("{pvcLabels: {replicas: '3.0'}}", False),
        ("{pvcLabels: {encrypted: True}}", True),
        ("{pvcLabels: {empty: }}", True),
        ("{pvcPhase: [Pending]}", False),
        ("{pvcVolumeMode: Block}", False),
        ("{pvcAccessModes: [ReadWriteOnce]}", True),
    ],
)
def test_a_volume_policy_skips_what_meets_all_its_conditions(conditions: str, is_met: bool) -> None:
    text = f"version: v1\nvolumePolicies: [{{conditions: {conditions}, action: {{type: skip}}}}]"
    found = data_backup(BackupSpec(), CLAIM, VOLUME, [], policies_of({"policy": text}))
    assert found.method == (Method.NONE if is_met else Method.SNAPSHOT)


@pytest.mark.parametrize(
    ("field", "name", "is_met"),
    [
        ("storageos", "storageOS", True),
        ("storageos", "storageos", False),
        ("gcePersistentDisk", "gcePersistentDisk", True),
        ("gcePersistentDisk", "gcepersistentdisk", False),
    ],
)
def test_a_volume_type_is_written_as_velero_writes_it(field: str, name: str, is_met: bool) -> None:
    text = f"version: v1\nvolumePolicies: [{{conditions: {{volumeTypes: [{name}]}}, action: {{type: skip}}}}]"
    found = data_backup(BackupSpec(), CLAIM, {"spec": {field: {}}}, [], policies_of({"policy": text}))
    assert found.method == (Method.NONE if is_met else Method.SNAPSHOT)


def test_a_policy_knows_ephemeral_volumes_of_pods() -> None:
    mounting = {"metadata": {}, "spec": {"volumes": [{"name": "e", "ephemeral": {}}]}}
    text = "version: v1\nvolumePolicies: [{conditions: {volumeTypes: [ephemeral]}, action: {type: fs-backup}}]"
    assert pod_volumes(BackupSpec(), mounting, {}, policies_of({"policy": text})) == ["e"]


def test_a_file_system_backup_needs_the_pod_in_the_backup() -> None:
    opted_in = pod(backup_volumes="d")
    found = data_backup(BackupSpec(), CLAIM, VOLUME, [opted_in], backed_up=BackedUp(()))
    assert found.method == Method.NONE  # and no snapshot either: Velero sees the annotation of the pod
    assert found.reason == "the backup leaves out every pod that mounts it"
    with_pod = data_backup(BackupSpec(), CLAIM, VOLUME, [opted_in], backed_up=BackedUp([opted_in]))
    assert with_pod.method == Method.FILE_SYSTEM
    assert data_backup(BackupSpec(), CLAIM, VOLUME, [pod()], backed_up=BackedUp(())).method == Method.SNAPSHOT


def test_a_native_snapshot_needs_the_volume_in_the_backup_and_one_by_csi_does_not() -> None:
    without_volume = BackedUp((), volume=False)
    disk = {"spec": {"awsElasticBlockStore": {"volumeID": "vol-1"}}}
    found = data_backup(BackupSpec(), CLAIM, disk, [], backed_up=without_volume)
    assert (found.method, found.reason) == (Method.NONE, "the backup leaves out its PersistentVolume")
    assert data_backup(BackupSpec(), CLAIM, VOLUME, [], backed_up=without_volume).method == Method.SNAPSHOT
    by_plugin = data_backup(
        BackupSpec(), CLAIM, VOLUME, [], backed_up=without_volume, server=ServerFlags(has_csi=False)
    )
    assert by_plugin.method == Method.NONE
    unknown = {"metadata": {"name": "pv"}}  # a tenant may not read what kind of volume it is
    assert data_backup(BackupSpec(), CLAIM, unknown, [], backed_up=without_volume).method == Method.SNAPSHOT
    opted_in = pod(backup_volumes="d")
    saved = data_backup(BackupSpec(), CLAIM, disk, [opted_in], backed_up=BackedUp([opted_in], volume=False))
    assert saved.method == Method.FILE_SYSTEM


DISK = {"spec": {"awsElasticBlockStore": {"volumeID": "vol-1"}}}
GOLD = "{pvcLabels: {tier: gold}}"


@pytest.mark.parametrize(
    ("first", "second", "by_csi", "native"),
    [
        ("snapshot", "skip", Method.SNAPSHOT, Method.NONE),
        ("snapshot", "snapshot", Method.SNAPSHOT, Method.SNAPSHOT),
        ("skip", "snapshot", Method.NONE, Method.NONE),
        ("fs-backup", "snapshot", Method.NONE, Method.SNAPSHOT),
        ("fs-backup", "skip", Method.NONE, Method.NONE),
        ("custom", "skip", Method.CUSTOM, Method.CUSTOM),
    ],
)
def test_conditions_on_claims_do_not_hold_for_native_snapshots_unless_they_skip(
    first: str, second: str, by_csi: Method, native: Method
) -> None:
    rules = f"{{conditions: {GOLD}, action: {{type: {first}}}}}, {{action: {{type: {second}}}}}"
    policies = policies_of({"policy": f"{{version: v1, volumePolicies: [{rules}]}}"})
    assert data_backup(BackupSpec(), CLAIM, VOLUME, [], policies).method == by_csi
    assert data_backup(BackupSpec(), CLAIM, VOLUME, [], policies, server=ServerFlags(has_csi=False)).method == native
    assert data_backup(BackupSpec(), CLAIM, DISK, [], policies).method == native


def test_a_native_volume_without_a_policy_of_its_own_is_snapshotted_by_the_spec() -> None:
    policies = policies_of(
        {"policy": f"{{version: v1, volumePolicies: [{{conditions: {GOLD}, action: {{type: snapshot}}}}]}}"}
    )
    spec = BackupSpec(snapshot_volumes=False)
    assert data_backup(spec, CLAIM, VOLUME, [], policies).method == Method.SNAPSHOT
    found = data_backup(spec, CLAIM, DISK, [], policies)
    assert (found.method, found.reason) == (Method.NONE, "snapshotVolumes is false and no pod mounts it")
    assert data_backup(BackupSpec(), CLAIM, DISK, [], policies).method == Method.SNAPSHOT
    chosen = data_backup(BackupSpec(), CLAIM, DISK, [pod(backup_volumes="d")], policies)
    assert chosen.method == Method.NONE
    assert chosen.reason.endswith("a volume that a pod chooses for file-system backup")


def volume_policies(*actions: str, conditions: str = "{}") -> Policies:
    rules = ", ".join(f"{{conditions: {conditions}, action: {{type: {each}}}}}" for each in actions)
    return policies_of({"policy": f"{{version: v1, volumePolicies: [{rules}]}}"})


def test_volume_policies_of_the_server_come_after_those_of_the_spec() -> None:
    skips = merged(None, volume_policies("skip"))
    assert data_backup(BackupSpec(), CLAIM, DISK, [], skips).reason == "a volume policy skips it"
    own_first = merged(volume_policies("snapshot"), volume_policies("skip"))
    assert data_backup(BackupSpec(), CLAIM, DISK, [], own_first).method == Method.SNAPSHOT
    not_met = merged(volume_policies("snapshot", conditions="{storageClass: [slow]}"), volume_policies("skip"))
    assert data_backup(BackupSpec(), CLAIM, VOLUME, [], not_met).method == Method.NONE


def test_only_volume_policies_hold_for_all_backups() -> None:
    text = "{version: v1, includeExcludePolicy: {excludedNamespaceScopedResources: [pods]}}"
    policies = policies_of({"policy": text})
    assert not merged(None, policies).filters_kinds
    assert merged(policies, volume_policies("skip")).filters_kinds


def test_the_csi_plugin_does_not_know_volume_policies_of_the_server() -> None:
    policies, spec = merged(None, volume_policies("snapshot")), BackupSpec(snapshot_volumes=False)
    assert data_backup(spec, CLAIM, DISK, [], policies).method == Method.SNAPSHOT
    found = data_backup(spec, CLAIM, VOLUME, [], policies)
    assert found.method == Method.NONE
    assert found.reason.startswith("Velero's CSI plugin ignores global volume policies: snapshotVolumes is false")
    assert data_backup(BackupSpec(), CLAIM, VOLUME, [], policies).method == Method.SNAPSHOT


def test_a_file_system_backup_leaves_out_host_paths_devices_and_what_no_container_mounts() -> None:
    spec = BackupSpec(default_volumes_to_fs_backup=True)
    host = {"spec": {"hostPath": {"path": "/data"}}}
    assert data_backup(spec, CLAIM, host, [pod()]).reason == "file-system backup does not support hostPath volumes"
    device = pod()
    device["spec"]["containers"] = [{"name": "c", "volumeDevices": [{"name": "d", "devicePath": "/dev/d"}]}]
    assert data_backup(spec, CLAIM, VOLUME, [device]).reason == "file-system backup does not support block devices"
    unused = pod()
    unused["spec"]["containers"] = [{"name": "c"}]
    assert data_backup(spec, CLAIM, VOLUME, [unused]).reason == "no container mounts it"
    assert data_backup(spec, CLAIM, VOLUME, [unused, pod()]).method == Method.FILE_SYSTEM


def test_a_resource_policy_decides_about_each_volume_of_a_pod() -> None:
    text = "version: v1\nvolumePolicies: [{conditions: {volumeTypes: [emptyDir]}, action: {type: fs-backup}}]"
    policies = policies_of({"policy": text})
    assert pod_volumes(BackupSpec(), pod(), {"data": (CLAIM, VOLUME)}, policies) == ["tmp"]
    found = pod_volumes(BackupSpec(default_volumes_to_fs_backup=True), pod(), {"data": (CLAIM, VOLUME)}, policies)
    assert found == ["d", "tmp"]


def test_volumes_without_data_are_never_saved() -> None:
    assert pod_volumes(BackupSpec(default_volumes_to_fs_backup=True), pod()) == ["d", "tmp"]


@pytest.mark.parametrize("kind", ["nfs", "hostPath", "local"])
def test_nobody_snapshots_volumes_that_no_plugin_knows(kind: str) -> None:
    found = data_backup(BackupSpec(), CLAIM, {"spec": {kind: {}}}, [])
    assert (found.method, found.reason) == (Method.NONE, f"no plugin of Velero snapshots {kind} volumes")


def test_without_a_volume_snapshot_location_there_are_snapshots_by_csi_only() -> None:
    without = ServerFlags(snapshot_providers=frozenset())
    found = data_backup(BackupSpec(), CLAIM, DISK, [], server=without)
    assert found.reason == "Velero has no VolumeSnapshotLocation, so it makes no native snapshots"
    assert data_backup(BackupSpec(), CLAIM, VOLUME, [], server=without).method == Method.SNAPSHOT
    plain = ServerFlags(has_csi=False, snapshot_providers=frozenset())
    assert data_backup(BackupSpec(), CLAIM, VOLUME, [], server=plain).method == Method.NONE


@pytest.mark.parametrize(
    ("providers", "volume", "method"),
    [
        (["velero.io/aws"], {"awsElasticBlockStore": {}}, Method.SNAPSHOT),
        (["aws"], {"csi": {"driver": "ebs.csi.aws.com"}}, Method.SNAPSHOT),
        (["aws"], {"csi": {"driver": "driver.longhorn.io"}}, Method.NONE),
        (["aws"], {"rbd": {}}, Method.NONE),
        (["aws", "gcp"], {"gcePersistentDisk": {}}, Method.SNAPSHOT),
        (["aws", "portworx.io/portworx"], {"portworxVolume": {}}, Method.SNAPSHOT),
    ],
)
def test_a_plugin_snapshots_the_volumes_of_its_provider(
    providers: list[str], volume: dict[str, Any], method: Method
) -> None:
    server = ServerFlags(has_csi=False, snapshot_providers=frozenset(providers))
    assert data_backup(BackupSpec(), CLAIM, {"spec": volume}, [], server=server).method == method
