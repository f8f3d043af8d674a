"""A time zone as sorted tables of integers, which answer as Go's `time` package does.

All instants are whole seconds since 1970 in UTC; a wall time is the same count as the clock on the wall
shows it. Where a wall time does not exist or exists twice, `Table.at` picks the instant that Go picks.
"""

from bisect import bisect_right
from datetime import date
from functools import cache

from foresail.cron.civil import CYCLE_DAYS, EPOCH
from foresail.cron.footer import Footer, read_footer
from foresail.cron.tzif import read

DAY = 86400
LEAP_CYCLE = CYCLE_DAYS * DAY  # the calendar and each footer rule repeat after 400 years
_ALWAYS = 1 << 62
_NEAR_YEARS = 2060
_LONGEST_SEARCH = 8  # years; a search goes forward five, and starts in the last days of one
_LONGEST_RETURN = 50  # years; the rarest date, 29 February on a given weekday, leaves gaps of forty


class Table:
    """The offsets of a zone over a stretch of years, and which of its days are out of the ordinary."""

    __slots__ = ("gaps", "offsets", "quiet_from", "quiet_until", "reaches", "starts")

    def __init__(self, segments: list[tuple[int, int]], reach: dict[int, int]) -> None:
        self.starts: list[int] = []
        self.offsets: list[int] = []
        for start, offset in segments:
            if not self.offsets or self.offsets[-1] != offset or start in reach:
                self.starts.append(start)
                self.offsets.append(offset)
        # Go takes the segment that follows the table of the file to reach further back than it does.
        self.reaches = [reach.get(start, start) for start in self.starts]
        ends = [*self.starts[1:], _ALWAYS]
        # A day is quiet if no clock changes on it, nor within 24 hours of it: all wall times are plain sums.
        self.quiet_from: list[int] = []
        self.quiet_until: list[int] = []
        for start, end, offset in zip(self.starts, ends, self.offsets, strict=True):
            whole_minutes = offset % 60 == 0
            self.quiet_from.append(-(-(start + offset + DAY) // DAY) if whole_minutes else 1)
            self.quiet_until.append((end + offset - DAY - 1) // DAY if whole_minutes else 0)
        self.gaps = self._days_without_midnight(reach)

    def offset(self, instant: int) -> int:
        """Return the offset in force at an instant."""
        return self.offsets[bisect_right(self.starts, instant) - 1]

    def at(self, wall: int) -> int:
        """Return the instant of a wall time, chosen as Go's `time.Date` chooses it."""
        i = bisect_right(self.starts, wall) - 1
        offset = self.offsets[i]
        instant = wall - offset
        if instant < self.reaches[i] or (i + 1 < len(self.starts) and instant >= self.starts[i + 1]):
            instant = wall - self.offset(instant)
        return instant

    def has_gap(self, after: int, until: int) -> bool:
        """Tell whether a day after `after` and not after `until` has no midnight."""
        return self.next_gap(after) <= until

    def next_gap(self, after: int) -> int:
        """Return the first day after `after` that has no midnight."""
        i = bisect_right(self.gaps, after)
        return self.gaps[i] if i < len(self.gaps) else _ALWAYS

    def _days_without_midnight(self, reach: dict[int, int]) -> list[int]:
        gaps: set[int] = set()
        for i in range(1, len(self.starts)):
            start, before, after = self.starts[i], self.offsets[i - 1], self.offsets[i]
            gaps.update(range(-(-(start + before) // DAY), -(-(start + after) // DAY)))
        for start in reach:
            for day in range(start // DAY - 2, start // DAY + 4):
                instant = self.at(day * DAY)
                if instant + self.offset(instant) != day * DAY:
                    gaps.add(day)
        return sorted(gaps)


class Zone:
    """One zone of the pinned `tzdata`, for all time: a table for our years, another for the far future."""

    __slots__ = ("_far", "_footer", "_horizon_year", "horizon", "name", "near")

    def __init__(self, name: str) -> None:
        self.name = name
        self._far: Table | None = None
        if name == "UTC":
            self.near = Table([(-_ALWAYS, 0)], {})
            self._footer: Footer | None = None
            self._horizon_year = 0
            self.horizon = _ALWAYS
            return
        first_offset, changes, footer = read(name)
        self._footer = read_footer(footer)
        segments = [(-_ALWAYS, first_offset), *changes]
        last = segments[-1][0]
        last_year = year_of(last) if changes else 1
        through = max(_NEAR_YEARS, last_year + 2 * _LONGEST_SEARCH)
        reach: dict[int, int] = {}
        self.horizon = _ALWAYS
        self._horizon_year = through - _LONGEST_SEARCH
        if self._footer and not self._footer.changes_each_year:
            segments[-1] = (last, self._footer.standard)
        elif self._footer:
            self.horizon = _new_year(self._horizon_year)
            segments[-1:] = _yearly(self._footer, last_year, through, last)
            reach = _reach(self._footer, last, last_year)
        self.near = Table(segments, reach)

    def table_for(self, instant: int) -> tuple[Table, int]:
        """Return the table to search from an instant, and what to add to the instant for it."""
        if instant < self.horizon or self._footer is None:
            return self.near, 0
        if self._far is None:
            first = self._horizon_year
            last = first + _LONGEST_RETURN + 400 + _LONGEST_SEARCH
            self._far = Table(_yearly(self._footer, first, last, -_ALWAYS), {})
        base = _new_year(self._horizon_year + _LONGEST_RETURN)
        return self._far, -((instant - base) // LEAP_CYCLE) * LEAP_CYCLE


@cache
def zone(name: str) -> Zone:
    """Return a zone by a name that `tzif.names()` lists; its tables are read once."""
    return Zone(name)


def year_of(instant: int) -> int:
    """Return the year of an instant in UTC."""
    return date.fromordinal(instant // DAY + EPOCH).year


def _new_year(year: int) -> int:
    return (date(year, 1, 1).toordinal() - EPOCH) * DAY


def _yearly(footer: Footer, first: int, last: int, since: int) -> list[tuple[int, int]]:
    """Return the segments that a footer makes of the years from `first` to `last`, from `since` on."""
    changes = [change for year in range(first, last + 1) for change in footer.changes(year)]
    before = [offset for when, offset in changes if when <= since]
    # Before its first change a year has the offset of its last one: the two take turns.
    opening = before[-1] if before else changes[1][1]
    return [(since, opening), *(change for change in changes if change[0] > since)]


def _reach(footer: Footer, last: int, year: int) -> dict[int, int]:
    passed = [when for when, _ in footer.changes(year) if when <= last]
    reached = passed[-1] if passed else _new_year(year)
    return {last: reached} if reached < last else {}
