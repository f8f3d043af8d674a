"""Slots of a Schedule: the one that is due, the one to come, and the instant from which they are counted."""

from datetime import datetime, timedelta
from itertools import islice

from foresail.api.instants import instant, whole
from foresail.cron import Schedule, fires_after, outlook
from foresail.schedules.observe import ScheduleView
from foresail.schedules.status import Observed

SKEW = timedelta(minutes=5)
"""How far ahead of our clock a recorded time may be: clocks of two replicas differ by less."""

_MOST_COUNTED = 100
_SEARCH_SPAN = timedelta(days=4 * 365)  # less than the five years that both libraries search ahead


def is_in_future(moment: datetime | None, now: datetime) -> bool:
    """Whether a recorded time is later than clock skew explains."""
    return moment is not None and moment - now > SKEW


def base_of(view: ScheduleView, observed: Observed, now: datetime) -> datetime:
    """Return the instant that the next run is counted from; times in the future do not count.

    The last slot with a Backup counts too: the operator may have crashed before it recorded that Backup.
    So does a time that was cleared and has passed since: the clock that found it in the future was wrong.
    """
    schedule = view.schedule
    recorded = [schedule.last_backup or schedule.created, schedule.last_skipped, observed.edited]
    marks = [*recorded, instant(observed.ahead), last_slot(view, now)]
    return max((mark for mark in marks if mark is not None and not is_in_future(mark, now)), default=whole(now))


def last_slot(view: ScheduleView, now: datetime) -> datetime | None:
    """Return the last slot that this very Schedule has a Backup for, or had until it was deleted."""
    ours = (each.slot for each in view.backups if each.schedule_uid == view.schedule.uid)
    return max((slot for slot in (*ours, view.deleted) if slot is not None and slot <= now), default=None)


def due_and_upcoming(cron: Schedule, base: datetime, now: datetime) -> tuple[datetime | None, datetime | None]:
    """Return the slot that is due, the last one if several passed, and the first one to come.

    A library that finds no fire within five years of the base gives up. Searching again from a later instant finds
    the rare day that is within five years by now.
    """
    found = outlook(cron, base, now)
    due, last = found.due, found.due or base
    while found.upcoming is None and last < now:
        last = min(last + _SEARCH_SPAN, now)
        found = outlook(cron, last, now)
        due, last = found.due or due, found.due or last
    return due, found.upcoming


def missed_before(cron: Schedule, base: datetime, due: datetime) -> int:
    """Count the slots that were passed over: of several that are due only the last is run."""
    count = 0
    for slot in islice(fires_after(cron, base), _MOST_COUNTED):
        if slot >= due:
            break
        count += 1
    return count
