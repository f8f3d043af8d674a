"""What is wrong with a SelfServicePolicy that the schema alone does not find."""

from collections.abc import Collection, Iterator, Mapping

from foresail.api.policy import Bounds, SelfServicePolicy
from foresail.cron.duration import nanoseconds


def problems(
    policy: SelfServicePolicy,
    locations: Collection[str] | None,
    snapshots: Collection[str] | None,
    gaps: Mapping[str, str],
) -> list[str]:
    """Return each problem with its field; locations that are not known (None) are not checked.

    `gaps` has how the resource policies leave room for file-system backup, by the names of their ConfigMaps.
    """
    found = [*_empty_bounds(policy), *_deadlocks(policy), *_unknown_locations(policy, locations, snapshots)]
    return found if policy.spec.backup.file_system == "Allowed" else [*found, *_copied_files(policy, gaps)]


def resource_policies(policy: SelfServicePolicy) -> dict[str, str]:
    """Return the ConfigMaps that a policy names for backups, each with the field."""
    backup = policy.spec.backup
    found = dict.fromkeys(backup.allowed.resource_policies, "allowed.resourcePolicies")
    for field, values in (("defaults", backup.defaults), ("required", backup.required)):
        if values.resource_policy is not None:
            found[values.resource_policy.name] = f"{field}.resourcePolicy"
    return found


def _copied_files(policy: SelfServicePolicy, gaps: Mapping[str, str]) -> Iterator[str]:
    backup = policy.spec.backup
    for field, values in (("defaults", backup.defaults), ("required", backup.required)):
        if values.default_volumes_to_fs_backup:
            text = (
                f"spec.backup.{field}.defaultVolumesToFsBackup: fileSystem is Refused, so backups with it are refused"
            )
            yield f"{text}; remove it or set fileSystem: Allowed"
    for name, field in resource_policies(policy).items():
        if gaps.get(name):
            text = f"spec.backup.{field}: ConfigMap {name} {gaps[name]}, so backups with it are refused"
            yield f"{text}; correct it or set fileSystem: Allowed"


def _empty_bounds(policy: SelfServicePolicy) -> Iterator[str]:
    backup = policy.spec.backup
    restore = policy.spec.restore
    fields = {
        "backup.ttl": backup.ttl,
        "backup.csiSnapshotTimeout": backup.csi_snapshot_timeout,
        "backup.itemOperationTimeout": backup.item_operation_timeout,
        "backup.hooks.timeout": backup.hooks.timeout,
        "restore.itemOperationTimeout": restore.item_operation_timeout,
        "restore.hooks.timeout": restore.hooks.timeout,
    }
    for field, bounds in fields.items():
        if _is_empty(bounds):
            text = f"spec.{field}: the minimum {bounds.minimum} is longer than the maximum {bounds.maximum}"
            yield f"{text}, so every value is refused"


def _deadlocks(policy: SelfServicePolicy) -> Iterator[str]:
    """Yield why no run could start at the quota: the newest good and partial backups stay."""
    stored = policy.spec.quotas.stored
    schedules = policy.spec.schedules
    if stored is None or schedules.keep_last is None or not schedules.maximum:
        return
    least = max(schedules.keep_last, policy.spec.deletion.keep_last_good + 2, 3)
    if stored < least:
        yield f"spec.quotas.stored: {stored} is too low: what keepLast keeps leaves no room for a run; set {least}"
    elif stored <= 2 * schedules.maximum:
        text = f"spec.quotas.stored: {stored} has no room if each schedule has a good and a newer partial backup"
        yield f"{text}; raise it above twice schedules.maximum ({schedules.maximum}), or lower that"
    yield from _too_old(policy, stored)


def _too_old(policy: SelfServicePolicy, stored: int) -> Iterator[str]:
    """Yield why a schedule that runs as often as it may stops at the quota: no run is old enough to be deleted."""
    age = nanoseconds(policy.spec.deletion.minimum_age or "") or 0
    interval = nanoseconds(policy.spec.schedules.minimum_interval or "") or 0
    young = age // interval if interval else 0
    if young >= stored:
        text = f"spec.deletion.minimumAge: {policy.spec.deletion.minimum_age} keeps {young:,} runs of a schedule that"
        most = f"runs every {policy.spec.schedules.minimum_interval}, and quotas.stored is {stored}"
        yield f"{text} {most}, so it waits until one is old enough; raise quotas.stored or minimumInterval"


def _is_empty(bounds: Bounds) -> bool:
    least = nanoseconds(bounds.minimum or "")
    most = nanoseconds(bounds.maximum or "")
    return least is not None and most is not None and least > most


def _unknown_locations(
    policy: SelfServicePolicy, locations: Collection[str] | None, snapshots: Collection[str] | None
) -> Iterator[str]:
    backup = policy.spec.backup
    stored = {
        "allowed.storageLocations": backup.allowed.storage_locations,
        "defaults.storageLocation": (backup.defaults.storage_location or "",),
        "required.storageLocation": (backup.required.storage_location or "",),
    }
    snapped = {
        "allowed.volumeSnapshotLocations": backup.allowed.volume_snapshot_locations,
        "defaults.volumeSnapshotLocations": backup.defaults.volume_snapshot_locations or (),
        "required.volumeSnapshotLocations": backup.required.volume_snapshot_locations or (),
    }
    kinds = (("BackupStorageLocation", stored, locations), ("VolumeSnapshotLocation", snapped, snapshots))
    for kind, fields, known in kinds:
        for field, names in fields.items():
            for name in names:
                if name and known is not None and name not in known:
                    there = ", ".join(sorted(known)) or "none"
                    yield f"spec.backup.{field}: {kind} {name} does not exist; existing: {there}"
