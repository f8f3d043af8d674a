"""The step-by-step search of the Go libraries, for the days on which a shortcut could differ from it.

What a search finds near a change of clocks depends on the steps by which it gets there. So the steps are
taken one by one here, in whole seconds, each with the choice of instant that Go's `time.Date` makes.
"""

from foresail.cron.civil import civil, month_length
from foresail.cron.dialect import Dialect
from foresail.cron.fields import Fields
from foresail.cron.zone import DAY, Table

_HOUR = 3600
_NOON = 12


class Sets:
    """What a search must find: the bits of each field, with the days joined by the dialect's rule.

    `days` has the matching days of a month, by the weekday that its first day falls on.
    `late` says that an hour which a change of clocks leaves out is served by the hour after it (go-cron).
    """

    __slots__ = ("days", "hours", "late", "minutes", "months")

    def __init__(self, fields: Fields, dialect: Dialect) -> None:
        self.months = fields.months
        self.days = fields.days_by_first_weekday(dialect)
        self.hours = fields.hours
        self.minutes = fields.minutes
        self.late = dialect is Dialect.GOCRON


class EndlessSearchError(Exception):
    """The Go library would search for ever."""


class LiteralSearch:
    """One search: an instant and the wall time it shows, moved forward field by field."""

    __slots__ = ("_day", "_instant", "_month", "_moved", "_second", "_sets", "_table", "_year")

    def __init__(self, sets: Sets, table: Table, instant: int, *, moved: bool) -> None:
        self._sets = sets
        self._table = table
        # Once a field has moved, the fields below it have been set to their lowest values.
        self._moved = moved
        self._set(instant)

    def run(self, last_year: int) -> int | None:
        """Return the first instant at or after the start that the Go library finds.

        None means that it gives up or, once in the history of a few zones, that it never returns.
        """
        try:
            return self._found(last_year)
        except EndlessSearchError:
            return None

    def _found(self, last_year: int) -> int | None:
        while self._year <= last_year:
            if self._to_month() and self._to_day() and self._to_hour() and self._to_minute():
                if self._instant_is_on_the_minute():
                    return self._instant
                # robfig notes this as a move, go-cron does not.
                self._moved = self._moved or not self._sets.late
        return None

    def _set(self, instant: int) -> None:
        self._instant = instant
        day, self._second = divmod(instant + self._table.offset(instant), DAY)
        self._day = day
        self._year, self._month, _ = civil(day)

    def _day_of_month(self) -> int:
        return civil(self._day)[2]

    def _to_month(self) -> bool:
        while not self._sets.months >> self._month & 1:
            if not self._moved:
                self._moved = True
                self._set(self._table.at((self._day - self._day_of_month() + 1) * DAY))
            a_month_on = self._day + month_length(self._year, self._month)
            self._set(self._table.at(a_month_on * DAY + self._second))
            if self._month == 1:
                return False
        return True

    def _to_day(self) -> bool:
        while not self._day_matches():
            if not self._moved:
                self._moved = True
                self._set(self._table.at(self._day * DAY))
            before = self._instant
            self._set(self._table.at((self._day + self._days_to_leap()) * DAY + self._second))
            if self._instant <= before:
                # A zone that moved across the date line skipped this day, and the libraries never return.
                raise EndlessSearchError
            hour = self._second // _HOUR
            if hour:  # no midnight: Go goes to where midnight would have been
                self._set(self._instant + (24 - hour if hour > _NOON else -hour) * _HOUR)
            if self._day_of_month() == 1:
                return False
        return True

    def _day_matches(self) -> bool:
        day = self._day_of_month()
        return bool(self._sets.days[(self._day - day + 5) % 7] >> day & 1)

    def _days_to_leap(self) -> int:
        """Return how many days can be taken in one step because each of them begins at midnight."""
        day = self._day_of_month()
        if self._second:
            return 1
        later = self._sets.days[(self._day - day + 5) % 7] >> (day + 1)
        to_match = (later & -later).bit_length() if later else DAY
        leap = min(to_match, month_length(self._year, self._month) - day + 1)
        return max(1, min(leap, self._table.next_gap(self._day) - self._day - 1))

    def _to_hour(self) -> bool:
        hour = self._second // _HOUR
        while not self._sets.hours >> hour & 1:
            if not self._moved:
                self._moved = True
                self._set(self._table.at(self._day * DAY + hour * _HOUR))
            before = self._second // _HOUR
            self._set(self._instant + _HOUR)
            hour = self._second // _HOUR
            if self._sets.late and hour - before == 2 and self._sets.hours >> (hour - 1) & 1:  # noqa: PLR2004  one hour is missing between the two
                break
            if hour == 0:
                return False
        return True

    def _to_minute(self) -> bool:
        while not self._sets.minutes >> (self._second // 60 % 60) & 1:
            if not self._moved:
                self._moved = True
                self._instant -= self._instant % 60
            self._set(self._instant + 60)
            if self._second // 60 % 60 == 0:
                return False
        return True

    def _instant_is_on_the_minute(self) -> bool:
        if self._second % 60 == 0:
            return True
        while self._second % 60:
            self._set(self._instant + 1)
        return False
