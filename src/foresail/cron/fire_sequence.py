"""Follows a schedule as the controllers do: from fire to fire, starting at the last recorded one."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from foresail.cron.schedule import Schedule

_MAX_STEPS = 64


@dataclass(frozen=True, slots=True)
class Outlook:
    """The last fire up to an instant and the first one after it."""

    due: datetime | None
    upcoming: datetime | None


def fires_after(schedule: Schedule, anchor: datetime) -> Iterator[datetime]:
    """Yield the fires after `anchor`, each found from the one before it, until the library gives up."""
    fire = schedule.next(anchor)
    while fire is not None:
        yield fire
        fire = schedule.next(fire)


def outlook(schedule: Schedule, anchor: datetime, now: datetime) -> Outlook:
    """Return the last fire after `anchor` that is not after `now`, and the one that follows.

    The anchor is what the controller counts from: the last scheduled time, or the creation. The cost does not
    grow with its age: after a few steps `last_fire` skips to a later fire that every sequence reaches.
    """
    due: datetime | None = None
    last = anchor
    for _ in range(_MAX_STEPS):
        fire = schedule.next(last)
        if fire is None or fire > now:
            return Outlook(due, fire)
        due = last = fire
    due = schedule.last_fire(last, now) or last
    return Outlook(due, schedule.next(due))
