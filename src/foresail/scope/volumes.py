"""How a backup saves the data of a claim: by the file system, by a snapshot, or not at all and why."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from foresail.api.quantities import quantity
from foresail.api.specs import BackupSpec
from foresail.scope.discovery import PODS
from foresail.scope.releases import Release
from foresail.scope.resource_policies import Conditions, MergedPolicies, Policies, capacity_range
from foresail.scope.server import UNKNOWN, ServerFlags
from foresail.scope.world import Item, is_running

OPT_IN = "backup.velero.io/backup-volumes"
OPT_OUT = "backup.velero.io/backup-volumes-excludes"
_SNAPSHOT_IDS = "snapshot.velero.io/"
"""Begins the annotations of a pod by which Velero writes files into its volumes when it restores the pod."""
_WITHOUT_DATA = ("hostPath", "secret", "configMap", "projected", "downwardAPI")
_NEVER_SNAPSHOTTED = ("nfs", "hostPath", "local")
_NATIVE = {
    "aws": ("awsElasticBlockStore", "ebs.csi.aws.com"),
    "azure": ("azureDisk", "disk.csi.azure.com"),
    "gcp": ("gcePersistentDisk", "pd.csi.storage.gke.io"),
}
"""By provider of a VolumeSnapshotLocation: the type of volume and the CSI driver that its plugin snapshots."""

_NO_CLAIM: dict[str, Any] = {"metadata": {}}
_TYPES = (
    "awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "csi", "fc", "flocker", "flexVolume",
    "emptyDir", "ephemeral", "gcePersistentDisk", "gitRepo", "glusterfs", "hostPath", "iscsi", "local", "nfs",
    "photonPersistentDisk", "portworxVolume", "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume",
)  # fmt: skip
_TYPE_NAMES = {"storageos": "storageOS"}
"""How a policy names the types that are not named like their field."""


class Method(StrEnum):
    """How the data of a claim is saved."""

    FILE_SYSTEM = "FileSystem"
    SNAPSHOT = "Snapshot"
    CUSTOM = "Custom"
    NONE = "None"


@dataclass(frozen=True, slots=True)
class DataBackup:
    """How a backup saves the data of a claim, and why it does not."""

    method: Method
    reason: str = ""


Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BackedUp:
    """Which of the pods that mount a claim are in a backup, and whether its PersistentVolume is."""

    pods: Collection[Body]
    volume: bool = True


def data_backup(
    spec: BackupSpec,
    claim: Body,
    volume: Body | None,
    pods: Collection[Body],
    policies: Policies | None = None,
    backed_up: BackedUp | None = None,
    server: ServerFlags = UNKNOWN,
) -> DataBackup:
    """Return how a Backup with this spec saves the data of a claim that these pods mount; all are backed up by default.

    Whether a snapshot succeeds depends on the storage: a snapshot here means that Velero asks for one.
    """
    spec = server.completed(spec)
    if backed_up is None:
        backed_up = BackedUp(pods)
    action = matched_action(policies, claim, volume)
    if action == "skip":
        return DataBackup(Method.NONE, "a volume policy skips it")
    if action == "custom":
        return DataBackup(Method.CUSTOM)
    opted_in = _opted_in(spec, _all_mounts(pods, claim), action)
    saved = None
    if action == "fs-backup" or (action is None and opted_in):
        saved = _file_system(opted_in, volume, backed_up.pods)
        if saved.method is Method.FILE_SYSTEM:
            return saved
    reason = why_no_snapshot(spec, claim, volume, pods, policies, backed_up, has_csi=server.has_csi)
    if not reason and volume is not None and not (server.has_csi and _may_be_csi(volume)):
        reason = _why_no_plugin(volume.get("spec") or {}, server.snapshot_providers)
    return (saved or DataBackup(Method.NONE, reason)) if reason else DataBackup(Method.SNAPSHOT)


def _opted_in(spec: BackupSpec, mounted: Iterable[tuple[Body, str]], action: str | None) -> list[tuple[Body, str]]:
    """Return the mounts whose files a volume policy or the pods choose to copy."""
    return [(pod, name) for pod, name in mounted if action == "fs-backup" or uses_file_system(spec, pod, name)]


def why_no_snapshot(
    spec: BackupSpec,
    claim: Body,
    volume: Body | None,
    pods: Collection[Body],
    policies: Policies | None,
    backed_up: BackedUp,
    *,
    has_csi: bool,
) -> str:
    """Return why Velero asks for no snapshot of a volume; empty if it asks for one.

    A snapshot by CSI is made for the claim. A native one is made for the PersistentVolume, whatever its claim is like:
    of the volume policies with conditions on claims, only those that skip count.
    """
    if volume is None:
        return "it has no volume yet"
    is_csi = has_csi and _may_be_csi(volume)
    action = _snapshot_action(policies, claim, volume, is_csi=is_csi)
    if action not in (None, "snapshot"):
        return f"conditions on claims do not hold for its native snapshot, and the next volume policy has {action}"
    mounted = _all_mounts(pods, claim)
    if action is None and any(uses_file_system(spec, pod, name) for pod, name in mounted):
        return "Velero makes no snapshot of a volume that a pod chooses for file-system backup"
    if action is None and spec.snapshot_volumes is False:
        return _why_no_file_system(spec, mounted)
    if is_csi and isinstance(policies, MergedPolicies):
        reason = why_no_snapshot(spec, claim, volume, pods, policies.own, backed_up, has_csi=has_csi)
        return f"Velero's CSI plugin ignores global volume policies: {reason}" if reason else ""
    return "" if is_csi or backed_up.volume else "the backup leaves out its PersistentVolume"


def _snapshot_action(policies: Policies | None, claim: Body, volume: Body, *, is_csi: bool) -> str | None:
    """Return what the volume policies say when Velero comes to the snapshot."""
    action = matched_action(policies, claim, volume)
    if is_csi or action == "skip":
        return action
    return matched_action(policies, _NO_CLAIM, volume)


def _why_no_plugin(volume: Body, providers: frozenset[str] | None) -> str:
    """Return why no plugin answers when Velero asks for a native snapshot; Velero reports that in its log only."""
    if providers is not None and not providers:
        return "Velero has no VolumeSnapshotLocation, so it makes no native snapshots"
    kind = next((kind for kind in _NEVER_SNAPSHOTTED if kind in volume), "")
    if kind:
        return f"no plugin of Velero snapshots {kind} volumes"
    names = {provider.removeprefix("velero.io/") for provider in providers or ()}
    if not names or not names <= _NATIVE.keys():  # another plugin may know it
        return ""
    driver = (volume.get("csi") or {}).get("driver")
    if _has_plugin(volume, driver, names):
        return ""
    what = f"volumes of the CSI driver {driver}" if driver else "this type of volume"
    return f"the plugin for {', '.join(sorted(names))} does not snapshot {what}"


def _has_plugin(volume: Body, driver: str | None, names: Iterable[str]) -> bool:
    natives = (_NATIVE[name] for name in names)
    return any(field in volume or driver == own for field, own in natives)


def _may_be_csi(volume: Body) -> bool:
    """Whether Velero snapshots a volume for its claim; a tenant may not read the spec, so it is unknown."""
    return "spec" not in volume or "csi" in volume["spec"]


def uses_file_system(spec: BackupSpec, pod: Body, volume: str) -> bool:
    """Whether the annotations of a pod and the default of a spec ask for a file-system backup of a volume."""
    annotations = pod["metadata"].get("annotations") or {}
    if by_default(spec):
        return volume not in annotations.get(OPT_OUT, "").split(",")
    return volume in annotations.get(OPT_IN, "").split(",")


def file_system_annotation(annotations: Mapping[str, str]) -> str | None:
    """Return the annotation by which a pod asks Velero to copy files from or to it; None if there is none.

    The volumes to leave out (OPT_OUT) count only where all others are copied by default.
    """
    if any(annotations.get(OPT_IN, "").split(",")):
        return OPT_IN
    return next((key for key in sorted(annotations) if key.startswith(_SNAPSHOT_IDS)), None)


def file_system_gap(policies: Policies) -> str:
    """Return how volume policies leave a volume to file-system backup; empty if they decide about all without it."""
    for policy in policies.volume_policies:
        if policy.action.type == "fs-backup":
            return "has a volume policy with action fs-backup"
        if _is_for_all(policy.conditions):
            return ""
    return "does not end with a volume policy for all volumes (conditions: {})"


def _is_for_all(conditions: Conditions) -> bool:
    is_any_size = capacity_range(conditions.capacity) == (0, 0)
    return is_any_size and msgspec.structs.replace(conditions, capacity="") == Conditions()


def by_default(spec: BackupSpec) -> bool:
    """Whether volumes are saved by the file system unless a pod opts out."""
    return bool(spec.default_volumes_to_restic) or bool(spec.default_volumes_to_fs_backup)


Claims = Mapping[str, tuple[Body, Body | None]]
"""The claims of a namespace by name, each with its volume."""


def pod_volumes(
    spec: BackupSpec, pod: Body, claims: Claims | None = None, policies: Policies | None = None
) -> list[str]:
    """Return the volumes of a pod that Velero chooses for file-system backup."""
    items = []
    for item in pod["spec"].get("volumes") or ():
        name = item["name"]
        if any(kind in item for kind in _WITHOUT_DATA) or name.startswith("default-token"):
            continue
        source = (item.get("persistentVolumeClaim") or {}).get("claimName")
        claim, volume = (claims or {}).get(source, (_NO_CLAIM, None)) if source else (_NO_CLAIM, {"spec": item})
        action = matched_action(policies, claim, volume)
        if policies is not None and volume is None and action is None:
            continue  # an error: see `is_unjudged`
        if action == "fs-backup" or (action is None and uses_file_system(spec, pod, name)):
            items.append(name)
    return items


def is_unjudged(item: Item, policies: Policies | None, release: Release) -> bool:
    """Whether Velero fails to judge the volumes of a pod or claim because one is missing, and so leaves it out.

    A resource policy makes it look for the volume: before 1.18 always, then unless a policy matches the claim alone.
    """
    if policies is None or not item.unbound:
        return False
    if not release.has_filter_policies:
        return True
    return item.key.kind == PODS and any(
        not document or matched_action(policies, document, None) is None for document in item.unbound
    )


def matched_action(policies: Policies | None, claim: Body, volume: Body | None) -> str | None:
    """Return the action of the first volume policy that matches; None if none does."""
    for policy in policies.volume_policies if policies else ():
        if _meets(policy.conditions, claim, volume):
            return policy.action.type
    return None


def _file_system(mounted: Collection[tuple[Body, str]], volume: Body | None, backed_up: Collection[Body]) -> DataBackup:
    in_backup = [(pod, name) for pod, name in mounted if pod in backed_up]
    if mounted and not in_backup:
        return DataBackup(Method.NONE, "the backup leaves out every pod that mounts it")
    running = [(pod, name) for pod, name in in_backup if is_running(pod)]
    if not running:
        return DataBackup(Method.NONE, "no running pod mounts it")
    if "hostPath" in ((volume or {}).get("spec") or {}):
        return DataBackup(Method.NONE, "file-system backup does not support hostPath volumes")
    used = [_use(pod, name) for pod, name in running]
    if "volumeMounts" in used:
        return DataBackup(Method.FILE_SYSTEM)
    devices = "file-system backup does not support block devices"
    return DataBackup(Method.NONE, devices if "volumeDevices" in used else "no container mounts it")


def _use(pod: Body, volume: str) -> str:
    """Return how the containers of a pod use a volume; a device counts before a mount, as in Velero."""
    containers = pod["spec"].get("containers") or ()
    for how in ("volumeDevices", "volumeMounts"):
        if any(item["name"] == volume for container in containers for item in container.get(how) or ()):
            return how
    return ""


def _why_no_file_system(spec: BackupSpec, mounted: Collection[tuple[Body, str]]) -> str:
    if not mounted:
        return "snapshotVolumes is false and no pod mounts it"
    if by_default(spec):
        return "a pod opts out and snapshotVolumes is false"
    return "no pod opts in and snapshotVolumes is false"


def _all_mounts(pods: Collection[Body], claim: Body) -> list[tuple[Body, str]]:
    return [(pod, mount) for pod in pods for mount in _mounts(pod, claim["metadata"]["name"])]


def _mounts(pod: Body, claim: str) -> list[str]:
    volumes = pod["spec"].get("volumes") or ()
    return [
        volume["name"] for volume in volumes if (volume.get("persistentVolumeClaim") or {}).get("claimName") == claim
    ]


def _meets(conditions: Conditions, claim: Body, volume: Body | None) -> bool:
    of_volume = (volume or {}).get("spec") or {}
    return _meets_volume(conditions, of_volume) and _meets_claim(conditions, claim)


def _meets_volume(conditions: Conditions, volume: Body) -> bool:
    lower, upper = capacity_range(conditions.capacity)
    size = quantity(str((volume.get("capacity") or {}).get("storage", "0")))
    if size < lower or (size > upper and upper != 0):
        return False
    storage_class = volume.get("storageClassName") or ""
    if conditions.storage_class and (not storage_class or storage_class not in conditions.storage_class):
        return False
    kind = next((kind for kind in _TYPES if kind in volume), "")
    if conditions.volume_types and _TYPE_NAMES.get(kind, kind) not in conditions.volume_types:
        return False
    return _meets_nfs(conditions, volume.get("nfs")) and _meets_csi(conditions, volume.get("csi"))


def _meets_nfs(conditions: Conditions, nfs: Body | None) -> bool:
    wanted = conditions.nfs
    if wanted is None:
        return True
    if nfs is None:
        return False
    return wanted.path in ("", nfs.get("path")) and wanted.server in ("", nfs.get("server"))


def _meets_csi(conditions: Conditions, csi: Body | None) -> bool:
    wanted = conditions.csi
    if wanted is None:
        return True
    if csi is None or wanted.driver not in ("", csi.get("driver")):
        return False
    attributes = csi.get("volumeAttributes") or {}
    return all(attributes.get(key, "") == value for key, value in (wanted.volume_attributes or {}).items()) and (
        not wanted.volume_attributes or bool(attributes)
    )


def _meets_claim(conditions: Conditions, claim: Body) -> bool:
    labels = claim["metadata"].get("labels") or {}
    spec = claim.get("spec") or {}
    phase = (claim.get("status") or {}).get("phase", "")
    if any(labels.get(key) != value for key, value in conditions.pvc_labels.items()):
        return False
    if conditions.pvc_phase and phase not in conditions.pvc_phase:
        return False
    if conditions.pvc_volume_mode and spec.get("volumeMode", "") != conditions.pvc_volume_mode:
        return False
    modes = spec.get("accessModes") or ()
    return not conditions.pvc_access_modes or (
        len(modes) == len(conditions.pvc_access_modes) and set(modes) == set(conditions.pvc_access_modes)
    )
