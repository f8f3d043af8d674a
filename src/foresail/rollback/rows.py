"""The rows of Rollbacks and of the volumes that they keep."""

import msgspec

from foresail.api.marks import KEPT_VOLUME, ROLLBACK_IN_PROGRESS, ROLLBACK_UID
from foresail.api.metadata import Metadata
from foresail.api.rollback import Rollback
from foresail.plan import Key
from foresail.rollback.view import KeptRow, RollbackRow, VolumeSeen
from foresail.tenancy.requester import requester_of

RESTORED_BY = "velero.io/restore-name"
"""The label that Velero puts on what it restores, with the name of its Restore."""


class _ClaimReference(msgspec.Struct, frozen=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _VolumeSpec(msgspec.Struct, frozen=True, rename="camel"):
    claim_ref: _ClaimReference = _ClaimReference()
    persistent_volume_reclaim_policy: str = ""


class _VolumeStatus(msgspec.Struct, frozen=True):
    phase: str = ""


class MarkedVolume(msgspec.Struct, frozen=True):
    """A PersistentVolume, as far as a Rollback looks at it."""

    metadata: Metadata
    spec: _VolumeSpec = _VolumeSpec()
    status: _VolumeStatus = _VolumeStatus()


def rollback_row(wire: Rollback) -> RollbackRow:
    """Return what is kept of a Rollback."""
    meta = wire.metadata
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    requester, groups = requester_of(meta.annotations or {})
    return RollbackRow(
        key=Key(meta.namespace, meta.name),
        uid=meta.uid,
        version=meta.resource_version,
        generation=meta.generation,
        created=meta.creation_timestamp,
        spec=wire.spec,
        status=wire.status,
        requester=requester,
        groups=groups,
        restored_by=(meta.labels or {}).get(RESTORED_BY, ""),
        is_terminating=meta.deletion_timestamp is not None,
        finalizers=meta.finalizers,
        is_labelled=ROLLBACK_IN_PROGRESS in (meta.labels or {}),
        written=max((write.time for write in meta.managed_fields if write.time is not None), default=None),
    )


def kept_row(wire: MarkedVolume) -> KeptRow:
    """Return what is kept of a volume with the mark of a Rollback."""
    return KeptRow(Key("", wire.metadata.name), volume_seen(wire))


def volume_seen(wire: MarkedVolume) -> VolumeSeen:
    """Return a volume, with the mark of the Rollback that keeps it."""
    meta, reference = wire.metadata, wire.spec.claim_ref
    return VolumeSeen(
        meta.name,
        meta.uid,
        meta.resource_version,
        claim=Key(reference.namespace, reference.name),
        claim_uid=reference.uid,
        reclaim_policy=wire.spec.persistent_volume_reclaim_policy,
        phase=wire.status.phase,
        rollback_uid=(meta.labels or {}).get(ROLLBACK_UID, ""),
        record=(meta.annotations or {}).get(KEPT_VOLUME, ""),
        is_terminating=meta.deletion_timestamp is not None,
    )
