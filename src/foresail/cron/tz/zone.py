"""A time zone as sorted tables of integers that give the same results as Go's `time` package.

Instants are Unix seconds; a wall time is the same count in local time. Where a wall time does not exist or
exists twice, `OffsetTable.instant_at` picks the instant that Go picks.
"""

from bisect import bisect_right
from datetime import date
from functools import cache

from foresail.cron.civil_time import EPOCH_ORDINAL, GREGORIAN_CYCLE_DAYS
from foresail.cron.tz.posix_rule import PosixRule, parse_posix_rule
from foresail.cron.tz.tzdata_reader import read_zone_file

DAY = 86400
LEAP_CYCLE = GREGORIAN_CYCLE_DAYS * DAY  # the calendar and each rule rule repeat after 400 years
_ALWAYS = 1 << 62
_NEAR_YEARS = 2060
_LONGEST_SEARCH = 8  # years; a search goes forward five, and starts in the last days of one
_LONGEST_RETURN = 50  # years; the rarest date, 29 February on a given weekday, leaves midnight_gaps of forty


class OffsetTable:
    """The UTC offsets of a zone over a range of years, and its days with or near a clock change."""

    __slots__ = ("midnight_gaps", "offsets", "quiet_from", "quiet_until", "reaches", "starts")

    def __init__(self, segments: list[tuple[int, int]], reach: dict[int, int]) -> None:
        self.starts: list[int] = []
        self.offsets: list[int] = []
        for start, offset in segments:
            if not self.offsets or self.offsets[-1] != offset or start in reach:
                self.starts.append(start)
                self.offsets.append(offset)
        # Go assumes that the segment after the file's table starts earlier than it does.
        self.reaches = [reach.get(start, start) for start in self.starts]
        ends = [*self.starts[1:], _ALWAYS]
        # A day is quiet if no clock changes on it or within 24 hours of it: its wall times are plain sums.
        self.quiet_from: list[int] = []
        self.quiet_until: list[int] = []
        for start, end, offset in zip(self.starts, ends, self.offsets, strict=True):
            whole_minutes = offset % 60 == 0
            self.quiet_from.append(-(-(start + offset + DAY) // DAY) if whole_minutes else 1)
            self.quiet_until.append((end + offset - DAY - 1) // DAY if whole_minutes else 0)
        self.midnight_gaps = self._days_without_midnight(reach)

    def offset(self, instant: int) -> int:
        """Return the UTC offset at an instant."""
        return self.offsets[bisect_right(self.starts, instant) - 1]

    def instant_at(self, wall: int) -> int:
        """Return the instant of a wall time that Go's `time.Date` chooses."""
        i = bisect_right(self.starts, wall) - 1
        offset = self.offsets[i]
        instant = wall - offset
        if instant < self.reaches[i] or (i + 1 < len(self.starts) and instant >= self.starts[i + 1]):
            instant = wall - self.offset(instant)
        return instant

    def has_midnight_gap(self, after: int, until: int) -> bool:
        """Return whether a day after `after` and not after `until` has no midnight."""
        return self.next_midnight_gap(after) <= until

    def next_midnight_gap(self, after: int) -> int:
        """Return the first day after `after` that has no midnight."""
        i = bisect_right(self.midnight_gaps, after)
        return self.midnight_gaps[i] if i < len(self.midnight_gaps) else _ALWAYS

    def _days_without_midnight(self, reach: dict[int, int]) -> list[int]:
        midnight_gaps: set[int] = set()
        for i in range(1, len(self.starts)):
            start = self.starts[i]
            before = self.offsets[i - 1]
            after = self.offsets[i]
            midnight_gaps.update(range(-(-(start + before) // DAY), -(-(start + after) // DAY)))
        for start in reach:
            for day in range(start // DAY - 2, start // DAY + 4):
                instant = self.instant_at(day * DAY)
                if instant + self.offset(instant) != day * DAY:
                    midnight_gaps.add(day)
        return sorted(midnight_gaps)


class Zone:
    """One zone of the pinned `tzdata`: a table up to a horizon, and another one for all later years."""

    __slots__ = ("_far", "_horizon_year", "_rule", "horizon", "name", "near")

    def __init__(self, name: str) -> None:
        self.name = name
        self._far: OffsetTable | None = None
        if name == "UTC":
            self.near = OffsetTable([(-_ALWAYS, 0)], {})
            self._rule: PosixRule | None = None
            self._horizon_year = 0
            self.horizon = _ALWAYS
            return
        first_offset, changes, rule = read_zone_file(name)
        self._rule = parse_posix_rule(rule)
        segments = [(-_ALWAYS, first_offset), *changes]
        last = segments[-1][0]
        last_year = year_of(last) if changes else 1
        through = max(_NEAR_YEARS, last_year + 2 * _LONGEST_SEARCH)
        reach: dict[int, int] = {}
        self.horizon = _ALWAYS
        self._horizon_year = through - _LONGEST_SEARCH
        if self._rule and not self._rule.changes_each_year:
            segments[-1] = (last, self._rule.standard)
        elif self._rule:
            self.horizon = _new_year(self._horizon_year)
            segments[-1:] = _yearly(self._rule, last_year, through, last)
            reach = _reach(self._rule, last, last_year)
        self.near = OffsetTable(segments, reach)

    def table_for(self, instant: int) -> tuple[OffsetTable, int]:
        """Return the table to search from an instant, and what to add to the instant to use it."""
        if instant < self.horizon or self._rule is None:
            return self.near, 0
        if self._far is None:
            first = self._horizon_year
            last = first + _LONGEST_RETURN + 400 + _LONGEST_SEARCH
            self._far = OffsetTable(_yearly(self._rule, first, last, -_ALWAYS), {})
        base = _new_year(self._horizon_year + _LONGEST_RETURN)
        return self._far, -((instant - base) // LEAP_CYCLE) * LEAP_CYCLE


@cache
def load_zone(name: str) -> Zone:
    """Return a zone by its valid name; its tables are read once."""
    return Zone(name)


def year_of(instant: int) -> int:
    """Return the year of an instant in UTC."""
    return date.fromordinal(instant // DAY + EPOCH_ORDINAL).year


def _new_year(year: int) -> int:
    return (date(year, 1, 1).toordinal() - EPOCH_ORDINAL) * DAY


def _yearly(rule: PosixRule, first: int, last: int, since: int) -> list[tuple[int, int]]:
    """Return the segments that a rule makes of the years from `first` to `last`, from `since` on."""
    changes = [change for year in range(first, last + 1) for change in rule.changes(year)]
    before = [offset for when, offset in changes if when <= since]
    # Before its first change a year has the offset of its last one: the two take turns.
    opening = before[-1] if before else changes[1][1]
    return [(since, opening), *(change for change in changes if change[0] > since)]


def _reach(rule: PosixRule, last: int, year: int) -> dict[int, int]:
    passed = [when for when, _ in rule.changes(year) if when <= last]
    reached = passed[-1] if passed else _new_year(year)
    return {last: reached} if reached < last else {}
