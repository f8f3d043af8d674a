"""Expresses a set of days, shifted some days earlier, as cron day fields.

Expressible (by the grammar of the day fields) is:
- robfig: a set in which every day, in its month, has a day of month or a weekday *all* of whose days
  belong to the set; robfig cannot require both fields.
- go-cron: a set that month, day of month and weekday decide; one expression keeps all its weekdays.
So neither can express a day that depends on the leap year ("the day before 1 March").
An inexpressible set is replaced by the closest one that loses no day.
"""

import enum
from dataclasses import dataclass, replace
from functools import lru_cache

from foresail.cron.dialect import Dialect
from foresail.cron.fields import ALL_MONTHS
from foresail.cron.shift.day_boxes import existing_days, split_into_boxes
from foresail.cron.shift.day_sets import (
    EVERY_DAY,
    DayRule,
    day_bits,
    day_set,
    month_bits,
    shift_day_set,
    shift_weekdays,
    weekday_bits,
)


class Inexpressible(enum.Enum):
    """Why no day fields express a set of days."""

    LEAP_YEAR = "leap year"
    WEEKDAYS_OF_MONTHS = "weekdays of some months"


@dataclass(frozen=True, slots=True)
class DayCover:
    """Disjoint rules for the shifted days: exact, or with some more days if `inexpressible` is set."""

    rules: tuple[DayRule, ...]
    inexpressible: Inexpressible | None = None
    is_minimal: bool = True


@dataclass(frozen=True, slots=True)
class _MonthCover:
    """The dates and weekdays (robfig only) that cover one month, and whether they include unwanted days."""

    days: int
    weekdays: int
    has_unwanted: bool = False


@lru_cache(maxsize=2048)
def shift_day_rule(rule: DayRule, by: int, dialect: Dialect) -> DayCover:
    """Express the days of a rule shifted `by` days earlier, with as few rules as can be found."""
    if by == 0 or rule.is_every_day:
        return DayCover((rule,))
    weekdays = None if rule.weekdays is None else shift_weekdays(rule.weekdays, by)
    if rule.months == ALL_MONTHS and rule.days is None:
        return DayCover((DayRule(ALL_MONTHS, None, weekdays),))
    wanted = shift_day_set(day_set(rule, dialect), by)
    if dialect.requires_both_day_fields:
        return _cover_requiring_both(wanted, weekdays)
    cover = _cover_requiring_either(wanted)
    if cover.inexpressible and weekdays is not None and rule.months != ALL_MONTHS:
        return replace(cover, inexpressible=Inexpressible.WEEKDAYS_OF_MONTHS)
    return cover


def _cover_requiring_both(wanted: int, weekdays: int | None) -> DayCover:
    """Cover days that are all on `weekdays`: these stay one field, and the dates are split into boxes."""
    among = EVERY_DAY if weekdays is None else _union(weekday_bits(), weekdays)
    months = {m: _cover_month(m, wanted, among, by_weekday=False) for m in range(1, 13)}
    split = split_into_boxes({m: month.days for m, month in months.items()})
    rules = tuple(_rule(box.months, box.days, weekdays) for box in split.boxes)
    return DayCover(rules, _inexpressible(months), split.is_minimal)


def _cover_requiring_either(wanted: int) -> DayCover:
    """Cover days by date, by weekday or by either; a month that needs both must be in one rule."""
    months = {m: _cover_month(m, wanted, EVERY_DAY, by_weekday=True) for m in range(1, 13)}
    by_date = split_into_boxes({m: month.days for m, month in months.items() if not month.weekdays})
    groups: dict[tuple[int, int], int] = {}
    for m in sorted((m for m, month in months.items() if month.weekdays), key=lambda m: -existing_days(m)):
        days = months[m].days
        weekdays = months[m].weekdays
        alike = next((k for k in groups if k[1] == weekdays and k[0] & existing_days(m) == days), (days, weekdays))
        groups[alike] = groups.get(alike, 0) | 1 << m
    rules = [_rule(box.months, box.days, None) for box in by_date.boxes]
    rules += [_rule(in_months, days, weekdays) for (days, weekdays), in_months in groups.items()]
    return DayCover(tuple(rules), _inexpressible(months), by_date.is_minimal)


def _rule(months: int, days: int, weekdays: int | None) -> DayRule:
    whole = all(not existing_days(m) & ~days for m in range(1, 13) if months >> m & 1)
    return DayRule(months, None if whole or not days else days, weekdays)


def _inexpressible(months: dict[int, _MonthCover]) -> Inexpressible | None:
    return Inexpressible.LEAP_YEAR if any(month.has_unwanted for month in months.values()) else None


def _cover_month(month: int, wanted: int, among: int, *, by_weekday: bool) -> _MonthCover:
    here = month_bits()[month] & among
    missing = here & ~wanted
    wanted &= here
    if not missing:
        return _MonthCover(existing_days(month), 0)
    if not wanted:
        return _MonthCover(0, 0)
    days = _values(day_bits(), touching=wanted, avoiding=missing)
    weekdays = _values(weekday_bits(), touching=wanted, avoiding=missing) if by_weekday else 0
    left = wanted & ~_union(day_bits(), days) & ~_union(weekday_bits(), weekdays)
    if not left:
        return _MonthCover(days, weekdays)
    # Not expressible: add the dates or the weekdays of what is left, whichever adds fewer unwanted days.
    more_days = _values(day_bits(), touching=left)
    more_weekdays = _values(weekday_bits(), touching=left)
    unwanted_by_date = (_union(day_bits(), more_days) & missing).bit_count()
    unwanted_by_week = (_union(weekday_bits(), more_weekdays) & missing).bit_count()
    if by_weekday and unwanted_by_week < unwanted_by_date:
        return _MonthCover(days, weekdays | more_weekdays, has_unwanted=True)
    days |= more_days
    # With every date of the month the weekdays add nothing.
    return _MonthCover(days, 0 if days == existing_days(month) else weekdays, has_unwanted=True)


def _values(bits: tuple[int, ...], *, touching: int, avoiding: int = 0) -> int:
    """Return the mask of the values with a day in `touching` and none in `avoiding`."""
    return sum(1 << value for value, days in enumerate(bits) if days & touching and not days & avoiding)


def _union(bits: tuple[int, ...], mask: int) -> int:
    """Return the union of the days of the values in a mask."""
    union = 0
    for value, days in enumerate(bits):
        if mask >> value & 1:
            union |= days
    return union
