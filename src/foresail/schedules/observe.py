"""What a decision about a Schedule depends on: flat rows of it, its Backups, its location and the Velero server."""

import re
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from foresail.api import nonadmin, velero
from foresail.api.instants import instant, utc
from foresail.api.marks import DELETE_AFTER, PINNED, PROTECTION_CLASS, SCHEDULE_UID, SLOT
from foresail.cron import Dialect
from foresail.origin import is_synced
from foresail.plan import Key, Keyed
from foresail.schedules.settings import Settings
from foresail.schedules.storage_errors import cause_of
from foresail.slots.policy_timing import PolicyRow

_REPETITION = re.compile("-[0-9]{14}-[^-]+-r[0-9]+$")  # the end of the name: its slot, its Schedule, the attempt
_LONGEST_REASON = 256
_template = msgspec.json.Decoder(velero.Template)


class ScheduleRow(Keyed, frozen=True):
    """A Schedule, with everything that its Backups get from it."""

    uid: str
    version: str
    created: datetime
    is_terminating: bool
    labels: dict[str, str]
    annotations: dict[str, str]
    text: str  # the cron expression
    template: bytes  # raw JSON
    location: str  # the storage location that the template names; empty for the default one
    paused: bool
    skip: bool | None  # spec.skipImmediately
    owns_backups: bool
    phase: str
    last_backup: datetime | None
    last_skipped: datetime | None
    errors: tuple[str, ...]

    @property
    def protection_class(self) -> str:
        """The ProtectionClass that it is kept for; empty if it is for none."""
        return self.annotations.get(PROTECTION_CLASS, "")

    @property
    def included(self) -> tuple[str, ...]:
        """The namespaces that its template names."""
        return _template.decode(self.template).included_namespaces or ()


class BackupRow(Keyed, frozen=True):
    """A Backup that carries the label of a Schedule, whoever made it."""

    schedule: str
    schedule_uid: str  # empty unless Foresail made it
    slot: datetime | None  # the same
    phase: str
    created: datetime
    completed: datetime | None
    expires: datetime | None
    location: str = ""
    is_pinned: bool = False
    uid: str = ""
    version: str = ""
    failure: str = ""  # Velero's reason for a failure
    delete_after: datetime | None = None  # retention has marked it, and deletes it then
    began: datetime | None = None  # when Velero began it
    items: int | None = None  # how many objects it has; None if that is unknown
    selection: int = 0  # a digest of what it selects

    @property
    def name(self) -> str:
        """Its name."""
        return self.key.name

    @property
    def started(self) -> datetime:
        """When it was made, by the API server's clock: the operator's may have been wrong, and then its slot is."""
        return self.created

    @property
    def is_repetition(self) -> bool:
        """Whether Foresail made it because an earlier attempt at its slot had failed."""
        return self.slot is not None and _REPETITION.search(self.key.name) is not None

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended."""
        return self.phase in velero.TERMINAL

    @property
    def is_waiting(self) -> bool:
        """Whether Velero has not begun it; what Velero synced from a bucket was begun long ago."""
        return self.phase in velero.WAITING

    @property
    def is_synced(self) -> bool:
        """Whether it came from a bucket: it was made in this cluster after it had ended, or begun, in another one."""
        return is_synced(self.created, self.began, self.completed, made_for=self.schedule_uid)

    def is_run_of(self, schedule: ScheduleRow) -> bool:
        """Whether it proves that this Schedule runs: its own, or one without a UID that this cluster made."""
        return self.schedule_uid == schedule.uid or (not self.schedule_uid and not self.is_synced)

    def is_of(self, schedule: ScheduleRow) -> bool:
        """Whether it may be this Schedule's: not if another cluster made it for its own Schedule of that name."""
        return self.schedule_uid in ("", schedule.uid)


class LocationRow(Keyed, frozen=True):
    """A BackupStorageLocation."""

    is_default: bool
    is_read_only: bool
    phase: str
    message: str
    is_tenants: bool = False  # self-service made it for a tenant's own bucket


class DeletionRow(Keyed, frozen=True):
    """A DeleteBackupRequest."""

    backup: str
    is_open: bool  # Velero has not processed it
    is_ours: bool
    errors: tuple[str, ...] = ()
    stalls_at: datetime | None = None  # when it counts as abandoned
    uid: str = ""
    backup_uid: str = ""  # of the Backup that it was made for
    is_begun: bool = False

    def is_stalled(self, now: datetime) -> bool:
        """Whether Velero has not begun or not finished it in time: it does not work, or was killed amid it."""
        return self.stalls_at is not None and self.stalls_at <= now

    def is_pending(self, now: datetime) -> bool:
        """Whether Velero works on it or will."""
        return self.is_open and not self.is_stalled(now)


