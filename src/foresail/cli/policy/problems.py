"""What is wrong with a SelfServicePolicy that the schema alone does not find."""

from collections.abc import Collection, Iterator

from foresail.api.policy import Bounds, SelfServicePolicy
from foresail.cron.duration import nanoseconds


def problems(
    policy: SelfServicePolicy, locations: Collection[str] | None, snapshots: Collection[str] | None
) -> list[str]:
    """Return each problem with its field; locations that are not known (None) are not checked."""
    return [*_empty_bounds(policy), *_unknown_locations(policy, locations, snapshots)]


def _empty_bounds(policy: SelfServicePolicy) -> Iterator[str]:
    backup, restore = policy.spec.backup, policy.spec.restore
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


def _is_empty(bounds: Bounds) -> bool:
    least, most = nanoseconds(bounds.minimum or ""), nanoseconds(bounds.maximum or "")
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
