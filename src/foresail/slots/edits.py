"""What an edit of an expression, of its zone or of its delay replaces: the slots that were due before it."""

from datetime import datetime

import msgspec

from foresail.api.instants import stamp
from foresail.cron import Schedule, outlook
from foresail.slots.observed import Observed, Recurring
from foresail.slots.rules import is_edited
from foresail.slots.timing import Placed


class BeforeEdit(msgspec.Struct, frozen=True):
    """The fires of the expression last observed, and the instant that they count from."""

    cron: Schedule
    base: datetime

    def is_same(self, schedule: Recurring, previous: Observed | None, cron: Schedule, now: datetime) -> bool:
        """Whether another name of the zone changes nothing: the same slot is due, and the same one comes next."""
        return not is_edited(schedule, previous) and outlook(self.cron, self.base, now) == outlook(cron, self.base, now)

    def dropped(self, placed: Placed, now: datetime) -> datetime | None:
        """Return the last slot that has not run and is none of the new ones."""
        slot = outlook(self.cron, self.base, now).due
        return None if slot in (placed.due, placed.upcoming) else slot


def dropped_text(slot: datetime, next_run: datetime | None) -> str:
    """Return which slot an edit dropped, and what follows."""
    follows = f"the next run is at {stamp(next_run)}" if next_run else "no run follows"
    return f"the schedule or its time zone was edited before slot {stamp(slot)} had run, so it is dropped; {follows}."
