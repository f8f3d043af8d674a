"""Further attempts at a slot whose run failed, as the SchedulePolicy asks for them.

The name of an attempt is derived from the slot and its number, so a crash after its creation makes no second one.
Only the last slot is repeated, and only until the next one: a slot counts once, however many attempts it took.
"""

from datetime import datetime, timedelta

import msgspec

from foresail.api import schedule_policy as wire
from foresail.api import velero
from foresail.api.instants import instant, stamp, whole
from foresail.plan import Level
from foresail.reporting import Because
from foresail.schedules.observe import BackupRow, ScheduleView
from foresail.schedules.reasons import Reason
from foresail.schedules.slots import attempt_number, timing_of
from foresail.slots.observed import Observed
from foresail.slots.policy_timing import length_in_policy

_LATEST = timedelta(hours=24)  # that an attempt starts after it could, without a deadline


class Attempts(msgspec.Struct, frozen=True):
    """The attempts at the last slot: how many were made, and whether and when another one follows."""

    slot: datetime
    made: int  # the first run included
    allowed: int  # the same
    last: BackupRow
    next_at: datetime | None = None  # None if no attempt follows
    ended: Because | None = None  # why none follows a failed run
    is_over: bool = False  # one succeeded, or a Backup of the slot was deleted

    @property
    def shown(self) -> str:
        """The attempts in a few words."""
        return f"{self.made} of {self.allowed}"

    def is_due(self, now: datetime) -> bool:
        """Whether the pause after the last attempt has passed."""
        return self.next_at is not None and self.next_at <= now


def attempts_of(
    view: ScheduleView, observed: Observed, upcoming: datetime | None, previous: Observed | None, now: datetime
) -> Attempts | None:
    """Return the attempts at the last slot; None without a retry rule, or if there was no run.

    `upcoming` is the next slot, by which an attempt must have started.
    """
    retry = view.policy.spec.retry if view.policy is not None else None
    made = _made(view) if retry is not None else {}
    if retry is None or not made:
        return None
    number = max(made)
    last = made[number]
    attempts = Attempts(last.slot or last.created, number + 1, retry.attempts + 1, last)
    if any(backup.phase == velero.COMPLETED for backup in made.values()):
        return msgspec.structs.replace(attempts, is_over=number > 0)  # the first run is repeated only while it exists
    is_over = _was_deleted(view, attempts.slot, previous)
    if last.phase not in retry.on:
        return msgspec.structs.replace(attempts, is_over=is_over)
    at = (last.completed or last.created) + pause_before(number + 1, retry)
    why = _end(view, attempts, observed, previous, at, upcoming) or _too_late(view, at, now)
    if why is None:
        return msgspec.structs.replace(attempts, next_at=at)
    text = f"Backup {last.key.name} is {last.phase} after {attempts.shown} attempts and is not repeated: {why}."
    return msgspec.structs.replace(attempts, ended=Because(Reason.RETRIES_ENDED, text), is_over=is_over)


def repeated_slot(attempts: Attempts | None) -> str:
    """Return the slot to remember as one that gets no further attempt, even if its Backups are deleted."""
    return stamp(attempts.slot) if attempts is not None and attempts.is_over else ""


def ended_slot(attempts: Attempts | None, previous: Observed | None, *, paused: bool) -> str:
    """Return the slot to remember as one whose failed run is not repeated after a pause; empty if there is none."""
    if attempts is None or (attempts.next_at is None and attempts.ended is None):
        return ""
    slot = stamp(attempts.slot)
    return slot if paused or (previous is not None and previous.ended == slot) else ""


def repeating(attempts: Attempts) -> Because:
    """Return the report of another attempt."""
    text = f"Backup {attempts.last.key.name} is {attempts.last.phase}; attempt {attempts.made + 1} of"
    return Because(Reason.RETRYING, f"{text} {attempts.allowed} starts for slot {stamp(attempts.slot)}.", Level.NORMAL)


def pause_before(attempt: int, retry: wire.Retry) -> timedelta:
    """Return how long to wait after a failure before an attempt; the first repetition is attempt 1."""
    first = length_in_policy(retry.backoff) or timedelta()
    return first if retry.backoff_type == "Fixed" else first * 2 ** (attempt - 1)


def _made(view: ScheduleView) -> dict[int, BackupRow]:
    """Return the attempts at the last slot of this very Schedule by their number, 0 for the first run."""
    ours = [backup for backup in view.backups if backup.schedule_uid == view.schedule.uid and backup.slot is not None]
    last = max((backup.slot for backup in ours if backup.slot is not None), default=None)
    newer = (view.schedule.last_backup, view.unobserved)
    if last is None or any(moment is not None and moment > last for moment in newer):
        return {}
    made = ((attempt_number(backup.key.name, view.schedule, last), backup) for backup in ours if backup.slot == last)
    return {number: attempt for number, attempt in made if number is not None and number <= wire.MOST_ATTEMPTS}


def _end(
    view: ScheduleView,
    attempts: Attempts,
    observed: Observed,
    previous: Observed | None,
    at: datetime,
    upcoming: datetime | None,
) -> str | None:
    """Return why no attempt follows a failed one."""
    schedule = view.schedule
    slot = attempts.slot
    skipped = schedule.last_skipped  # by skipImmediately, a window or the deadline
    was_paused = instant(previous.ended if previous else "") == slot
    conditions = (
        (schedule.paused or was_paused, "the Schedule was paused"),
        (attempts.made >= attempts.allowed, "its attempts are used up"),
        (observed.edited is not None and observed.edited > slot, "the schedule was edited"),
        (skipped is not None and skipped > slot, f"runs up to {stamp(skipped)} were skipped" if skipped else ""),
        (_was_deleted(view, slot, previous), "a Backup of the slot was deleted"),
        (upcoming is not None and at >= upcoming, f"the next run is at {stamp(upcoming)}" if upcoming else ""),
    )
    return next((text for is_met, text in conditions if is_met), None)


def _was_deleted(view: ScheduleView, slot: datetime, previous: Observed | None) -> bool:
    """Whether a Backup of a slot was deleted, in this process or before it: a remembered one that succeeded is gone."""
    is_known = view.deleted is not None and view.deleted >= slot
    return is_known or (previous is not None and instant(previous.repeated) == slot)


def _too_late(view: ScheduleView, at: datetime, now: datetime) -> str | None:
    """Return why an attempt is not made any more, counted from the first instant at which it could start."""
    timing = timing_of(view)
    start = (timing.opens(whole(at)) if timing is not None and timing.windows is not None else None) or at
    if timing is not None and timing.deadline is not None:
        deadline = view.policy.spec.starting_deadline if view.policy else ""
        return f"it is past startingDeadline {deadline}" if timing.is_expired(start, now) else None
    return f"it could have started more than {_LATEST // timedelta(hours=1)}h ago" if now - start > _LATEST else None
