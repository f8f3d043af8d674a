"""The search for the fires of a calendar schedule: by arithmetic on quiet days, by Go's steps on the others.

Near a clock change the result depends on the steps of the search. So `GoSearch` takes the same steps, in whole
seconds, and chooses the same instants as Go's `time.Date`. The previous fire is the one that a search forward would
have reached.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice

from foresail.cron.civil_time import civil_date, month_length
from foresail.cron.dialect import Dialect
from foresail.cron.fields import Fields
from foresail.cron.zones import DAY, OffsetTable, Zone

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
            fire = self._next_fire_in(table, start + shift)
            return None if fire is None else fire - shift
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
                fire = self._within_the_hour(second, start)
                if fire is not None and table.offset(fire) == offset:
                    return fire
        if not quiet:
            return self._search_like_go(table, start, year)
        fire = self._day_after(today, year, month, day, days >> (day + 1))
        # A search that skips a month first goes back to the month's first day.
        since = today if self._months >> month & 1 else today - day
        until = today + 366 * (_YEARS_AHEAD + 1) if fire is None else fire
        if table.midnight_gaps and table.has_midnight_gap(since, until):
            return self._search_like_go(table, start, year)
        return None if fire is None else self._on_day(table, segment, fire, year)

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


_MONTHS_BACK = 24
# 29 February on a given weekday leaves gaps of forty years, and a search forward covers five of them.
_YEARS_BACK = (1, *range(5, 50, 5))
_YEAR = 366 * DAY
_SEARCH_LIMIT = 5 * 365 * DAY  # less than the dialects search
_NOT_QUIET = -1
_DAY_MINUTES = DAY // 60


class FireSearch(NextFireSearch):
    """Searches forward as the dialect does, and backward for what such a search would have found.

    After a clock change a sequence of fires may be out of step (00:30, 01:30 and so on) until it has passed
    one more matching day. So a sequence is followed from a convergence: a fire with a matching day before it
    and only quiet days between the two, which every sequence reaches.
    """

    __slots__ = ("_last_second", "_minutes_of_day", "_never")

    def __init__(self, fields: Fields, dialect: Dialect, zone: Zone) -> None:
        super().__init__(fields, dialect, zone)
        self._never = fields.never_fires(dialect) is not None
        self._last_second = (fields.hours.bit_length() - 1) * 3600 + (fields.minutes.bit_length() - 1) * 60
        self._minutes_of_day = sum(fields.minutes << 60 * hour for hour in range(24) if fields.hours >> hour & 1)

    def previous_fire(self, instant: int, anchor: int | None = None) -> int | None:
        """Return the last fire before an instant in the sequence from the last convergence before it.

        With an anchor, the sequence starts there if no convergence lies between the two.
        """
        if self._never:
            return None
        table, shift = self._zone.table_for(instant)
        start = instant + shift - 1
        segment = bisect_right(table.starts, start) - 1
        today, second = divmod(start + table.offsets[segment], DAY)
        convergence = self._last_convergence(table, today, second)
        if convergence is not None and (anchor is None or convergence - shift > anchor):
            if convergence >= table.starts[segment] and today < table.quiet_until[segment]:
                return convergence - shift
            return self._last_of_sequence(convergence - shift, instant) or convergence - shift
        if anchor is not None:
            return self._last_of_sequence(anchor, instant)
        return self._last_without_convergence(instant)

    def regular_minutes(self, day: int) -> int | None:
        """Return the fires in a day of UTC as bits, one a minute; None if a clock change may have moved some."""
        if self._never:
            return 0
        table, shift = self._zone.table_for(day * DAY)
        start = day * DAY + shift
        segment = bisect_right(table.starts, start) - 1
        offset = table.offsets[segment]
        if offset % 60 or bisect_right(table.starts, start + DAY - 1) - 1 != segment:
            return None
        local, elapsed = divmod(start + offset, DAY)
        minutes = 0
        for number in range(2 if elapsed else 1):
            is_regular = self._is_regular(table, segment, local + number)
            if is_regular is None:
                return None
            minutes |= is_regular * self._minutes_of_day << _DAY_MINUTES * number
        return minutes >> elapsed // 60 & (1 << _DAY_MINUTES) - 1

    def _is_regular(self, table: OffsetTable, segment: int, day: int) -> bool | None:
        """Whether every sequence fires on a day at the times of the fields, or at none; None if one may differ."""
        latest = list(islice(self._matching_days(day), 2))
        for instant in (day, *latest):
            if not table.quiet_from[segment] <= instant < table.quiet_until[segment] or _skips_month(table, instant):
                return None
        return latest[0] == day if len(latest) > 1 else None

    def next_fire_until(self, fire: int, end: int) -> int | None:
        """Return the fire after another one, even if it is further away than the dialect searches."""
        following = self.next_fire(fire)
        while following is None and fire < end:
            fire += _SEARCH_LIMIT
            following = self.next_fire(fire)
        return following

    def _last_of_sequence(self, start: int, end: int) -> int | None:
        last = None
        fire = self.next_fire(start)
        while fire is not None and fire < end:
            last = fire
            fire = self.next_fire(fire)
        return last

    def _last_without_convergence(self, instant: int) -> int | None:
        """Return the last fire of a sequence from the nearest year that gives two days of fires, or one."""
        fire = None
        for years in _YEARS_BACK:
            start = instant - years * _YEAR
            last = self._last_of_sequence(start, instant)
            if last is None or (fire is not None and self.next_fire(last) is None):
                continue  # no fire yet, or a sequence that ended on the way
            first = self.next_fire(start)
            fire = last
            if first is not None and first < last - DAY:
                break
        return fire

    def _last_convergence(self, table: OffsetTable, today: int, second: int) -> int | None:
        """Return the last fire up to a second of `today` that every sequence reaches."""
        last_today = self._second_until(second)
        later = 0
        its_segment = _NOT_QUIET
        for day in self._matching_days(today if last_today is not None else today - 1):
            segment = bisect_right(table.starts, day * DAY) - 1
            if not table.quiet_from[segment] <= day < table.quiet_until[segment] or _skips_month(table, day):
                segment = _NOT_QUIET
            if segment == its_segment != _NOT_QUIET:
                at = last_today if later == today and last_today is not None else self._last_second
                return later * DAY + at - table.offsets[segment]
            later = day
            its_segment = segment
        return None

    def _matching_days(self, last: int) -> Iterator[int]:
        """Yield the days on which the schedule fires, from `last` back, over two years."""
        year, month, day = civil_date(last)
        first = last - day + 1
        for _ in range(_MONTHS_BACK):
            if self._months >> month & 1:
                upto = min(day, month_length(year, month))
                days = self._days[(first + 4) % 7] & (2 << upto) - 1
                while days:
                    highest = days.bit_length() - 1
                    yield first + highest - 1
                    days ^= 1 << highest
            year, month = (year, month - 1) if month > 1 else (year - 1, 12)
            first -= month_length(year, month)
            day = 31

    def _second_until(self, second: int) -> int | None:
        """Return the last matching second of the day that is not after the given one."""
        hour, minute = divmod(second // 60, 60)
        if self._hours >> hour & 1:
            earlier = self._minutes & (2 << minute) - 1
            if earlier:
                return hour * 3600 + (earlier.bit_length() - 1) * 60
        earlier = self._hours & (1 << hour) - 1
        if earlier:
            return (earlier.bit_length() - 1) * 3600 + (self._minutes.bit_length() - 1) * 60
        return None


def _skips_month(table: OffsetTable, day: int) -> bool:
    """Return whether a search may skip the whole month of a day, because the month began without a midnight."""
    if not table.midnight_gaps:  # true for most zones, and this runs for each matching day
        return False
    first = day - civil_date(day)[2] + 1
    return table.has_midnight_gap(first - 1, first)
