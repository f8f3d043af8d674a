"""Finds the previous fire of a calendar schedule: the one that a search forward would have reached."""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice

from foresail.cron.civil_time import civil_date, month_length
from foresail.cron.dialect import Dialect
from foresail.cron.fields import Fields
from foresail.cron.next_fire import NextFireSearch
from foresail.cron.tz.zone import DAY, OffsetTable, Zone

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
        found = 0
        for number in range(2 if elapsed else 1):
            is_regular = self._is_regular(table, segment, local + number)
            if is_regular is None:
                return None
            found |= is_regular * self._minutes_of_day << _DAY_MINUTES * number
        return found >> elapsed // 60 & (1 << _DAY_MINUTES) - 1

    def _is_regular(self, table: OffsetTable, segment: int, day: int) -> bool | None:
        """Whether every sequence fires on a day at the times of the fields, or at none; None if one may differ."""
        latest = list(islice(self._matching_days(day), 2))
        for each in (day, *latest):
            if not table.quiet_from[segment] <= each < table.quiet_until[segment] or _skips_month(table, each):
                return None
        return latest[0] == day if len(latest) > 1 else None

    def next_fire_until(self, fire: int, end: int) -> int | None:
        """Return the fire after another one, even if it is further away than the dialect searches."""
        found = self.next_fire(fire)
        while found is None and fire < end:
            fire += _SEARCH_LIMIT
            found = self.next_fire(fire)
        return found

    def _last_of_sequence(self, start: int, end: int) -> int | None:
        last = None
        fire = self.next_fire(start)
        while fire is not None and fire < end:
            last = fire
            fire = self.next_fire(fire)
        return last

    def _last_without_convergence(self, instant: int) -> int | None:
        """Return the last fire of a sequence from the nearest year that gives two days of fires, or one."""
        found = None
        for years in _YEARS_BACK:
            start = instant - years * _YEAR
            last = self._last_of_sequence(start, instant)
            if last is None or (found is not None and self.next_fire(last) is None):
                continue  # no fire yet, or a sequence that ended on the way
            first = self.next_fire(start)
            found = last
            if first is not None and first < last - DAY:
                break
        return found

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
