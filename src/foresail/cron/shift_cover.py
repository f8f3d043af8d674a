"""A set of days, moved some days earlier, said again as cron day fields.

What can be said (proofs in the day-field grammar itself):
- robfig: a union of expressions can say a set exactly when every day of it, in its month, has a day of month
  or a weekday *all* of whose days belong to the set; a real "and" of the two fields does not exist.
- go-cron: when month, day of month and weekday decide; the weekdays of one expression stay together.
So a day that depends on the leap year ("the day before 1 March") has no exact expression in either.
What cannot be said is replaced by the closest set that loses no day.
"""

import enum
from dataclasses import dataclass, replace
from functools import lru_cache

from foresail.cron.fields import ALL_MONTHS
from foresail.cron.schedule import Dialect
from foresail.cron.shift_boxes import boxes_for, existing
from foresail.cron.shift_days import (
    EVERY_DAY,
    DayRule,
    day_bits,
    days_of,
    earlier,
    month_bits,
    weekday_bits,
    weekdays_earlier,
)


class Unsayable(enum.Enum):
    """Why no day fields say a set of days."""

    LEAP_YEAR = "leap year"
    WEEKDAYS_OF_MONTHS = "weekdays of some months"


@dataclass(frozen=True, slots=True)
class Cover:
    """Rules that never overlap; they say the moved days exactly, or with `why` given, those and some more."""

    rules: tuple[DayRule, ...]
    why: Unsayable | None = None
    fewest: bool = True


@dataclass(frozen=True, slots=True)
class _Month:
    """What is needed of one month: dates and weekdays (robfig only), and whether they say too much."""

    days: int
    weekdays: int
    too_much: bool = False


@lru_cache(maxsize=2048)
def days_earlier(rule: DayRule, by: int, dialect: Dialect) -> Cover:
    """Say the days of a rule moved `by` days earlier, with as few rules as can be found."""
    if by == 0 or rule.is_every_day:
        return Cover((rule,))
    weekdays = None if rule.weekdays is None else weekdays_earlier(rule.weekdays, by)
    if rule.months == ALL_MONTHS and rule.days is None:
        return Cover((DayRule(ALL_MONTHS, None, weekdays),))
    wanted = earlier(days_of(rule, dialect), by)
    cover = _either(wanted) if dialect is Dialect.ROBFIG else _both(wanted, weekdays)
    if cover.why and dialect is Dialect.ROBFIG and weekdays is not None and rule.months != ALL_MONTHS:
        return replace(cover, why=Unsayable.WEEKDAYS_OF_MONTHS)
    return cover


def _both(wanted: int, weekdays: int | None) -> Cover:
    """Say days of which all are on `weekdays`: those stay one field, and the dates are split into boxes."""
    among = EVERY_DAY if weekdays is None else _any(weekday_bits(), weekdays)
    months = {m: _month(m, wanted, among, by_weekday=False) for m in range(1, 13)}
    split = boxes_for({m: month.days for m, month in months.items()})
    rules = tuple(_rule(box.months, box.days, weekdays) for box in split.boxes)
    return Cover(rules, _why(months), split.fewest)


def _either(wanted: int) -> Cover:
    """Say days by date, by weekday, or by either; a month that needs both must be said in one rule."""
    months = {m: _month(m, wanted, EVERY_DAY, by_weekday=True) for m in range(1, 13)}
    by_date = boxes_for({m: month.days for m, month in months.items() if not month.weekdays})
    groups: dict[tuple[int, int], int] = {}
    for m in sorted((m for m, month in months.items() if month.weekdays), key=lambda m: -existing(m)):
        days, weekdays = months[m].days, months[m].weekdays
        alike = next((k for k in groups if k[1] == weekdays and k[0] & existing(m) == days), (days, weekdays))
        groups[alike] = groups.get(alike, 0) | 1 << m
    rules = [_rule(box.months, box.days, None) for box in by_date.boxes]
    rules += [_rule(in_months, days, weekdays) for (days, weekdays), in_months in groups.items()]
    return Cover(tuple(rules), _why(months), by_date.fewest)


def _rule(months: int, days: int, weekdays: int | None) -> DayRule:
    whole = all(not existing(m) & ~days for m in range(1, 13) if months >> m & 1)
    return DayRule(months, None if whole or not days else days, weekdays)


def _why(months: dict[int, _Month]) -> Unsayable | None:
    return Unsayable.LEAP_YEAR if any(month.too_much for month in months.values()) else None


def _month(month: int, wanted: int, among: int, *, by_weekday: bool) -> _Month:
    here = month_bits()[month] & among
    missing = here & ~wanted
    wanted &= here
    if not missing:
        return _Month(existing(month), 0)
    if not wanted:
        return _Month(0, 0)
    days = _values(day_bits(), touching=wanted, avoiding=missing)
    weekdays = _values(weekday_bits(), touching=wanted, avoiding=missing) if by_weekday else 0
    left = wanted & ~_any(day_bits(), days) & ~_any(weekday_bits(), weekdays)
    if not left:
        return _Month(days, weekdays)
    # No exact way: add the dates or the weekdays of what is left, whichever brings fewer unwanted days.
    more_days = _values(day_bits(), touching=left)
    more_weekdays = _values(weekday_bits(), touching=left)
    unwanted_by_date = (_any(day_bits(), more_days) & missing).bit_count()
    unwanted_by_week = (_any(weekday_bits(), more_weekdays) & missing).bit_count()
    if by_weekday and unwanted_by_week < unwanted_by_date:
        return _Month(days, weekdays | more_weekdays, too_much=True)
    days |= more_days
    # With every date of the month the weekdays say nothing more.
    return _Month(days, 0 if days == existing(month) else weekdays, too_much=True)


def _values(bits: tuple[int, ...], *, touching: int, avoiding: int = 0) -> int:
    """Mask the values with a day in `touching` and none in `avoiding`."""
    return sum(1 << value for value, days in enumerate(bits) if days & touching and not days & avoiding)


def _any(bits: tuple[int, ...], mask: int) -> int:
    """Join the days of the values in a mask."""
    union = 0
    for value, days in enumerate(bits):
        if mask >> value & 1:
            union |= days
    return union
