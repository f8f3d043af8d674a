"""The step-by-step search of the Go libraries, for days on which a shortcut could give another result.

Near a clock change the result depends on the steps of the search. So this module takes the same steps, in
whole seconds, and chooses the same instants as Go's `time.Date`.
"""

from foresail.cron.civil_time import civil_date, month_length
from foresail.cron.dialect import Dialect
from foresail.cron.fields import Fields
from foresail.cron.tz.zone import DAY, OffsetTable

_HOUR = 3600
_NOON = 12


class SearchFields:
    """The bits of each field, with the day fields combined by the dialect's rule.

    `days` has the matching days of a month, by the weekday of its first day.
    `runs_skipped_hours_late`: fires in the hour after one that a clock change skips (go-cron only).
    """

    __slots__ = ("days", "hours", "minutes", "months", "runs_skipped_hours_late")

    def __init__(self, fields: Fields, dialect: Dialect) -> None:
        self.months = fields.months
        self.days = fields.days_by_first_weekday(dialect)
        self.hours = fields.hours
        self.minutes = fields.minutes
        self.runs_skipped_hours_late = dialect is Dialect.GOCRON


class EndlessSearchError(Exception):
    """The Go library would never return."""


class GoSearch:
    """One search: an instant and its wall time, moved forward field by field."""

    __slots__ = ("_day", "_fields", "_instant", "_month", "_moved", "_second", "_table", "_year")

    def __init__(self, fields: SearchFields, table: OffsetTable, instant: int, *, moved: bool) -> None:
        self._fields = fields
        self._table = table
        # Once a field has moved, the fields below it have been set to their lowest values.
        self._moved = moved
        self._set(instant)

    def run(self, last_year: int) -> int | None:
        """Return the first instant at or after the start that the Go library finds.

        None means that it gives up or, once in the history of a few zones, never returns.
        """
        try:
            return self._search(last_year)
        except EndlessSearchError:
            return None

    def _search(self, last_year: int) -> int | None:
        while self._year <= last_year:
            if self._to_month() and self._to_day() and self._to_hour() and self._to_minute():
                if self._to_full_minute():
                    return self._instant
                # robfig counts this as a move, go-cron does not.
                self._moved = self._moved or not self._fields.runs_skipped_hours_late
        return None

    def _set(self, instant: int) -> None:
        self._instant = instant
        day, self._second = divmod(instant + self._table.offset(instant), DAY)
        self._day = day
        self._year, self._month, _ = civil_date(day)

    def _day_of_month(self) -> int:
        return civil_date(self._day)[2]

    def _to_month(self) -> bool:
        while not self._fields.months >> self._month & 1:
            if not self._moved:
                self._moved = True
                self._set(self._table.instant_at((self._day - self._day_of_month() + 1) * DAY))
            a_month_on = self._day + month_length(self._year, self._month)
            self._set(self._table.instant_at(a_month_on * DAY + self._second))
            if self._month == 1:
                return False
        return True

    def _to_day(self) -> bool:
        while not self._day_matches():
            if not self._moved:
                self._moved = True
                self._set(self._table.instant_at(self._day * DAY))
            before = self._instant
            self._set(self._table.instant_at((self._day + self._days_to_leap()) * DAY + self._second))
            if self._instant <= before:
                # A zone that moved across the date line skipped this day: the libraries never return.
                raise EndlessSearchError
            hour = self._second // _HOUR
            if hour:  # no midnight: Go moves to where midnight would have been
                self._set(self._instant + (24 - hour if hour > _NOON else -hour) * _HOUR)
            if self._day_of_month() == 1:
                return False
        return True

    def _day_matches(self) -> bool:
        day = self._day_of_month()
        return bool(self._fields.days[(self._day - day + 5) % 7] >> day & 1)

    def _days_to_leap(self) -> int:
        """Return how many days one step can take because each of them begins at midnight."""
        day = self._day_of_month()
        if self._second:
            return 1
        later = self._fields.days[(self._day - day + 5) % 7] >> (day + 1)
        to_match = (later & -later).bit_length() if later else DAY
        leap = min(to_match, month_length(self._year, self._month) - day + 1)
        return max(1, min(leap, self._table.next_midnight_gap(self._day) - self._day - 1))

    def _to_hour(self) -> bool:
        hour = self._second // _HOUR
        while not self._fields.hours >> hour & 1:
            if not self._moved:
                self._moved = True
                self._set(self._table.instant_at(self._day * DAY + hour * _HOUR))
            before = self._second // _HOUR
            self._set(self._instant + _HOUR)
            hour = self._second // _HOUR
            if self._fields.runs_skipped_hours_late and hour - before == 2 and self._fields.hours >> (hour - 1) & 1:  # noqa: PLR2004  one hour is missing between the two
                break
            if hour == 0:
                return False
        return True

    def _to_minute(self) -> bool:
        while not self._fields.minutes >> (self._second // 60 % 60) & 1:
            if not self._moved:
                self._moved = True
                self._instant -= self._instant % 60
            self._set(self._instant + 60)
            if self._second // 60 % 60 == 0:
                return False
        return True

    def _to_full_minute(self) -> bool:
        if self._second % 60 == 0:
            return True
        while self._second % 60:
            self._set(self._instant + 1)
        return False
