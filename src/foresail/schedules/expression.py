"""Cron expressions in the dialect of this cluster's Velero, as far as that is known."""

from datetime import datetime, timedelta
from functools import lru_cache

from foresail.cron import CronError, Dialect, Schedule, parse
from foresail.cron.dialect_diff import DialectChange, DialectDiff, compare_dialects
from foresail.schedules.reasons import Because, Reason

COMPARED_AHEAD = timedelta(days=400)
"""How far ahead dialects are compared: more than a year, which includes every clock change."""

LONGEST_TEXT = 1024
"""Characters of an expression: as many as go-cron takes. A longer one would delay all others while it is parsed."""

_CACHE_SIZE = 20_000


def parse_expression(text: str, zone: str, dialect: Dialect | None, now: datetime) -> Schedule | Because:
    """Return the schedule, or why there is none: invalid, never due, or ambiguous between the two dialects."""
    if len(text) > LONGEST_TEXT:
        problem = f"it has {len(text)} characters; the maximum is {LONGEST_TEXT}"
        return Because(Reason.INVALID, f"invalid schedule: {problem}. Shorten spec.schedule.")
    found = _parse(text, zone, dialect) if dialect is not None else _parse_in_both(text, zone, now)
    if isinstance(found, Because) or not found.never_fires:
        return found
    return Because(Reason.NEVER_FIRES, f"{text!r} never fires: {found.never_fires}. Correct spec.schedule.")


def diff_dialects(text: str, zone: str, now: datetime) -> DialectDiff | None:
    """Return how the two dialects differ on an expression in the time ahead; None if they do not."""
    if len(text) > LONGEST_TEXT:
        return None
    return _change(text, zone, now.replace(hour=0, minute=0, second=0, microsecond=0))


@lru_cache(_CACHE_SIZE)
def _change(text: str, zone: str, day: datetime) -> DialectDiff | None:
    found = compare_dialects(text, zone, day, COMPARED_AHEAD)
    return None if found.change in (DialectChange.NONE, DialectChange.INVALID) else found


@lru_cache(_CACHE_SIZE)
def _parse(text: str, zone: str, dialect: Dialect) -> Schedule | Because:
    try:
        return parse(text, dialect, zone)
    except CronError as error:
        return Because(Reason.INVALID, f"invalid schedule: {error}")


def _parse_in_both(text: str, zone: str, now: datetime) -> Schedule | Because:
    found = diff_dialects(text, zone, now)
    if found is None:
        return _parse(text, zone, Dialect.ROBFIG)
    return Because(
        Reason.DIALECT_UNKNOWN,
        f"{text!r} has different meanings for Velero up to 1.18.2 and from 1.18.3 on ({found.change.value}), and the "
        "version of this Velero is unknown. Start Velero, or set --velero-dialect of the operator.",
    )
