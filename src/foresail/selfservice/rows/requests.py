"""Rows of tenants' requests: a NonAdminBackup or a NonAdminRestore with its status.

Texts that many objects have in common, and the status that is in Velero's object and again in the tenant's, are
kept once: a hundred thousand requests are to fit into one process. For the same reason the rows are left out of the
collection of cycles: they hold nothing that could lead back to them.
"""

import sys
from collections.abc import Mapping
from datetime import datetime

import msgspec

from foresail.api import nonadmin, velero
from foresail.api.instants import instant
from foresail.api.marks import (
    ADOPTED,
    DELETE_AFTER,
    DELETE_REASON,
    PINNED,
    SCHEDULE_UID,
    SLOT,
)
from foresail.api.nonadmin import SYNCED_FROM, Condition
from foresail.plan import Key, Keyed
from foresail.selfservice.families import BACKUPS, Family
from foresail.selfservice.rows.velero import LONGEST_NAME, Counts, glimpse, interned, up_to
from foresail.tenancy.requester import requester_of

LARGEST_SPEC = 16 << 10
"""Bytes of JSON that a request's spec may have.

Specs of refused and waiting requests stay in memory, so a tenant chooses how much that is. An honest spec has fewer
than 2 KiB; 500 of the largest take 8 MiB.
"""

_source = msgspec.json.Decoder(nonadmin.RestoreSource)


class Copy(msgspec.Struct, frozen=True, gc=False):
    """What the status of a request says of one Velero object."""

    nacuuid: str = ""
    name: str = ""
    namespace: str = ""
    mirror: str = "{}"  # the status of that object, as it came: JSON
    spec: str = "{}"  # the same of its spec; only of a Backup


class Status(msgspec.Struct, frozen=True, gc=False):
    """The status of a request, all of it."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    velero: Copy = Copy()
    deletion: Copy = Copy()  # of the DeleteBackupRequest
    position: int | None = None
    starting_deadline: str = ""  # of a restore, as Kubernetes writes instants
    transfers: Counts = ()
    volumes: Counts = ()
    restored: nonadmin.RestoredItems | None = None  # of a restore, once Velero's files about it were read
    volumes_left_out: nonadmin.VolumesLeftOut | None = None  # of a complete backup

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of a type."""
        return next((condition for condition in self.conditions if condition.type == kind), None)


class RequestRow(Keyed, frozen=True):
    """A NonAdminBackup or a NonAdminRestore."""

    uid: str
    version: str
    generation: int
    created: datetime
    is_terminating: bool
    finalizer_index: int  # of our finalizer among all of them; -1 if it is not there
    has_others_finalizers: bool
    is_to_be_deleted: bool  # spec.deleteBackup
    is_to_be_forced: bool  # spec.forceDeleteBackup
    source: str  # of a restore, the NonAdminBackup
    spec: str  # what the tenant asks for, as it came; empty if it is oversized or no longer judged
    status: Status
    requester: str = ""  # the user who asked; empty if no admission policy recorded it
    requester_groups: tuple[str, ...] = ()
    restored_by: str = ""  # the Velero Restore that created this request; empty if none did
    is_oversized: bool = False  # whether the spec is larger than LARGEST_SPEC
    schedule_uid: str = ""  # of a backup, the NonAdminSchedule that it was created for
    slot: datetime | None = None  # the instant at which that was due
    delete_after: datetime | None = None  # of a run that `keepLast` gives up, when it is deleted
    waits_for_approval: bool = False  # of a run that `keepLast` gives up together with many others
    is_pinned: bool = False  # of a backup: its owner keeps it from `keepLast`
    adopted: str = ""  # the name of the Velero Backup that it was adopted from; empty if we made that ourselves
    adopted_uid: str = ""  # the UID of that Backup; the operator alone writes it
    target: str = ""  # of a restore: the one other namespace that it asks for; whether it may is not said
    point: str = ""  # of a restore: the backup of a ProtectionClass that it is from, instead of a NonAdminBackup
    edited: datetime | None = None  # of a restore: when its spec was last written, if the API server tells

    @property
    def is_being_removed(self) -> bool:
        """Whether it is deleted or is to be deleted, in whatever way."""
        return self.is_terminating or self.is_to_be_deleted or self.is_to_be_forced

    @property
    def has_finalizer(self) -> bool:
        """Whether our finalizer is on it."""
        return self.finalizer_index >= 0


