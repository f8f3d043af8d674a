"""What a decision about a tenant's request sees: flat rows of it, of Velero's object, of the namespace and the policy.

Texts that many objects have in common, and the status that stands in Velero's object and again in the tenant's, are
kept once: a hundred thousand requests are to fit into one process. For the same reason the rows are left out of the
collection of cycles: they hold nothing that could lead back to them.
"""

import sys
from datetime import datetime

import msgspec

from foresail.api import core, mirrored, nonadmin, velero
from foresail.api.marks import ATTEMPT, NAMESPACE_UID, ORPHANED, REOPENED, REQUEST_UID, REQUESTER, REQUESTER_GROUPS
from foresail.api.nonadmin import Condition
from foresail.plan import Key, Keyed
from foresail.selfservice.access_observe import AccessSeen
from foresail.selfservice.families import BACKUPS, Family
from foresail.selfservice.locations import LocationRow
from foresail.selfservice.policy import PolicyRow

LARGEST_SPEC = 16 << 10
"""Bytes of JSON that a request's spec may have.

Specs of refused and waiting requests stay in memory, so a tenant chooses how much that is. An honest spec has fewer
than 2 KiB; 500 of the largest take 8 MiB.
"""

LONGEST_NAME = 253
_LONGEST_USER = 1 << 10
_LONGEST_GROUPS = 16 << 10

Counts = tuple[tuple[str, int], ...]
"""How many volumes are how far, by the names that the status has for it; only what is not zero."""

_glimpse = msgspec.json.Decoder(mirrored.Glimpse)
_document = msgspec.json.Decoder(dict[str, object])
_encoder = msgspec.json.Encoder()
_source = msgspec.json.Decoder(nonadmin.RestoreSource)
_VELEROS_OWN = "queuePosition"  # it does not count those that run, and it changes for all whenever one is done


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
    transfers: Counts = ()
    volumes: Counts = ()

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of a type."""
        return next((each for each in self.conditions if each.type == kind), None)


class RequestRow(Keyed, frozen=True, gc=False):
    """A NonAdminBackup or a NonAdminRestore."""

    uid: str
    version: str
    generation: int
    created: datetime
    is_going: bool
    finalizer_index: int  # of our finalizer among all of them; -1 if it is not there
    has_others_finalizers: bool
    is_to_be_deleted: bool  # spec.deleteBackup
    is_to_be_forced: bool  # spec.forceDeleteBackup
    source: str  # of a restore, the NonAdminBackup
    spec: str  # what the tenant asks for, as it came; empty if it is oversized or Velero's object was made
    status: Status
    requester: str = ""  # the user who asked; empty if no admission policy recorded it
    requester_groups: tuple[str, ...] = ()
    restored_by: str = ""  # the Velero Restore that brought this request back; empty if nobody restored it
    is_oversized: bool = False  # whether the spec is larger than LARGEST_SPEC

    @property
    def is_to_go(self) -> bool:
        """Whether it is deleted or is to be deleted, in whatever way."""
        return self.is_going or self.is_to_be_deleted or self.is_to_be_forced

    @property
    def has_finalizer(self) -> bool:
        """Whether our finalizer is on it."""
        return self.finalizer_index >= 0


class VeleroRow(Keyed, frozen=True, gc=False):
    """A Velero Backup or Restore, whoever made it, with the record of whose it is."""

    uid: str
    created: datetime
    owner: Key | None  # the tenant's object by its names
    request_uid: str
    namespace_uid: str
    is_orphaned: bool
    is_going: bool
    phase: str
    queue_position: int
    expires: datetime | None
    mirror: str
    spec: str
    source: str = ""  # of a Restore, the Velero Backup that it is made from
    is_scheduled: bool = False  # of a Backup, whether a Schedule made it
    reopened: str = ""  # of a Backup, the UID of the refused deletion for which Velero was made to end it once more

    @property
    def is_terminal(self) -> bool:
        """Whether nothing happens in it any more."""
        return self.phase in velero.TERMINAL

    @property
    def is_waiting(self) -> bool:
        """Whether Velero has not begun with it."""
        return self.phase in velero.WAITING

    @property
    def is_queued(self) -> bool:
        """Whether it takes part in Velero's queue: it waits or runs, and not only its data is still moving."""
        return not self.is_terminal and self.phase not in velero.AFTER_THE_QUEUE


class DeletionRow(Keyed, frozen=True, gc=False):
    """A DeleteBackupRequest."""

    uid: str
    created: datetime
    owner: Key | None
    request_uid: str
    attempt: int
    phase: str
    errors: tuple[str, ...]
    mirror: str


class MovementRow(Keyed, frozen=True, gc=False):
    """The data of one volume on its way."""

    of: str  # the Velero Backup or Restore that it belongs to
    phase: str
    claim: str = ""  # the UID of the claim; empty if the volume has none


class NamespaceRow(msgspec.Struct, frozen=True, gc=False):
    """A namespace."""

    uid: str
    labels: dict[str, str]
    is_going: bool