class RestoreRow(Keyed, frozen=True):
    """A Restore that has not ended, by its Backup or its Schedule; of one that has ended, nothing."""

    backup: str = ""
    schedule: str = ""


class Unread(msgspec.Struct, frozen=True):
    """An object that exists and cannot be decoded, and why."""

    key: Key
    problem: str


class VeleroServer(msgspec.Struct, frozen=True):
    """What is known of the Velero server; the dialect is None if it is unknown."""

    dialect: Dialect | None
    version: str = ""
    has_schedule_controller: bool = False  # its own schedule controller is on
    version_requested: datetime | None = None  # when the version was requested, while there is no answer
    unread: Unread | None = None  # a Deployment that may run it
    scheduling_pod: Key | None = None  # a pod that was started with it on, and has not ended
    is_recognised: bool = True  # a Deployment or a pod runs it, or an administrator vouches that its controller is off
    default_ttl: timedelta | None = None  # of a Backup that names none; None if no Deployment tells it

    @property
    def runs_schedules(self) -> bool:
        """Whether Velero creates the Backups of Schedules, or may create them any moment."""
        return bool(self.has_schedule_controller or self.scheduling_pod or self.unread or not self.is_recognised)


class Turn(NamedTuple):
    """The place of a run in the queue of its group: the least comes first."""

    since: datetime  # the first instant at which a slot since the last run could start
    ran: datetime  # when that last run started; of those that wait equally long, the one that ran longest ago is first


class GroupView(msgspec.Struct, frozen=True):
    """The group of a Schedule whose Backups are limited: who runs, and who waits."""

    name: str
    most: int
    unfinished: tuple[str, ...] = ()  # Backups, those that are being created included, or the first of them
    more: int = 0  # unfinished Backups beside these
    is_reserving: bool = False  # some of them are being created
    waiting: tuple[tuple[Turn, Key], ...] = ()  # the first other Schedules that wait, in their order
    turn: Turn | None = None  # by which this Schedule waits already
    limited_by: str = ""  # the SchedulePolicy with the smallest max of the group, if that of this Schedule has a larger

    @property
    def free(self) -> int:
        """How many Backups may start now."""
        return max(self.most - len(self.unfinished) - self.more, 0)


class ScheduleView(msgspec.Struct, frozen=True):
    """Everything that a decision about one Schedule depends on, except the time."""

    schedule: ScheduleRow
    backups: tuple[BackupRow, ...]
    location: LocationRow | None
    server: VeleroServer
    settings: Settings
    unread: tuple[Unread, ...] = ()  # its Backups that cannot be read
    policy: PolicyRow | None = None
    unread_policies: tuple[Unread, ...] = ()  # each may be the one that applies
    locations: tuple[LocationRow, ...] = ()  # all of them
    deletions: tuple[DeletionRow, ...] = ()  # of its Backups
    open_deletions: int = 0  # of all Schedules, that Velero works on or will
    unusable: Mapping[str, Unread] = {}  # by Backup: a request with the name of its deletion that does not delete it
    unrequested: Mapping[str, datetime] = {}  # its Backups in phase Deleting without a request, by when that was seen
    restored: frozenset[str] = frozenset()  # its Backups that a Restore reads
    group: GroupView | None = None  # if its policy limits concurrent Backups
    deleted: datetime | None = None  # the slot of a Backup that was deleted before status.lastBackup recorded it
    unobserved: datetime | None = None  # the slot of a Backup that was created and is not in the store yet
    skew: timedelta | None = None  # by how much the operator's clock is ahead of the API server's; None if unknown
    stale: tuple[str, ...] = ()  # the kinds whose present state is not known, as their watches bring nothing
    is_record_refused: bool = False  # the API server refused the last write to the Schedule
    namespaces: Mapping[str, str] | None = None  # of a ProtectionClass: the UIDs of those that it takes


def is_unfinished(backup: BackupRow, schedule: ScheduleRow, now: datetime) -> bool:
    """Whether a Backup of this Schedule runs or waits to run, in this cluster.

    Backups that another cluster made for its Schedule of the same name do not count, nor do expired ones: Velero
    synced those from storage and will delete them.
    """
    is_past = backup.expires is not None and backup.expires <= now
    return backup.is_of(schedule) and not backup.is_terminal and not is_past


