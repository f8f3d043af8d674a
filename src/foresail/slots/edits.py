"""What an edit of an expression, of its zone or of its delay replaces: the slots that were due before it."""

from datetime import datetime, timedelta

import msgspec

from foresail.api.instants import stamp
from foresail.cron import Schedule, outlook
from foresail.slots.observed import Observed, Recurring
from foresail.slots.rules import Evaluation, is_edited
from foresail.slots.starts import Placed


class BeforeEdit(msgspec.Struct, frozen=True):
    """The fires of the expression last observed, the instant that they count from, and the delay of each."""

    cron: Schedule
    base: datetime
    delay: timedelta = timedelta()

    def is_same(self, schedule: Recurring, previous: Observed | None, cron: Schedule, now: datetime) -> bool:
        """Whether another name of the zone changes nothing: the same slot is due, and the same one comes next."""
        if is_edited(schedule, previous):
            return False
        moment = now - self.delay
        return outlook(self.cron, self.base, moment) == outlook(cron, self.base, moment)

    def dropped(self, placed: Placed, now: datetime) -> datetime | None:
        """Return the last slot that has not run and is none of the new ones."""
        slot = outlook(self.cron, self.base, now - self.delay).due
        if slot is None or slot in (placed.due, placed.upcoming):
            return None
        return slot + self.delay


def zone_to_compare(
    schedule: Recurring,
    previous: Observed | None,
    before: BeforeEdit | None,
    cron: Schedule | None,
    zone: str,
    now: datetime,
) -> str:
    """Return the zone by which an edit is recognised: the last one if the new one is another name of it."""
    if previous is None or before is None or cron is None:
        return zone
    return previous.zone if before.is_same(schedule, previous, cron, now) else zone


def dropped_slot(before: BeforeEdit | None, evaluation: Evaluation, placed: Placed, now: datetime) -> datetime | None:
    """Return the slot that an edit dropped; one that skipImmediately skipped is not dropped."""
    if before is None or evaluation.skipped or not evaluation.edited:
        return None
    return before.dropped(placed, now)


def dropped_text(slot: datetime, next_run: datetime | None) -> str:
    """Return which slot an edit dropped, and what follows."""
    follows = f"the next run is at {stamp(next_run)}" if next_run else "no run follows"
    return f"the schedule or its time zone was edited before slot {stamp(slot)} had run, so it is dropped; {follows}."
