"""Rows of NonAdminSchedules, and the names of the NonAdminBackups that they create: `<schedule>-<slot>`."""

import hashlib
import re
import sys
from datetime import UTC, datetime

import msgspec

from foresail.api import nonadmin, velero
from foresail.api.instants import stamp, utc
from foresail.api.marks import RETENTION_APPROVED
from foresail.api.nonadmin import Condition, RecentBackup
from foresail.plan import Key, Keyed
from foresail.selfservice.rows.requests import LARGEST_SPEC
from foresail.slots.observed import Observed, observed_in
from foresail.tenancy.requester import requester_of

_LONGEST_STEM = 48  # with the slot, a name of at most 63 characters, which fits into a label
_DIGEST = 8
_RUN = re.compile(r"(.+)-\d{14}")


def run_name(schedule: str, slot: datetime) -> str:
    """Return the name of the NonAdminBackup of a slot; the same slot always has the same name."""
    return f"{stem(schedule)}-{slot.astimezone(UTC):%Y%m%d%H%M%S}"


def stem(schedule: str) -> str:
    """Return with what the names of a schedule's runs begin: its name, cut with a digest if it is too long."""
    if len(schedule) <= _LONGEST_STEM:
        return schedule
    digest = hashlib.sha256(schedule.encode()).hexdigest()[:_DIGEST]
    return f"{schedule[: _LONGEST_STEM - _DIGEST - 1].rstrip('-.')}-{digest}"


def stem_of_run(name: str) -> str | None:
    """Return with what the name of a run begins; None for a name that no run has."""
    match = _RUN.fullmatch(name)
    return match[1] if match is not None else None


class ScheduleStatus(msgspec.Struct, frozen=True):
    """The status of a NonAdminSchedule, all of it."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    next_run: str = ""
    last_backup: str = ""
    last_skipped: str = ""
    recent: tuple[RecentBackup, ...] = ()
    observed: Observed | None = None
    clearing: int = 0  # the generation whose skipImmediately was applied and is to be removed from the spec

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of a type."""
        return next((condition for condition in self.conditions if condition.type == kind), None)


class ScheduleRow(Keyed, frozen=True):
    """A NonAdminSchedule."""

    uid: str
    version: str
    generation: int
    created: datetime
    is_terminating: bool
    text: str  # the cron expression
    template: str  # the backupSpec as it came; empty if it is oversized
    paused: bool
    skip: bool | None  # spec.skipImmediately
    status: ScheduleStatus
    last_backup: datetime | None
    last_skipped: datetime | None
    requester: str = ""  # who created or last changed it; empty if no admission policy recorded it
    requester_groups: tuple[str, ...] = ()
    restored_by: str = ""  # the Velero Restore that brought it back; empty if nobody restored it
    is_oversized: bool = False
    approved: str = ""  # the runs that may be deleted although they are many

    @property
    def phase(self) -> str:
        """The phase; empty before the first reconcile."""
        return self.status.phase


def schedule_row(wire: nonadmin.Schedule) -> ScheduleRow:
    """Return what is kept of a NonAdminSchedule."""
    meta = wire.metadata
    spec = wire.spec
    status = wire.status
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    asked = spec.template.backup_spec
    requester, groups = requester_of(meta.annotations or {})
    is_oversized = memoryview(asked).nbytes > LARGEST_SPEC
    return ScheduleRow(
        key=Key(sys.intern(meta.namespace), meta.name),
        uid=meta.uid,
        version=meta.resource_version,
        generation=meta.generation,
        created=meta.creation_timestamp,
        is_terminating=meta.deletion_timestamp is not None,
        text=sys.intern(spec.schedule),
        template="" if is_oversized else sys.intern(bytes(asked).decode()),
        paused=bool(spec.paused),
        skip=spec.skip_immediately,
        status=_status(status),
        last_backup=utc(status.last_backup) if status.last_backup else None,
        last_skipped=utc(status.last_skipped) if status.last_skipped else None,
        requester=requester,
        requester_groups=groups,
        restored_by=(meta.labels or {}).get(velero.RESTORE_NAME_LABEL, ""),
        is_oversized=is_oversized,
        approved=(meta.annotations or {}).get(RETENTION_APPROVED, ""),
    )


def _status(wire: nonadmin.ScheduleStatus) -> ScheduleStatus:
    record = wire.observed
    return ScheduleStatus(
        phase=sys.intern(wire.phase),
        conditions=tuple(wire.conditions or ()),
        next_run=wire.next_run,
        last_backup=_stamp(wire.last_backup),
        last_skipped=_stamp(wire.last_skipped),
        recent=tuple(wire.recent_backups or ()),
        observed=observed_in(record.record) if record is not None else None,
        clearing=record.clearing if record is not None else 0,
    )


def _stamp(moment: datetime | None) -> str:
    return stamp(utc(moment)) if moment is not None else ""