def schedule_row(wire: velero.Schedule) -> ScheduleRow:
    """Return the row of a Schedule."""
    meta = wire.metadata
    spec = wire.spec
    status = wire.status
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    return ScheduleRow(
        key=Key(sys.intern(meta.namespace), sys.intern(meta.name)),
        uid=sys.intern(meta.uid),
        version=meta.resource_version,
        created=meta.creation_timestamp,
        is_terminating=meta.deletion_timestamp is not None,
        labels=meta.labels or {},
        annotations=meta.annotations or {},
        text=spec.schedule,
        template=bytes(spec.template),
        location=_template.decode(spec.template).storage_location,
        paused=bool(spec.paused),
        skip=spec.skip_immediately,
        owns_backups=bool(spec.use_owner_references_in_backup),
        phase=status.phase,
        last_backup=utc(status.last_backup) if status.last_backup else None,
        last_skipped=utc(status.last_skipped) if status.last_skipped else None,
        errors=tuple(status.validation_errors or ()),
    )


def backup_row(wire: velero.Backup) -> BackupRow:
    """Return the row of a Backup."""
    meta = wire.metadata
    status = wire.status
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    annotations = meta.annotations or {}
    return BackupRow(
        key=Key(sys.intern(meta.namespace), meta.name),
        schedule=sys.intern((meta.labels or {}).get(velero.SCHEDULE_LABEL, "")),
        schedule_uid=sys.intern(annotations.get(SCHEDULE_UID, "")),
        slot=instant(annotations.get(SLOT, "")),
        phase=sys.intern(status.phase),
        created=meta.creation_timestamp,
        completed=utc(status.completion_timestamp) if status.completion_timestamp else None,
        expires=utc(status.expiration) if status.expiration else None,
        location=sys.intern(wire.spec.storage_location),
        is_pinned=annotations.get(PINNED) == "true",
        uid=meta.uid,
        version=meta.resource_version,
        failure=sys.intern(status.failure_reason[:_LONGEST_REASON]),
        delete_after=instant(annotations.get(DELETE_AFTER, "")),
        began=utc(status.start_timestamp) if status.start_timestamp else None,
        items=status.progress.items_backed_up if status.progress is not None else None,
        selection=wire.spec.selection,
    )


def deletion_row(wire: velero.DeleteBackupRequest) -> DeletionRow:
    """Return the row of a DeleteBackupRequest."""
    last_write = wire.metadata.last_write
    is_open = wire.status.phase != velero.PROCESSED
    return DeletionRow(
        key=Key(wire.metadata.namespace, wire.metadata.name),
        backup=wire.spec.backup_name,
        is_open=is_open,
        is_ours=SCHEDULE_UID in (wire.metadata.annotations or {}),
        errors=tuple(wire.status.errors or ()),
        stalls_at=last_write + velero.DELETION_TIME if is_open and last_write is not None else None,
        uid=wire.metadata.uid,
        backup_uid=(wire.metadata.labels or {}).get(velero.BACKUP_UID_LABEL, ""),
        is_begun=wire.status.phase not in velero.WAITING,
    )


def restore_row(wire: velero.Restore) -> RestoreRow:
    """Return the row of a Restore."""
    key = Key(wire.metadata.namespace, wire.metadata.name)
    if wire.status.phase in velero.TERMINAL:
        return RestoreRow(key)
    return RestoreRow(key, wire.spec.backup_name, wire.spec.schedule_name)


def location_row(wire: velero.Location) -> LocationRow:
    """Return the row of a storage location."""
    return LocationRow(
        key=Key(wire.metadata.namespace, wire.metadata.name),
        is_default=bool(wire.spec.default),
        is_read_only=wire.spec.is_read_only,
        phase=wire.status.phase,
        message=cause_of(wire.status.message),
        is_tenants=nonadmin.LOCATION_ORIGIN in (wire.metadata.annotations or {}),
    )


def location_of(name: str, locations: Iterable[LocationRow]) -> LocationRow | None:
    """Return the location that a template means: the one that it names, or the default one."""
    rows = {row.key.name: row for row in locations}
    return rows.get(velero.resolve_location(name, (row.key.name for row in rows.values() if row.is_default)))
