"""The five fields of a calendar schedule as sets of bits."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from foresail.cron.civil import LONGEST
from foresail.cron.dialect import Dialect

# A month starts on one of seven weekdays. Multiplying the seven bits of a week by this repeats them over
# day 1 to day 35, so one multiplication turns a set of weekdays into a set of days of that month.
_FIVE_WEEKS = sum(1 << (7 * week + 1) for week in range(5))
_A_RUN = 3  # 1-3 reads better than 1,2,3; 1,2 reads better than 1-2

ALL_MINUTES = (1 << 60) - 1
ALL_HOURS = (1 << 24) - 1
ALL_DAYS = (1 << 32) - 2
ALL_MONTHS = (1 << 13) - 2
ALL_WEEKDAYS = (1 << 7) - 1
"""The set of a field that leaves nothing out; the four above as well."""


def values_of(bits: int) -> list[int]:
    """Return the values of a set, in order."""
    return [value for value in range(bits.bit_length()) if bits >> value & 1]


def spans_of(values: Iterable[int]) -> list[tuple[int, int]]:
    """Return values in order as first and last of each run of three or more; any other value is a span of its own."""
    spans: list[tuple[int, int]] = []
    for _, pairs in groupby(enumerate(values), lambda pair: pair[1] - pair[0]):
        run = [value for _, value in pairs]
        spans += [(run[0], run[-1])] if len(run) >= _A_RUN else [(value, value) for value in run]
    return spans


@dataclass(frozen=True, slots=True)
class Fields:
    """What each field allows: bit `i` of a set says that the value `i` is allowed (weekday 0 is Sunday).

    `any_day` and `any_weekday` say that the field was written with a star (or `?`) and without a step
    above 1; robfig joins the two day fields by it, go-cron does not look at it.
    """

    minutes: int
    hours: int
    days: int
    months: int
    weekdays: int
    any_day: bool
    any_weekday: bool

    def joins_days_with_and(self, dialect: Dialect) -> bool:
        """Tell whether a date must satisfy both day fields (else one of them is enough)."""
        return dialect is Dialect.GOCRON or self.any_day or self.any_weekday

    def day_matches(self, month: int, day: int, weekday: int, dialect: Dialect) -> bool:
        """Tell whether the schedule fires on a date; `weekday` is 0 for Sunday."""
        if not self.months >> month & 1:
            return False
        in_days = bool(self.days >> day & 1)
        in_weekdays = bool(self.weekdays >> weekday & 1)
        if self.joins_days_with_and(dialect):
            return in_days and in_weekdays
        return in_days or in_weekdays

    def days_by_first_weekday(self, dialect: Dialect) -> tuple[int, ...]:
        """Return, for each weekday that a month may start on, the days of that month that match.

        The length of the month and the months field are not looked at.
        """
        both = self.joins_days_with_and(dialect)
        sets = []
        for first in range(7):
            week = (self.weekdays >> first | self.weekdays << (7 - first)) & ALL_WEEKDAYS
            by_weekday = week * _FIVE_WEEKS & ALL_DAYS
            sets.append(self.days & by_weekday if both else self.days | by_weekday)
        return tuple(sets)

    def never_fires(self, dialect: Dialect) -> str | None:
        """Return why no instant of any year matches, or None if some do.

        Every day of every month, 29 February included, falls on every weekday within 400 years, so it is
        enough to look at each field and at the days that a month can have.
        """
        for name, allowed in (("minute", self.minutes), ("hour", self.hours), ("month", self.months)):
            if not allowed:
                return f"the {name} field is an empty list"
        exists = any(self.months >> month & 1 and self.days & ((2 << LONGEST[month]) - 1) for month in range(1, 13))
        if not self.joins_days_with_and(dialect):
            exists = exists or self.weekdays > 0
        elif not self.weekdays:
            return "the day-of-week field is an empty list"
        if exists:
            return None
        return "none of its months has such a day" if self.days else "the day-of-month field is an empty list"
