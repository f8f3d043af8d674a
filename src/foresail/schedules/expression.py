"""Cron expressions in the dialect of this cluster's Velero, as far as that is known."""

from datetime import datetime, timedelta
from functools import lru_cache

from foresail.cron import Dialect, Schedule
from foresail.cron.dialect_diff import DialectChange, DialectDiff, compare_dialects
from foresail.reporting import Because
from foresail.schedules.reasons import Reason
from foresail.slots.expression import LONGEST_TEXT, Unusable, never_fires, parse_in, read_expression, too_long

COMPARED_AHEAD = timedelta(days=400)
"""How far ahead dialects are compared: more than a year, which includes every clock change."""

_CACHE_SIZE = 20_000


def parse_expression(text: str, zone: str, dialect: Dialect | None, now: datetime) -> Schedule | Because:
    """Return the schedule, or why there is none: invalid, never due, or ambiguous between the two dialects."""
    if dialect is not None:
        return _or_because(read_expression(text, zone, dialect))
    schedule = too_long(text) or _parse_in_both(text, zone, now)
    if isinstance(schedule, Because):
        return schedule
    return _or_because(schedule if isinstance(schedule, Unusable) else never_fires(text, schedule) or schedule)


def refusal(of: Unusable) -> Because:
    """Return the reason of a Schedule whose expression has no slots."""
    return Because(Reason.NEVER_FIRES if of.never_fires else Reason.INVALID, of.message)


def diff_dialects(text: str, zone: str, now: datetime) -> DialectDiff | None:
    """Return how the two dialects differ on an expression in the time ahead; None if they do not."""
    if len(text) > LONGEST_TEXT:
        return None
    return _change(text, zone, now.replace(hour=0, minute=0, second=0, microsecond=0))


@lru_cache(_CACHE_SIZE)
def _change(text: str, zone: str, day: datetime) -> DialectDiff | None:
    diff = compare_dialects(text, zone, day, COMPARED_AHEAD)
    return None if diff.change in (DialectChange.NONE, DialectChange.INVALID) else diff


def _or_because(schedule: Schedule | Unusable) -> Schedule | Because:
    return refusal(schedule) if isinstance(schedule, Unusable) else schedule


def _parse_in_both(text: str, zone: str, now: datetime) -> Schedule | Unusable | Because:
    diff = diff_dialects(text, zone, now)
    if diff is None:
        return parse_in(text, zone, Dialect.ROBFIG)
    return Because(
        Reason.DIALECT_UNKNOWN,
        f"{text!r} has different meanings for Velero up to 1.18.2 and from 1.18.3 on ({diff.change.value}), and the "
        "version of this Velero is unknown. Start Velero, or set --velero-dialect of the operator.",
    )
