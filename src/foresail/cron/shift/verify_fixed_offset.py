"""Proves, for zones of fixed offset, that expressions fire X before the original, and only then.

Each expression becomes sets of minutes of the UTC day, each with its set of days over the 400 years of the
calendar. Equal sets are equal for all time; nothing is sampled.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from foresail.cron.dialect import Dialect
from foresail.cron.fields import Fields, values_of
from foresail.cron.shift.day_sets import CYCLE_STARTS, day_rule, day_set, shift_day_set

_DAY: Final = 24 * 60


@dataclass(frozen=True, slots=True)
class OffsetFields:
    """The fields of an expression, and the minutes to subtract from its wall time to get UTC."""

    fields: Fields
    offset: int


Layout = tuple[tuple[int, int], ...]
"""Pairs of minutes of the UTC day and days of the cycle, both as masks."""


@dataclass(frozen=True, slots=True)
class FireDiff:
    """Fires that are missing, not wanted, and doubled."""

    lost: Layout
    spurious: Layout
    doubled: Layout


def diff_fires(wanted: OffsetFields, fired: Iterable[OffsetFields], dialect: Dialect) -> FireDiff:
    """Compare the fires of expressions with the wanted ones over all 400 years."""
    target = _layout(wanted, dialect)
    others = [part for fields in fired for part in _layout(fields, dialect)]
    lost = []
    spurious = []
    doubled = []
    for minutes in _partition([mask for mask, _ in (*target, *others)]):
        want = _days(target, minutes)
        fire = 0
        twice = 0
        for mask, days in others:
            if mask & minutes:
                twice |= fire & days
                fire |= days
        lost.append((minutes, want & ~fire))
        spurious.append((minutes, fire & ~want))
        doubled.append((minutes, twice))
    return FireDiff(_without_empty(lost), _without_empty(spurious), _without_empty(doubled))


def _without_empty(layout: list[tuple[int, int]]) -> Layout:
    return tuple((minutes, days) for minutes, days in layout if days)


def _days(layout: list[tuple[int, int]], minutes: int) -> int:
    return next((days for mask, days in layout if mask & minutes), 0)


def _partition(masks: list[int]) -> list[int]:
    """Split the minutes of the day so that each mask contains all of a part or none; drop unused minutes."""
    parts = [0]
    for mask in masks:
        seen = sum(parts)
        halves = [half for part in parts for half in (part & mask, part & ~mask)]
        parts = [part for part in (*halves, mask & ~seen) if part]
    return parts


def _layout(expression: OffsetFields, dialect: Dialect) -> list[tuple[int, int]]:
    """Return the minutes of the UTC day with their days: those that stay on their day and those that borrow one."""
    fields = expression.fields
    rule = day_rule(fields, dialect)
    if rule is None:
        return []
    days = day_set(rule, dialect)
    clock = sum(fields.minutes << (60 * hour) for hour in range(24) if fields.hours >> hour & 1)
    by, rest = divmod(expression.offset, _DAY)
    borrowing = (clock & ((1 << rest) - 1)) << (_DAY - rest)
    parts = ((clock >> rest, by), (borrowing, by + 1))
    return [(minutes, shift_day_set(days, each)) for minutes, each in parts if minutes]


def instants(layout: Layout, start: datetime, end: datetime) -> list[datetime]:
    """Return the instants of a layout in [start, end), in order."""
    first = (start - CYCLE_STARTS).days
    span = (1 << ((end - start).days + 2)) - 1
    moments = [
        CYCLE_STARTS + timedelta(days=first + day, minutes=minute)
        for minutes, days in layout
        for day in values_of(shift_day_set(days, first) & span)
        for minute in values_of(minutes)
    ]
    return sorted(at for at in moments if start <= at < end)