class ClaimRow(msgspec.Struct, frozen=True):
    """A PersistentVolumeClaim."""

    name: str
    namespace: str
    uid: str
    created: datetime
    is_bound: bool


class Place(msgspec.Struct, frozen=True):
    """Where a request stands in Velero's queue, and when that is to be told if nothing else is."""

    position: int | None = None
    tell_at: datetime | None = None  # None: at once


class Turn(msgspec.Struct, frozen=True):
    """Whether a request may be handed over to Velero now, and if not, what it waits for."""

    is_blocked: bool = False
    message: str = ""
    until: datetime | None = None  # when to reconcile again; None if an event does


class Source(msgspec.Struct, frozen=True):
    """What a restore is made from: the tenant's backup and Velero's."""

    request: RequestRow | None
    velero: VeleroRow | None


class Seen(msgspec.Struct, frozen=True):
    """Everything that a decision about one request depends on, but the time."""

    family: Family
    request: RequestRow
    velero_namespace: str
    namespace: NamespaceRow | None
    policy: PolicyRow | None = None
    velero: VeleroRow | None = None  # by its name; whose it is, is for the rules to say
    deletion: DeletionRow | None = None
    source: Source | None = None  # of a restore
    stored: int = 0  # backups, or restores, of this namespace, without this one
    expirations: tuple[datetime, ...] = ()  # of the ended backups among them; only if the quota is reached
    active: int = 0
    locations: tuple[LocationRow, ...] = ()  # of a backup that is not accepted yet
    transfers: Counts = ()
    volumes: Counts = ()
    place: Place = Place()
    turn: Turn = Turn()
    history: int | None = None  # how many finished restores are kept, if this one is not among them
    unseen_since: datetime | None = None  # since when its Velero object may exist and is not seen
    claims: tuple[ClaimRow, ...] = ()  # of the namespace; only when a backup is complete and nobody has said so
    good: tuple[VeleroRow, ...] = ()  # the complete backups of the namespace; only if a deletion is asked for
    access: AccessSeen | None = None  # None: a backup is not checked, a restore waits
    saved: frozenset[str] = frozenset()  # the UIDs of those whose data was copied or moved


# From the wire to rows


def request_row(wire: nonadmin.Request, family: Family) -> RequestRow:
    """Return what is kept of a request."""
    meta, spec, status = wire.metadata, wire.spec, wire.status
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    annotations, is_backup = meta.annotations or {}, family is BACKUPS
    asked = spec.backup_spec if is_backup else spec.restore_spec
    source = None if is_backup else _source.decode(asked).backup_name
    is_oversized = memoryview(asked).nbytes > LARGEST_SPEC
    return RequestRow(
        key=Key(sys.intern(meta.namespace), meta.name),
        uid=meta.uid,
        version=meta.resource_version,
        generation=meta.generation,
        created=meta.creation_timestamp,
        is_going=meta.deletion_timestamp is not None,
        finalizer_index=_index(meta.finalizers, family.finalizer),
        has_others_finalizers=any(each != family.finalizer for each in meta.finalizers),
        is_to_be_deleted=bool(spec.delete_backup),
        is_to_be_forced=bool(spec.force_delete_backup),
        source=up_to(LONGEST_NAME, source or ""),
        spec="" if is_oversized or status.phase in ("Created", "Deleting") else bytes(asked).decode(),
        status=_status(status, is_backup=is_backup),
        requester=sys.intern(up_to(_LONGEST_USER, annotations.get(REQUESTER, ""))),
        requester_groups=_groups(up_to(_LONGEST_GROUPS, annotations.get(REQUESTER_GROUPS, ""))),
        restored_by=sys.intern((meta.labels or {}).get(velero.RESTORE_NAME_LABEL, "")),
        is_oversized=is_oversized,
    )


def up_to(most: int, text: str) -> str:
    """Return a tenant's text if it is no longer than that, else nothing: a part of it could name someone else."""
    return text if len(text) <= most else ""


def _groups(lines: str) -> tuple[str, ...]:
    return tuple(sys.intern(each) for each in lines.split("\n") if each)


def _status(wire: nonadmin.RequestStatus, *, is_backup: bool) -> Status:
    transfers = wire.data_mover_data_uploads if is_backup else wire.data_mover_data_downloads
    volumes = wire.file_system_pod_volume_backups if is_backup else wire.file_system_pod_volume_restores
    return Status(
        phase=sys.intern(wire.phase),
        conditions=_conditions(wire.conditions or []),
        velero=_copy(wire.velero_backup if is_backup else wire.velero_restore),
        deletion=_copy(wire.velero_delete_backup_request),
        position=wire.queue_info.estimated_queue_position if wire.queue_info else None,
        transfers=_counts(transfers),
        volumes=_counts(volumes),
    )


