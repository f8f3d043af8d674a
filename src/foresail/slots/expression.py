"""Cron expressions of any kind of Schedule: read in one dialect, or refused."""

from functools import lru_cache

import msgspec

from foresail.cron import CronError, Dialect, Schedule, parse

LONGEST_TEXT = 1024
"""Characters of an expression: as many as go-cron takes. A longer one would delay all others while it is parsed."""

_CACHE_SIZE = 20_000


class Unusable(msgspec.Struct, frozen=True):
    """Why an expression has no slots, in a sentence; one that is valid may still never fire."""

    message: str
    never_fires: bool = False


def read_expression(text: str, zone: str, dialect: Dialect) -> Schedule | Unusable:
    """Return the schedule that an expression means in a dialect, or why it has no slots."""
    parsed = too_long(text) or parse_in(text, zone, dialect)
    return parsed if isinstance(parsed, Unusable) else never_fires(text, parsed) or parsed


def too_long(text: str) -> Unusable | None:
    """Refuse an expression that would take long to parse."""
    if len(text) <= LONGEST_TEXT:
        return None
    problem = f"it has {len(text)} characters; the maximum is {LONGEST_TEXT}"
    return Unusable(f"invalid schedule: {problem}. Shorten spec.schedule.")


@lru_cache(_CACHE_SIZE)
def parse_in(text: str, zone: str, dialect: Dialect) -> Schedule | Unusable:
    """Return the schedule that an expression means in a dialect; it may never fire."""
    try:
        return parse(text, dialect, zone)
    except CronError as error:
        return Unusable(f"invalid schedule: {error}")


def never_fires(text: str, cron: Schedule) -> Unusable | None:
    """Refuse an expression that names only days that do not exist."""
    if not cron.never_fires:
        return None
    return Unusable(f"{text!r} never fires: {cron.never_fires}. Correct spec.schedule.", never_fires=True)


def too_rare(text: str) -> Unusable:
    """Refuse an expression without a fire as far ahead as the libraries search."""
    message = f"{text!r} has no fire in the next five years, the limit of Velero's search. Correct spec.schedule."
    return Unusable(message, never_fires=True)