def request_row(wire: nonadmin.Request, family: Family) -> RequestRow:
    """Return what is kept of a request."""
    meta = wire.metadata
    spec = wire.spec
    status = wire.status
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    is_backup = family is BACKUPS
    annotations = meta.annotations or {}
    labels = meta.labels or {}
    of_backup: Mapping[str, str] = annotations if is_backup else {}
    asked = spec.backup_spec if is_backup else spec.restore_spec
    wanted = nonadmin.RestoreSource() if is_backup else _source.decode(asked)
    is_oversized = memoryview(asked).nbytes > LARGEST_SPEC
    requester, groups = requester_of(annotations)
    return RequestRow(
        key=Key(sys.intern(meta.namespace), meta.name),
        uid=sys.intern(meta.uid),
        version=meta.resource_version,
        generation=meta.generation,
        created=meta.creation_timestamp,
        is_terminating=meta.deletion_timestamp is not None,
        finalizer_index=_index(meta.finalizers, family.finalizer),
        has_others_finalizers=any(finalizer != family.finalizer for finalizer in meta.finalizers),
        is_to_be_deleted=bool(spec.delete_backup),
        is_to_be_forced=bool(spec.force_delete_backup),
        source=up_to(LONGEST_NAME, wanted.backup_name or ""),
        spec="" if is_oversized or _has_begun(status, is_backup=is_backup) else bytes(asked).decode(),
        status=_status(status, is_backup=is_backup),
        requester=requester,
        requester_groups=groups,
        restored_by=sys.intern(labels.get(velero.RESTORE_NAME_LABEL, "")),
        is_oversized=is_oversized,
        schedule_uid=sys.intern(of_backup.get(SCHEDULE_UID, "")),
        slot=_instant_in(of_backup, SLOT),
        delete_after=_instant_in(of_backup, DELETE_AFTER),
        waits_for_approval=DELETE_REASON in of_backup and DELETE_AFTER not in of_backup,
        is_pinned=of_backup.get(PINNED) == "true",
        adopted=labels.get(SYNCED_FROM, "") if is_backup else "",
        adopted_uid=of_backup.get(ADOPTED, ""),
        target=_target_of(meta.namespace, wanted),
        point=_point_of(spec) if not is_backup else "",
        edited=None if is_backup else meta.spec_written,
    )


def _target_of(namespace: str, wanted: nonadmin.RestoreSource) -> str:
    """Return the other namespace that all of its own is mapped to; empty if any other mapping is asked for."""
    mapping = wanted.namespace_mapping or {}
    target = mapping.get(namespace, "") if len(mapping) == 1 else ""
    return sys.intern(up_to(LONGEST_NAME, target)) if target != namespace else ""


def _point_of(spec: nonadmin.RequestSpec) -> str:
    """Return the backup of a class that a restore names; a name that is too long, or empty, is that of none."""
    named = spec.from_protection
    return sys.intern(up_to(LONGEST_NAME, named.backup) or "?") if named is not None else ""


def _instant_in(annotations: Mapping[str, str], name: str) -> datetime | None:
    return instant(annotations[name]) if name in annotations else None


def _has_begun(status: nonadmin.RequestStatus, *, is_backup: bool) -> bool:
    """Whether Velero's object was made; of a restore, whether Velero has begun it, for until then it is judged."""
    if status.phase != "Created" or is_backup:
        return status.phase in ("Created", "Deleting")
    return glimpse(copy_of(status.velero_restore).mirror).phase not in velero.WAITING


def _status(wire: nonadmin.RequestStatus, *, is_backup: bool) -> Status:
    transfers = wire.data_mover_data_uploads if is_backup else wire.data_mover_data_downloads
    volumes = wire.file_system_pod_volume_backups if is_backup else wire.file_system_pod_volume_restores
    return Status(
        phase=sys.intern(wire.phase),
        conditions=conditions_of(wire.conditions or []),
        velero=copy_of(wire.velero_backup if is_backup else wire.velero_restore),
        deletion=copy_of(wire.velero_delete_backup_request),
        position=wire.queue_info.estimated_queue_position if wire.queue_info else None,
        starting_deadline=wire.starting_deadline,
        transfers=_counts(transfers),
        volumes=_counts(volumes),
        restored=None if is_backup else wire.restored_items,
        volumes_left_out=wire.volumes_left_out if is_backup else None,
    )


def conditions_of(wire: list[Condition]) -> tuple[Condition, ...]:
    """Return conditions with texts that are kept once."""
    times: dict[str, str] = {}  # several of them often come at the same instant
    return tuple(
        _condition(condition, times.setdefault(condition.last_transition_time, condition.last_transition_time))
        for condition in wire
    )


def _condition(wire: Condition, since: str) -> Condition:
    return Condition(
        sys.intern(wire.type),
        sys.intern(wire.status),
        sys.intern(wire.reason),
        sys.intern(wire.message),
        since,
        wire.observed_generation,
    )


def _index(texts: tuple[str, ...], text: str) -> int:
    return texts.index(text) if text in texts else -1


_NO_COPY = Copy()


def copy_of(wire: nonadmin.Reference | None) -> Copy:
    """Return what a status says of a Velero object."""
    if wire is None:
        return _NO_COPY
    nacuuid, name, namespace = map(sys.intern, (wire.nacuuid, wire.name, wire.namespace))
    return Copy(nacuuid, name, namespace, interned(wire.status), interned(wire.spec))


def _counts(counts: dict[str, int] | None) -> Counts:
    return tuple(sorted((sys.intern(name), number) for name, number in (counts or {}).items() if number))
