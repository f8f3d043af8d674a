"""Finds the next fire of a calendar schedule: by arithmetic on quiet days, by Go's steps on the others."""

from bisect import bisect_right

from foresail.cron.civil_time import civil_date, month_length
from foresail.cron.dialect import Dialect
from foresail.cron.fields import Fields
from foresail.cron.go_search import GoSearch, SearchFields
from foresail.cron.tz.zone import DAY, OffsetTable, Zone

_YEARS_AHEAD = 5
_DECEMBER = 12


class NextFireSearch:
    """The search for the next fire of a schedule's fields in a zone."""

    __slots__ = ("_days", "_empty", "_fields", "_first_second", "_hours", "_minutes", "_months", "_zone")

    def __init__(self, fields: Fields, dialect: Dialect, zone: Zone) -> None:
        self._zone = zone
        self._fields = SearchFields(fields, dialect)
        self._months = self._fields.months
        self._days = self._fields.days
        self._hours = self._fields.hours
        self._minutes = self._fields.minutes
        # "31 February" is not empty: the libraries fire on it where a month begins without a midnight.
        self._empty = not (self._months and self._hours and self._minutes and any(self._days))
        self._first_second = _lowest(fields.hours) * 3600 + _lowest(fields.minutes) * 60

    def next_fire(self, instant: int) -> int | None:
        """Return what the dialect's `Next` returns for an instant: a later instant, or None."""
        start = instant + 1
        if self._empty:
            return None
        if start >= self._zone.horizon:
            table, shift = self._zone.table_for(start)
            found = self._next_fire_in(table, start + shift)
            return None if found is None else found - shift
        return self._next_fire_in(self._zone.near, start)

    def _next_fire_in(self, table: OffsetTable, start: int) -> int | None:
        segment = bisect_right(table.starts, start) - 1
        offset = table.offsets[segment]
        today, second = divmod(start + offset, DAY)
        year, month, day = civil_date(today)
        days = self._days[(today - day + 5) % 7] if self._months >> month & 1 else 0
        quiet = table.quiet_from[segment] <= today < table.quiet_until[segment]
        if days >> day & 1:
            if quiet:
                at = self._second_from(second)
                if at is not None:
                    return today * DAY + at - offset
            elif offset % 60 == 0:
                found = self._within_the_hour(second, start)
                if found is not None and table.offset(found) == offset:
                    return found
        if not quiet:
            return self._search_like_go(table, start, year)
        found = self._day_after(today, year, month, day, days >> (day + 1))
        # A search that skips a month first goes back to the month's first day.
        since = today if self._months >> month & 1 else today - day
        until = today + 366 * (_YEARS_AHEAD + 1) if found is None else found
        if table.midnight_gaps and table.has_midnight_gap(since, until):
            return self._search_like_go(table, start, year)
        return None if found is None else self._on_day(table, segment, found, year)

    def _on_day(self, table: OffsetTable, segment: int, day: int, year: int) -> int | None:
        """Return the first fire of a matching day that a search enters at midnight."""
        if not table.quiet_from[segment] <= day < table.quiet_until[segment]:
            segment = bisect_right(table.starts, day * DAY) - 1
            if not table.quiet_from[segment] <= day < table.quiet_until[segment]:
                return self._search_like_go(table, table.instant_at(day * DAY), year, moved=True)
        return day * DAY + self._first_second - table.offsets[segment]

    def _search_like_go(self, table: OffsetTable, start: int, year: int, *, moved: bool = False) -> int | None:
        return GoSearch(self._fields, table, start, moved=moved).run(year + _YEARS_AHEAD)

    def _within_the_hour(self, second: int, instant: int) -> int | None:
        """Return the next matching instant within the current hour of the wall clock."""
        hour = second // 3600
        minute = (second % 3600 + 59) // 60
        later = self._minutes >> minute if self._hours >> hour & 1 else 0
        return instant - second % 3600 + (minute + _lowest(later)) * 60 if later else None

    def _second_from(self, second: int) -> int | None:
        """Return the first matching second of the day that is not before the given one."""
        hour, minute = divmod((second + 59) // 60, 60)
        if self._hours >> hour & 1:
            later = self._minutes >> minute
            if later:
                return hour * 3600 + (minute + _lowest(later)) * 60
        later = self._hours >> (hour + 1)
        if later:
            return (hour + 1 + _lowest(later)) * 3600 + _lowest(self._minutes) * 60
        return None

    def _day_after(self, today: int, year: int, month: int, day: int, later: int) -> int | None:
        """Return the next matching day by the calendar alone; `later` has this month's days beyond `day`."""
        length = month_length(year, month)
        if later:
            ahead = _lowest(later) + 1
            if day + ahead <= length:
                return today + ahead
        first = today - day + 1
        last_year = year + _YEARS_AHEAD
        while True:
            first += length
            month += 1
            if month > _DECEMBER:
                month = 1
                year += 1
                if year > last_year:
                    return None
            length = month_length(year, month)
            if self._months >> month & 1:
                days = self._days[(first + 4) % 7]
                if days and _lowest(days) <= length:
                    return first + _lowest(days) - 1


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
