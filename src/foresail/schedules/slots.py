"""Slots of Velero's Schedules: the name of the Backup of each, which have one, and from when the next is counted."""

import re
from datetime import UTC, datetime, timedelta

from foresail.api import velero
from foresail.schedules.observe import BackupRow, ScheduleRow, ScheduleView
from foresail.slots import due
from foresail.slots.observed import Observed
from foresail.slots.policy_timing import timing_under
from foresail.slots.starts import Timing

_VELERO_LATENESS = timedelta(minutes=2)  # Velero looks for due Schedules once a minute
_STAMP = "%Y%m%d%H%M%S"
_DIGITS = len("20260310120000")
_ATTEMPT = re.compile("[1-9][0-9]?")
_OF_UID = 8  # characters of the UID: two clusters that share a bucket must never choose the same name


def backup_name(schedule: ScheduleRow, slot: datetime, attempt: int = 0) -> str:
    """Return the name of the Backup of a slot; the same attempt at the same slot always has the same name."""
    name = f"{schedule.key.name}-{slot.astimezone(UTC):{_STAMP}}-{schedule.uid[:_OF_UID]}"
    return f"{name}-r{attempt}" if attempt else name


def attempt_number(name: str, schedule: ScheduleRow, slot: datetime) -> int | None:
    """Return which attempt at a slot has a Backup of this name, 0 for the first run; None if it is no attempt."""
    first = backup_name(schedule, slot)
    if name == first:
        return 0
    number = name.removeprefix(f"{first}-r")
    return int(number) if number != name and _ATTEMPT.fullmatch(number) else None


def base_of(view: ScheduleView, observed: Observed, now: datetime) -> datetime:
    """Return the instant that the next run is counted from; times in the future do not count."""
    return due.base_of(view.schedule, observed, last_slot(view, now), now)


def timing_of(view: ScheduleView) -> Timing | None:
    """Return what the policy of a Schedule says about its times."""
    return timing_under(view.policy, str(view.schedule.key), view.settings.zone)


def last_slot(view: ScheduleView, now: datetime) -> datetime | None:
    """Return the last slot that this very Schedule has a Backup for, or had until it was deleted.

    A Backup that a late watch has not observed yet counts: its slot is run, whatever has passed meanwhile.
    """
    ours = (backup.slot for backup in view.backups if backup.schedule_uid == view.schedule.uid)
    return due.last_slot((*ours, view.deleted, view.unobserved), now)


def made_by_velero(view: ScheduleView, slot: datetime) -> datetime | None:
    """Return when Velero's own controller made a Backup for a slot that is due, if it did.

    Velero creates the Backup before it writes status.lastBackup, and its server may end in between.
    """
    times = (_made_by_velero(backup) for backup in view.backups)
    return min((time for time in times if time is not None and slot <= time <= slot + _VELERO_LATENESS), default=None)


def _made_by_velero(backup: BackupRow) -> datetime | None:
    """Return the time in the name of a Backup that Velero made in this cluster; None for any other.

    A Backup that was synced from storage had ended before its object was created. One that failed validation counts
    as none: somebody may have tried by hand, and the slot still needs its Backup.
    """
    name, _, digits = backup.key.name.rpartition("-")
    if name != backup.schedule or backup.schedule_uid or backup.phase == velero.FAILED_VALIDATION:
        return None
    is_synced = backup.completed is not None and backup.completed < backup.created
    if is_synced or len(digits) != _DIGITS or not digits.isdecimal():
        return None
    try:
        return datetime.strptime(digits, _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None
