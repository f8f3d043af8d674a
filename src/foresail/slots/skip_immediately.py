"""When skipImmediately is applied, and when it has no effect; the same for every kind of Schedule."""

from datetime import datetime

from foresail.api.instants import stamp
from foresail.slots.observed import Observed, Recurring


def is_new(schedule: Recurring) -> bool:
    """Whether no controller has worked on it yet; one that Velero has worked on is not new to us either."""
    return not (schedule.phase or schedule.last_backup or schedule.last_skipped)


def is_unpaused(schedule: Recurring, previous: Observed | None) -> bool:
    """Whether it was paused when last observed, and no longer is."""
    return not schedule.paused and previous is not None and bool(previous.paused)


def turned_true(schedule: Recurring, previous: Observed | None) -> bool:
    """Whether the field is true and was not applied yet; set again without a pause, it counts as applied."""
    return schedule.skip is True and not (previous is not None and previous.consumed)


def is_skipped(schedule: Recurring, previous: Observed | None, *, default: bool) -> bool:
    """Whether to apply skipImmediately now: only if new, unpaused or just set, and never while paused."""
    effective = default if schedule.skip is None else schedule.skip
    occasion = is_new(schedule) or is_unpaused(schedule, previous) or turned_true(schedule, previous)
    return effective and occasion and not schedule.paused


def is_ignored(schedule: Recurring, *, skipped: bool) -> bool:
    """Whether skipImmediately was set again without a pause since it was applied."""
    return schedule.skip is True and not schedule.paused and not skipped


def skip_not_applied_text(kind: str) -> str:
    """Return why a second skipImmediately has no effect."""
    text = "skipImmediately was applied since the last pause, so it is ignored until the next unpause."
    return f"{text} To skip now, pause the {kind} and unpause it."


def skipped_text(base: datetime, upcoming: datetime | None) -> str:
    """Return what skipImmediately skipped, and what follows."""
    follows = f"the next run is at {stamp(upcoming)}" if upcoming else "no run follows"
    return f"skipImmediately: skipped the runs due before {stamp(base)}; {follows}."
