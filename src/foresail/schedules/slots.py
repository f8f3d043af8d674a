"""Slots of Velero's Schedules: which have a Backup, and from when the next one is counted."""

from datetime import datetime

from foresail.schedules.observe import ScheduleView
from foresail.slots import due
from foresail.slots.observed import Observed


def base_of(view: ScheduleView, observed: Observed, now: datetime) -> datetime:
    """Return the instant that the next run is counted from; times in the future do not count."""
    return due.base_of(view.schedule, observed, last_slot(view, now), now)


def last_slot(view: ScheduleView, now: datetime) -> datetime | None:
    """Return the last slot that this very Schedule has a Backup for, or had until it was deleted."""
    ours = (each.slot for each in view.backups if each.schedule_uid == view.schedule.uid)
    return due.last_slot((*ours, view.deleted), now)
