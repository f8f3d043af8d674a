"""Finds the fires of a calendar schedule in both directions."""

from bisect import bisect_right
from collections.abc import Iterator

from foresail.cron.civil import civil, month_length
from foresail.cron.dialect import Dialect
from foresail.cron.fields import Fields
from foresail.cron.forward import Forward
from foresail.cron.zone import DAY, Table, Zone

_MONTHS_BACK = 24
# 29 February on a given weekday leaves gaps of forty years, and a search ahead sees five of them.
_YEARS_BACK = (1, *range(5, 50, 5))
_YEAR = 366 * DAY
_GIVES_UP = 5 * 365 * DAY  # less than the dialects look ahead
_UNQUIET = -1


class Search(Forward):
    """Looks forward as the dialect does, and backward for what looking forward would have found.

    A chain of fires that leaves a day with a change of clocks may be out of step (it looks at 00:30, 01:30
    and so on) until it has passed one more matching day. So the fire from which a chain is followed must
    have a matching day before it with only quiet days between the two: all chains meet there.
    """

    __slots__ = ("_last_second", "_never")

    def __init__(self, fields: Fields, dialect: Dialect, zone: Zone) -> None:
        super().__init__(fields, dialect, zone)
        self._never = fields.never_fires(dialect) is not None
        self._last_second = (fields.hours.bit_length() - 1) * 3600 + (fields.minutes.bit_length() - 1) * 60

    def before(self, instant: int, anchor: int | None = None) -> int | None:
        """Return the last fire before an instant in the chain that comes from the last meeting before it.

        With an anchor, the chain starts there if no meeting lies between the two.
        """
        if self._never:
            return None
        table, shift = self._zone.table_for(instant)
        start = instant + shift - 1
        segment = bisect_right(table.starts, start) - 1
        today, second = divmod(start + table.offsets[segment], DAY)
        meeting = self._last_meeting(table, today, second)
        if meeting is not None and (anchor is None or meeting - shift > anchor):
            if meeting >= table.starts[segment] and today < table.quiet_until[segment]:
                return meeting - shift
            return self._last_of_chain(meeting - shift, instant) or meeting - shift
        if anchor is not None:
            return self._last_of_chain(anchor, instant)
        return self._last_without_meeting(instant)

    def onward(self, fire: int, end: int) -> int | None:
        """Return the fire after another one, also where the dialect gives up because it is years away."""
        found = self.after(fire)
        while found is None and fire < end:
            fire += _GIVES_UP
            found = self.after(fire)
        return found

    def _last_of_chain(self, start: int, end: int) -> int | None:
        last = None
        fire = self.after(start)
        while fire is not None and fire < end:
            last = fire
            fire = self.after(fire)
        return last

    def _last_without_meeting(self, instant: int) -> int | None:
        """Return the last fire of a chain from the nearest year that gives two days of fires, or one."""
        found = None
        for years in _YEARS_BACK:
            start = instant - years * _YEAR
            last = self._last_of_chain(start, instant)
            if last is None or (found is not None and self.after(last) is None):
                continue  # nothing yet, or a chain from so far back that it ended on the way
            first = self.after(start)
            found = last
            if first is not None and first < last - DAY:
                break
        return found

    def _last_meeting(self, table: Table, today: int, second: int) -> int | None:
        """Return the last fire up to a second of `today` on which all chains meet."""
        last_today = self._second_until(second)
        later, its_segment = 0, _UNQUIET
        for day in self._matching_days(today if last_today is not None else today - 1):
            segment = bisect_right(table.starts, day * DAY) - 1
            if not table.quiet_from[segment] <= day < table.quiet_until[segment] or _skips_month(table, day):
                segment = _UNQUIET
            if segment == its_segment != _UNQUIET:
                at = last_today if later == today and last_today is not None else self._last_second
                return later * DAY + at - table.offsets[segment]
            later, its_segment = day, segment
        return None

    def _matching_days(self, last: int) -> Iterator[int]:
        """Yield the days on which the schedule fires, from `last` back, over two years."""
        year, month, day = civil(last)
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
        """Return the last second of the day, not after the given one, at which the time matches."""
        hour, minute = divmod(second // 60, 60)
        if self._hours >> hour & 1:
            earlier = self._minutes & (2 << minute) - 1
            if earlier:
                return hour * 3600 + (earlier.bit_length() - 1) * 60
        earlier = self._hours & (1 << hour) - 1
        if earlier:
            return (earlier.bit_length() - 1) * 3600 + (self._minutes.bit_length() - 1) * 60
        return None


def _skips_month(table: Table, day: int) -> bool:
    """Tell whether a search may step over the whole month of a day, because the month began without a midnight."""
    if not table.gaps:  # as in most zones, and this is asked for each day that matches
        return False
    first = day - civil(day)[2] + 1
    return table.has_gap(first - 1, first)
