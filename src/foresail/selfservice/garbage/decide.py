"""Objects of ours without an owner in Velero's namespace are removed, an hour later at the earliest.

A Backup is never garbage, because it can be adopted, nor is a location that still has one: that becomes read-only at
once. Deleting a location leaves its bucket as it is; Kubernetes deletes the copied Secret with it. The request for
approval is deleted after the location. Only objects with our complete record count: the
name and the UIDs in it must agree. Objects of the existing controller have no UIDs and are only reported, by
`foresail doctor`.
"""

from datetime import UTC, datetime, timedelta
from zlib import crc32

import msgspec

from foresail.api import velero
from foresail.api.marks import SUSPENDED
from foresail.api.nonadmin import NON_ADMIN_LOCATION, NON_ADMIN_LOCATION_REQUEST
from foresail.plan import Delete, Key, Kind, Note, Plan, Subject
from foresail.selfservice.families import BACKUPS, RESTORES
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests.file_requests import file_name
from foresail.selfservice.rows.locations import ApprovalRow, LocationRow
from foresail.selfservice.rows.velero import DeletionRow, DownloadRequestRow, VeleroRow, glimpse
from foresail.selfservice.specs.location import READ_ONLY, access_patch
from foresail.tenancy.records import nacuuid_of

KINDS = (
    velero.RESTORE,
    velero.DELETE_REQUEST,
    velero.DOWNLOAD_REQUEST,
    velero.LOCATION,
    NON_ADMIN_LOCATION_REQUEST,
)
"""The kinds of which objects may be garbage."""

GRACE = timedelta(hours=1)
"""How long an object without an owner is kept, from its end or its creation."""

CYCLE = timedelta(hours=1)
"""How often an object has its turn; when in the hour follows from its UID, so that thousands take an hour."""

_TURN = timedelta(minutes=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_IN_PROGRESS = "InProgress"


class GarbageView(msgspec.Struct, frozen=True):
    """An object that was made for an owner that does not exist; other kinds of owned objects plug in here."""

    kind: Kind
    key: Key
    uid: str
    since: datetime  # when it ended, or was created
    owner: str  # in words
    used: LocationRow | None = None  # a location that Backups are in: it is not deleted, but made read-only


def decide(view: GarbageView, now: datetime) -> Plan:
    """Delete an object without an owner at its turn; until then, wait. A location with Backups becomes read-only."""
    if view.used is not None:
        return _suspend(view, view.used)
    turn, later = turns(view, now)
    if turn is None or now >= turn + _TURN:
        return Plan(wake_at=later)
    text = f"Deleted {view.kind.name} {view.key.name}: {view.owner} does not exist. Backups are never deleted this way"
    note = Note(view.kind, view.key, view.uid, Reason.OWNER_GONE.value, text)
    return Plan(
        (Delete(view.kind, view.key, view.uid),),
        notes=(note,),
        wake_at=later,
        subject=Subject(view.kind, view.key, view.uid),
    )


def is_deleted(view: GarbageView, plan: Plan) -> bool:
    """Whether a Plan deletes the object, instead of making a location read-only."""
    return view.used is None and bool(plan.actions)


def _suspend(view: GarbageView, row: LocationRow) -> Plan:
    if row.suspended and row.is_read_only:
        return Plan()
    marks: dict[str, str | None] = {SUSPENDED: Reason.OWNER_GONE.value}
    text = f"Set {view.kind.name} {view.key.name} to ReadOnly: {view.owner} does not exist, and Backups are in it"
    note = Note(view.kind, view.key, view.uid, Reason.OWNER_GONE.value, f"{text}. It is deleted after them")
    write = access_patch(row, view.key.namespace, marks, READ_ONLY)
    return Plan((write,), notes=(note,), subject=Subject(view.kind, view.key, view.uid))


def turns(view: GarbageView, now: datetime) -> tuple[datetime | None, datetime]:
    """Return the last turn of an object up to now, None if there was none, and the next one."""
    due = view.since + GRACE
    offset = timedelta(seconds=crc32(view.uid.encode()) % CYCLE.total_seconds())
    first = due + (offset - (due - _EPOCH)) % CYCLE
    if now < first:
        return None, first
    last = now - (now - first) % CYCLE
    return last, last + CYCLE


# Which objects may be garbage: the owner is for the observer to look up


def restore_view(row: VeleroRow) -> GarbageView | None:
    """Return the view of a finished Velero Restore that we made; None for any other."""
    owner = row.owner
    if owner is None or not row.is_recorded or not row.is_terminal or row.is_terminating:
        return None
    if row.key.name != nacuuid_of(owner.namespace, owner.name, row.request_uid):
        return None
    ended = glimpse(row.mirror).completion_timestamp or row.created
    return GarbageView(RESTORES.velero, row.key, row.uid, max(row.created, ended), f"{RESTORES.kind.name} {owner}")


def deletion_view(row: DeletionRow) -> GarbageView | None:
    """Return the view of a DeleteBackupRequest that we made and Velero is not working on; None for any other."""
    owner = row.owner
    if owner is None or not row.request_uid or row.phase == _IN_PROGRESS:
        return None
    if row.key.name != nacuuid_of(owner.namespace, owner.name, row.request_uid):
        return None
    return GarbageView(velero.DELETE_REQUEST, row.key, row.uid, row.created, f"{BACKUPS.kind.name} {owner}")


def file_view(row: DownloadRequestRow, prefix: str) -> GarbageView | None:
    """Return the view of a DownloadRequest that the operator made about a Velero Backup; None for any other."""
    if not row.backup_uid or row.owner is not None or row.key.name != file_name(prefix, row.backup_uid):
        return None
    return GarbageView(velero.DOWNLOAD_REQUEST, row.key, row.uid, row.created, f"Velero Backup {row.target.name}")


def location_view(row: LocationRow, namespace: str, *, holds_backups: bool = False) -> GarbageView | None:
    """Return the view of a Velero location that we made for a tenant; None for any other."""
    view = _made_for_location(velero.LOCATION, Key(namespace, row.name), row)
    return msgspec.structs.replace(view, used=row) if view is not None and holds_backups else view


def approval_view(row: ApprovalRow) -> GarbageView | None:
    """Return the view of a request for approval that we made; None for any other."""
    return _made_for_location(NON_ADMIN_LOCATION_REQUEST, row.key, row)


def _made_for_location(kind: Kind, key: Key, row: LocationRow | ApprovalRow) -> GarbageView | None:
    owner = row.owner
    if owner is None or row.created is None or not row.request_uid or not row.namespace_uid:
        return None
    if key.name != nacuuid_of(owner.namespace, owner.name, row.request_uid):
        return None
    return GarbageView(kind, key, row.uid, row.created, f"{NON_ADMIN_LOCATION.name} {owner}")
