"""The slot that is due, the one to come, and the instant from which they are counted."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import islice

from foresail.api.instants import instant, whole
from foresail.cron import Schedule, fires_after, outlook
from foresail.slots.observed import Observed, Recurring

SKEW = timedelta(minutes=5)
"""How far ahead of our clock a recorded time may be: clocks of two replicas differ by less."""

_MOST_COUNTED = 100
_SEARCH_SPAN = timedelta(days=4 * 365)  # less than the five years that both libraries search ahead


def is_in_future(moment: datetime | None, now: datetime) -> bool:
    """Whether a recorded time is later than clock skew explains."""
    return moment is not None and moment - now > SKEW


def base_of(schedule: Recurring, observed: Observed, last: datetime | None, now: datetime) -> datetime:
    """Return the instant that the next run is counted from; times in the future do not count.

    The last slot with a Backup counts too: the operator may have crashed before it recorded that Backup.
    So does a time that was cleared and has passed since: the clock that found it in the future was wrong.
    """
    recorded = [schedule.last_backup or schedule.created, schedule.last_skipped, observed.edited]
    marks = [*recorded, instant(observed.ahead), last]
    return max((mark for mark in marks if mark is not None and not is_in_future(mark, now)), default=whole(now))


def last_slot(slots: Iterable[datetime | None], now: datetime) -> datetime | None:
    """Return the last of the slots that have a Backup, or had one until it was deleted."""
    return max((slot for slot in slots if slot is not None and slot <= now), default=None)


def unrecorded_slot(schedule: Recurring, last: datetime | None, now: datetime) -> datetime | None:
    """Return the last slot with a Backup if status.lastBackup does not record it yet."""
    recorded = schedule.last_backup
    is_newer = recorded is None or (last is not None and last > recorded) or is_in_future(recorded, now)
    return last if is_newer else None


def due_and_upcoming(cron: Schedule, base: datetime, now: datetime) -> tuple[datetime | None, datetime | None]:
    """Return the slot that is due, the last one if several passed, and the first one to come.

    A library that finds no fire within five years of the base gives up. Searching again from a later instant finds
    the rare day that is within five years by now.
    """
    fires = outlook(cron, base, now)
    due = fires.due
    last = fires.due or base
    while fires.upcoming is None and last < now:
        last = min(last + _SEARCH_SPAN, now)
        fires = outlook(cron, last, now)
        due = fires.due or due
        last = fires.due or last
    return due, fires.upcoming


def missed_before(cron: Schedule, base: datetime, due: datetime) -> int:
    """Count the slots that were passed over: of several that are due only the last is run."""
    count = 0
    for slot in islice(fires_after(cron, base), _MOST_COUNTED):
        if slot >= due:
            break
        count += 1
    return count
