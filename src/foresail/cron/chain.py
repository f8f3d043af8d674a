"""Follows a schedule the way the controllers do: from fire to fire, starting at what they last recorded."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from foresail.cron.schedule import Schedule

_STEPS = 64


@dataclass(frozen=True, slots=True)
class Outlook:
    """Where a chain of fires stands at an instant: its last fire up to then, and its first one after."""

    due: datetime | None
    upcoming: datetime | None


def chain(schedule: Schedule, anchor: datetime) -> Iterator[datetime]:
    """Yield the fires after `anchor`, each found from the one before it, until the library gives up."""
    fire = schedule.next(anchor)
    while fire is not None:
        yield fire
        fire = schedule.next(fire)


def outlook(schedule: Schedule, anchor: datetime, now: datetime) -> Outlook:
    """Return the last fire of the chain from `anchor` that is not after `now`, and the one that follows.

    The anchor is what the controller counts from: the last scheduled time, or the creation. However long
    ago it was, the cost is bounded: beyond a few steps the chain is entered again at a later fire on which
    every chain of the schedule meets.
    """
    due: datetime | None = None
    last = anchor
    for _ in range(_STEPS):
        fire = schedule.next(last)
        if fire is None or fire > now:
            return Outlook(due, fire)
        due = last = fire
    due = schedule.last_in_chain(last, now) or last
    return Outlook(due, schedule.next(due))
