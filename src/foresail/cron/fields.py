"""The five fields of a cron expression as bit sets, and how the two day fields combine."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from foresail.cron.civil_time import MAX_MONTH_LENGTHS
from foresail.cron.dialect import Dialect

# A month starts on one of seven weekdays. Multiplying the seven bits of a week by this repeats them over
# day 1 to day 35, so one multiplication turns a set of weekdays into a set of days of that month.
_FIVE_WEEKS = sum(1 << (7 * week + 1) for week in range(5))
_MIN_RUN = 3  # 1-3 reads better than 1,2,3; 1,2 reads better than 1-2

ALL_MINUTES = (1 << 60) - 1
ALL_HOURS = (1 << 24) - 1
ALL_DAYS = (1 << 32) - 2
ALL_MONTHS = (1 << 13) - 2
ALL_WEEKDAYS = (1 << 7) - 1
"""The bit set of a field without restriction; likewise the four above."""


def values_of(bits: int) -> list[int]:
    """Return the values of a bit set, in order."""
    return [value for value in range(bits.bit_length()) if bits >> value & 1]


def spans_of(values: Iterable[int]) -> list[tuple[int, int]]:
    """Return sorted values as (first, last) of each run of three or more; others become (value, value)."""
    spans: list[tuple[int, int]] = []
    for _, pairs in groupby(enumerate(values), lambda pair: pair[1] - pair[0]):
        run = [value for _, value in pairs]
        spans += [(run[0], run[-1])] if len(run) >= _MIN_RUN else [(value, value) for value in run]
    return spans


def combine_days(by_date: int, by_weekday: int, *, both: bool) -> int:
    """Combine the days that each day field allows: their intersection if both must match, else their union."""
    return by_date & by_weekday if both else by_date | by_weekday


@dataclass(frozen=True, slots=True)
class Fields:
    """The allowed values of each field: bit `i` is set if the value `i` is allowed (weekday 0 is Sunday).

    `any_day` and `any_weekday` are true if the field has a star (or `?`) without a step above 1. Only
    robfig uses them, to decide how the two day fields combine.
    """

    minutes: int
    hours: int
    days: int
    months: int
    weekdays: int
    any_day: bool
    any_weekday: bool

    def requires_both_day_fields(self, dialect: Dialect) -> bool:
        """Return whether a date must match both day fields; otherwise one is enough."""
        return dialect.requires_both_day_fields or self.any_day or self.any_weekday

    def day_matches(self, month: int, day: int, weekday: int, dialect: Dialect) -> bool:
        """Return whether the schedule fires on a date; `weekday` is 0 for Sunday."""
        if not self.months >> month & 1:
            return False
        by_date = self.days >> day & 1
        by_weekday = self.weekdays >> weekday & 1
        return bool(combine_days(by_date, by_weekday, both=self.requires_both_day_fields(dialect)))

    def days_by_first_weekday(self, dialect: Dialect) -> tuple[int, ...]:
        """Return, for each weekday that a month may start on, the days of that month that match.

        This ignores the length of the month and the months field.
        """
        both = self.requires_both_day_fields(dialect)
        sets = []
        for first in range(7):
            week = (self.weekdays >> first | self.weekdays << (7 - first)) & ALL_WEEKDAYS
            by_weekday = week * _FIVE_WEEKS & ALL_DAYS
            sets.append(combine_days(self.days, by_weekday, both=both))
        return tuple(sets)

    def never_fires(self, dialect: Dialect) -> str | None:
        """Return why no instant of any year matches, or None if some do.

        Every date, 29 February included, falls on every weekday within 400 years. So it is enough to check
        each field and the days that a month can have.
        """
        for name, allowed in (("minute", self.minutes), ("hour", self.hours), ("month", self.months)):
            if not allowed:
                return f"the {name} field is an empty list"
        exists = any(
            self.months >> month & 1 and self.days & ((2 << MAX_MONTH_LENGTHS[month]) - 1) for month in range(1, 13)
        )
        if not self.requires_both_day_fields(dialect):
            exists = exists or self.weekdays > 0
        elif not self.weekdays:
            return "the day-of-week field is an empty list"
        if exists:
            return None
        return "none of its months has such a day" if self.days else "the day-of-month field is an empty list"