def _conditions(wire: list[Condition]) -> tuple[Condition, ...]:
    times: dict[str, str] = {}  # several of them often come at the same instant
    return tuple(
        _condition(each, times.setdefault(each.last_transition_time, each.last_transition_time)) for each in wire
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


def _copy(wire: nonadmin.Reference | None) -> Copy:
    if wire is None:
        return _NO_COPY
    nacuuid, name, namespace = map(sys.intern, (wire.nacuuid, wire.name, wire.namespace))
    return Copy(nacuuid, name, namespace, _shared(wire.status), _shared(wire.spec))


def _counts(found: dict[str, int] | None) -> Counts:
    return tuple(sorted((sys.intern(name), number) for name, number in (found or {}).items() if number))


def velero_row(wire: mirrored.Mirrored, family: Family) -> VeleroRow:
    """Return what is kept of a Velero Backup or Restore."""
    meta, seen = wire.metadata, _glimpse.decode(wire.status)
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    annotations = meta.annotations or {}
    return VeleroRow(
        key=Key(sys.intern(meta.namespace), sys.intern(meta.name)),
        uid=meta.uid,
        created=meta.creation_timestamp,
        owner=_owner(annotations, family),
        request_uid=annotations.get(REQUEST_UID, ""),
        namespace_uid=sys.intern(annotations.get(NAMESPACE_UID, "")),
        is_orphaned=ORPHANED in annotations,
        is_going=meta.deletion_timestamp is not None,
        phase=sys.intern(seen.phase),
        queue_position=seen.queue_position,
        expires=seen.expiration,
        mirror=_without_position(wire.status) if seen.queue_position else _shared(wire.status),
        spec=_shared(wire.spec) if family is BACKUPS else "{}",
        source="" if family is BACKUPS else sys.intern(_source.decode(wire.spec).backup_name or ""),
        is_scheduled=velero.SCHEDULE_LABEL in (meta.labels or {}),
        reopened=annotations.get(REOPENED, ""),
    )


def deletion_row(wire: mirrored.Mirrored) -> DeletionRow:
    """Return what is kept of a DeleteBackupRequest."""
    meta, seen = wire.metadata, _glimpse.decode(wire.status)
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    annotations = meta.annotations or {}
    attempt = annotations.get(ATTEMPT, "")
    return DeletionRow(
        key=Key(meta.namespace, meta.name),
        uid=meta.uid,
        created=meta.creation_timestamp,
        owner=_owner(annotations, BACKUPS),
        request_uid=annotations.get(REQUEST_UID, ""),
        attempt=int(attempt) if attempt.isdigit() else 1,
        phase=seen.phase,
        errors=tuple(seen.errors) if isinstance(seen.errors, list) else (),
        mirror=_shared(wire.status),
    )


def _owner(annotations: dict[str, str], family: Family) -> Key | None:
    name, namespace = annotations.get(family.origin_name), annotations.get(family.origin_namespace)
    return Key(sys.intern(namespace), name) if name and namespace else None


def movement_row(wire: mirrored.Movement, label: str) -> MovementRow:
    """Return what is kept of the data of one volume on its way."""
    meta = wire.metadata
    labels, key = meta.labels or {}, Key(meta.namespace, meta.name)
    return MovementRow(key, labels.get(label, ""), wire.status.phase, labels.get(velero.CLAIM_UID_LABEL, ""))


def claim_row(wire: core.Claim) -> ClaimRow:
    """Return what is kept of a PersistentVolumeClaim."""
    meta = wire.metadata
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    is_bound = core.BOUND in (meta.annotations or {})
    return ClaimRow(meta.name, sys.intern(meta.namespace), meta.uid, meta.creation_timestamp, is_bound)


def namespace_row(wire: core.Namespace) -> NamespaceRow:
    """Return what is kept of a namespace."""
    meta = wire.metadata
    return NamespaceRow(meta.uid, meta.labels or {}, meta.deletion_timestamp is not None)


def glimpse(mirror: str) -> mirrored.Glimpse:
    """Read from a mirrored status what decisions need; nothing, if it cannot be read."""
    try:
        return _glimpse.decode(mirror)
    except msgspec.DecodeError:
        return mirrored.Glimpse()


def movements(rows: list[MovementRow]) -> Counts:
    """Count volumes by how far they are; a phase that the status has no number for counts in the total alone."""
    counts = {"total": len(rows)}
    for row in rows:
        name = _COUNTED.get(row.phase)
        if name is not None:
            counts[name] = counts.get(name, 0) + 1
    return tuple(sorted((name, number) for name, number in counts.items() if number))


_COUNTED = {
    "": "new",
    "New": "new",
    "Accepted": "accepted",
    "Prepared": "prepared",
    "InProgress": "inProgress",
    "Canceling": "canceling",
    "Canceled": "canceled",
    "Failed": "failed",
    "Completed": "completed",
}


def _shared(raw: msgspec.Raw) -> str:
    return sys.intern(bytes(raw).decode())


def _without_position(raw: msgspec.Raw) -> str:
    """Return a status without Velero's own number in the queue; the request says it in its own words."""
    document = _document.decode(raw)
    document.pop(_VELEROS_OWN, None)
    return sys.intern(_encoder.encode(document).decode())
