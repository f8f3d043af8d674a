"""The rules that every kind of Schedule shares: what counts as an edit, and which recorded times count.

Each rule is one small function named after its question; `evaluate` asks them in their order.
"""

import hashlib
from datetime import datetime, timedelta

import msgspec

from foresail.api.instants import instant, stamp, whole
from foresail.slots.due import base_of, is_in_future
from foresail.slots.expression import LONGEST_TEXT
from foresail.slots.observed import Observed, Recurring
from foresail.slots.skip_immediately import is_ignored, is_skipped

SETTLING_TIME = timedelta(seconds=10)
"""How long a new Backup may be missing from the store, and an answer of Velero may take."""

RARE_RECHECK = timedelta(days=180)
"""When an expression that has no fire within five years is read again."""

WINDOW_RECHECK = timedelta(days=1)
"""When a Schedule without a slot inside its windows is evaluated again."""


class Evaluation(msgspec.Struct, frozen=True):
    """What the shared rules find for one Schedule at one instant."""

    observed: Observed
    base: datetime
    future: dict[str, datetime]  # recorded times in the future, by field
    skipped: bool = False  # skipImmediately is applied now
    edited: bool = False


def evaluate(
    schedule: Recurring,
    previous: Observed | None,
    last: datetime | None,
    now: datetime,
    *,
    skips: bool,
    zone: str = "",
    offset: timedelta = timedelta(),
) -> Evaluation:
    """Evaluate the shared rules; `last` is the last slot with a Backup, `skips` what an unset field means.

    `zone` is the one that a policy sets: like the expression, another one makes nothing due that has passed.
    `offset` is the delay of every slot: one that has not started yet is not passed.
    """
    skipped = is_skipped(schedule, previous, default=skips)
    edited = is_edited(schedule, previous) or (previous is not None and previous.zone != zone)
    future = times_in_future(schedule, previous, now)
    since = now if future else None
    if edited and not future:
        since = now - offset
    observed = _observed(schedule, previous, now, since, skipped=skipped, future=future)
    base = base_of(schedule, observed, last, now)
    observed = msgspec.structs.replace(observed, zone=zone)
    return Evaluation(observed, max(base, whole(now)) if skipped else base, future, skipped, edited)


# Edits


def is_edited(schedule: Recurring, previous: Observed | None) -> bool:
    """Whether the expression differs from the one last observed."""
    return previous is not None and previous.schedule != stored_text(schedule.text)


def stored_text(text: str) -> str:
    """Return the expression as it is remembered; a digest if it is too long."""
    return text if len(text) <= LONGEST_TEXT else hashlib.sha256(text.encode()).hexdigest()


# Runs that are not observed yet


def is_settling(last: datetime | None, now: datetime, *, is_known: bool) -> bool:
    """Whether the store does not have the Backup of the last run yet, so that its phase is unknown."""
    if last is None or now - last >= SETTLING_TIME or is_in_future(last, now):
        return False
    return not is_known


# Times that are not trusted


def times_in_future(schedule: Recurring, previous: Observed | None, now: datetime) -> dict[str, datetime]:
    """Return the recorded times that lie in the future, by field: a clock was wrong, or someone edited them.

    A creationTimestamp cannot be corrected; it no longer counts once an instant to count from is recorded.
    """
    since = previous.edited if previous else None
    created = None if since is not None and not is_in_future(since, now) else schedule.created
    recorded = {
        "lastBackup": schedule.last_backup,
        "lastSkipped": schedule.last_skipped,
        "since": since,
        "creationTimestamp": created,
    }
    return {field: moment for field, moment in recorded.items() if moment and is_in_future(moment, now)}


# What is remembered


def _observed(
    schedule: Recurring,
    previous: Observed | None,
    now: datetime,
    since: datetime | None,
    *,
    skipped: bool,
    future: dict[str, datetime],
) -> Observed:
    before = previous.since if previous else ""
    paused = ""
    if schedule.paused:
        paused = previous.paused if previous and previous.paused else stamp(now)
    if is_in_future(instant(paused), now):
        paused = stamp(now)
    consumed = not schedule.paused and (
        (skipped and schedule.skip is True) or (previous is not None and previous.consumed)
    )
    return Observed(
        stored_text(schedule.text),
        paused,
        consumed,
        since=stamp(since) if since is not None else before,
        ignored=is_ignored(schedule, skipped=skipped),
        ahead=_ahead(schedule, previous, future),
    )


def _ahead(schedule: Recurring, previous: Observed | None, future: dict[str, datetime]) -> str:
    """Return the latest time that was cleared, until a later run is recorded."""
    before = instant(previous.ahead) if previous else None
    times = [time for field, time in future.items() if field != "creationTimestamp"]
    latest = max((moment for moment in (before, *times) if moment is not None), default=None)
    run = schedule.last_backup if "lastBackup" not in future else None
    return "" if latest is None or (run is not None and run >= latest) else stamp(latest)


# What people read


def in_future_text(fields: dict[str, datetime]) -> str:
    """Return the sentence about recorded times in the future."""
    named = " and ".join(f"{field} ({stamp(value)})" for field, value in fields.items())
    return f"{named} is in the future, so it is ignored and the next run counts from now. Check the clocks."


def missed_text(missed: int, base: datetime, slot: datetime) -> str:
    """Return how many runs were passed over, and which late one is made."""
    count = "one run was" if missed == 1 else f"{missed} runs were"
    why = "the operator was down or the runs were blocked"
    return f"{count} missed since {stamp(base)}: {why}. One late run for {stamp(slot)}."
