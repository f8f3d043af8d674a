"""Sets of days over the 400 years after which the Gregorian calendar repeats, weekdays included.

146,097 days are exactly 20,871 weeks, so the days of a cron expression repeat with the calendar. One Python
integer with a bit per day represents them for all time.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Final

from foresail.cron.civil_time import GREGORIAN_CYCLE_DAYS, MAX_MONTH_LENGTHS, month_length
from foresail.cron.dialect import Dialect
from foresail.cron.fields import ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, Fields, combine_days

CYCLE: Final = GREGORIAN_CYCLE_DAYS
_FIRST_YEAR: Final = 2000
CYCLE_STARTS: Final = datetime(_FIRST_YEAR, 1, 1, tzinfo=UTC)  # day 0
EVERY_DAY: Final = (1 << CYCLE) - 1
_SATURDAY: Final = 6  # the weekday of day 0


@dataclass(frozen=True, slots=True)
class DayRule:
    """The three day fields of an expression as masks: bit i allows the value i, None allows any."""

    months: int
    days: int | None
    weekdays: int | None

    @property
    def is_every_day(self) -> bool:
        """Whether the rule allows every day."""
        return self.months == ALL_MONTHS and self.days is None and self.weekdays is None


@lru_cache(maxsize=1024)
def day_rule(fields: Fields, dialect: Dialect) -> DayRule | None:
    """Return the days that an expression allows in canonical form; None if it allows none."""
    both = fields.requires_both_day_fields(dialect)
    rule = _rule_requiring_both(fields) if both else _rule_requiring_either(fields)
    return rule if day_set(rule, dialect) else None


def _rule_requiring_both(fields: Fields) -> DayRule:
    days = None if fields.days == ALL_DAYS else fields.days
    weekdays = None if fields.weekdays == ALL_WEEKDAYS else fields.weekdays
    return DayRule(fields.months, days, weekdays)


def _rule_requiring_either(fields: Fields) -> DayRule:
    if fields.days == ALL_DAYS or fields.weekdays == ALL_WEEKDAYS:
        return DayRule(fields.months, None, None)
    if not fields.weekdays:
        return DayRule(fields.months, fields.days, None)
    return DayRule(fields.months, fields.days or None, fields.weekdays)


@lru_cache(maxsize=64)
def day_set(rule: DayRule, dialect: Dialect) -> int:
    """Return the days of the 400-year cycle that a rule allows."""
    months = _union(rule.months, month_bits())
    match rule.days, rule.weekdays:
        case None, None:
            return months
        case int(days), None:
            return months & _union(days, day_bits())
        case None, int(weekdays):
            return months & _union(weekdays, weekday_bits())
        case days, weekdays:
            by_date = _union(days or 0, day_bits())
            by_weekday = _union(weekdays or 0, weekday_bits())
            return months & combine_days(by_date, by_weekday, both=dialect.requires_both_day_fields)


def shift_day_set(days: int, by: int) -> int:
    """Shift a set of days `by` days earlier within the cycle (negative: later)."""
    by %= CYCLE
    return (days >> by) | ((days << (CYCLE - by)) & EVERY_DAY) if by else days


def shift_weekdays(weekdays: int, by: int) -> int:
    """Shift a mask of weekdays `by` days earlier."""
    by %= 7
    return ((weekdays >> by) | (weekdays << (7 - by))) & ALL_WEEKDAYS


def _union(mask: int, bits: tuple[int, ...]) -> int:
    if mask.bit_count() > len(bits) // 2:  # excluding the others is cheaper
        left_out = 0
        for value, days in enumerate(bits):
            if days and not mask >> value & 1:
                left_out |= days
        return EVERY_DAY ^ left_out
    union = 0
    for value, days in enumerate(bits):
        if mask >> value & 1:
            union |= days
    return union


@cache
def _month_starts() -> tuple[int, ...]:
    """Return the first day of each month of the cycle, and the day after the cycle."""
    starts = [0]
    day = 0
    for year in range(_FIRST_YEAR, _FIRST_YEAR + 400):
        for month in range(1, 13):
            day += month_length(year, month)
            starts.append(day)
    return tuple(starts)


def _bits(days: tuple[int, ...]) -> int:
    buffer = bytearray(CYCLE // 8 + 1)
    for day in days:
        buffer[day >> 3] |= 1 << (day & 7)
    return int.from_bytes(buffer, "little")


@cache
def month_bits() -> tuple[int, ...]:
    """Return the days of each month, by month number."""
    starts = _month_starts()
    # 2^end - 2^start is a run of ones; the difference of the sums gives all runs of a month at once.
    return (0, *(_bits(starts[m + 1 :: 12]) - _bits(starts[m:-1:12]) for m in range(12)))


@cache
def day_bits() -> tuple[int, ...]:
    """Return the days with each day-of-month number."""
    first = _bits(_month_starts()[:-1])
    bits = [0, *(first << day for day in range(28))]
    months = month_bits()
    # The 29th to the 31st must not reach into the next month.
    for day in (29, 30, 31):
        long_enough = sum(months[m] for m in range(1, 13) if MAX_MONTH_LENGTHS[m] >= day)
        bits.append((first << (day - 1)) & long_enough & ~(bits[1] | bits[2] | bits[3]))
    return tuple(bits)


@cache
def weekday_bits() -> tuple[int, ...]:
    """Return the days of each weekday, Sunday first."""
    weekly = EVERY_DAY // ALL_WEEKDAYS  # a bit every seventh day
    return tuple(weekly << ((weekday - _SATURDAY) % 7) for weekday in range(7))
