"""Time zones of the pinned `tzdata`, never the machine's, with the results of Go's `time` package.

A zone is sorted tables of integers. Instants are Unix seconds; a wall time is the same count in local time. Where a
wall time does not exist or exists twice, `OffsetTable.instant_at` picks the instant that Go picks.
"""

import io
import os
import re
import struct
from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import tzdata

from foresail.cron.civil_time import EPOCH_ORDINAL, GREGORIAN_CYCLE_DAYS, unix_floor

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

DAY = 86400
_NAME = r"(?:<[^>]*>|[^\d,<+-]{3,})"
_TIME = r"[+-]?\d+(?::\d+){0,2}"
_RULE = (
    rf"{_NAME}(?P<standard>{_TIME})"
    rf"(?:{_NAME}(?P<summer>{_TIME})?,(?P<start>[^,/]+)(?:/(?P<start_time>{_TIME}))?"
    rf",(?P<end>[^,/]+)(?:/(?P<end_time>{_TIME}))?)?"
)


@dataclass(frozen=True, slots=True)
class PosixRule:
    """Two UTC offsets in seconds and the rules for the yearly changes between them."""

    standard: int
    summer: int
    start: str = ""
    start_time: int = 0
    end: str = ""
    end_time: int = 0

    @property
    def changes_each_year(self) -> bool:
        """Return whether the clocks change each year."""
        return bool(self.start)

    def changes(self, year: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the two changes of a year in order: the instant and the new offset."""
        start = _day(self.start, year) * DAY + self.start_time - self.standard
        end = _day(self.end, year) * DAY + self.end_time - self.summer
        if start <= end:
            return (start, self.summer), (end, self.standard)
        return (end, self.standard), (start, self.summer)


def parse_posix_rule(text: str) -> PosixRule | None:
    """Return the rule, or None if the text has none."""
    rule = re.fullmatch(_RULE, text, re.ASCII)  # compiled with the first zone, not with the import
    if rule is None:
        return None
    standard = -_seconds(rule["standard"])
    if rule["start"] is None:
        return PosixRule(standard, standard)
    summer = -_seconds(rule["summer"]) if rule["summer"] else standard + 3600
    return PosixRule(
        standard,
        summer,
        rule["start"],
        _seconds(rule["start_time"] or "2"),
        rule["end"],
        _seconds(rule["end_time"] or "2"),
    )


def _seconds(time: str) -> int:
    hours, minutes, seconds = (*map(int, time.strip("+-").split(":")), 0, 0)[:3]
    size = hours * 3600 + minutes * 60 + seconds
    return -size if time.startswith("-") else size


def _day(rule: str, year: int) -> int:
    """Return the date of a rule in `year`, in days since 1970."""
    new_year = date(year, 1, 1).toordinal() - EPOCH_ORDINAL
    if rule.startswith("J"):  # J60 is 1 March in every year
        day = int(rule[1:])
        leap = date(year, 12, 31).timetuple().tm_yday == 366  # noqa: PLR2004  days of a leap year
        return new_year + day - 1 + (leap and day >= 60)  # noqa: PLR2004  the day named above
    if not rule.startswith("M"):
        return new_year + int(rule)
    month, week, weekday = map(int, rule[1:].split("."))
    first = date(year, month, 1).toordinal() - EPOCH_ORDINAL
    after = date(year + month // 12, month % 12 + 1, 1).toordinal() - EPOCH_ORDINAL
    day = first + (weekday - first - 4) % 7 + 7 * (week - 1)  # 1970 began on a Thursday
    return day if day < after else day - 7


_HEADER = struct.Struct(">4s1s15x6l")
_KIND = struct.Struct(">lBB")


def read_zone_file(name: str) -> tuple[int, list[tuple[int, int]], str]:
    """Return the first UTC offset in seconds, each change with its new offset, and the POSIX rule for later years."""
    data = read_tzdata("zoneinfo", *name.split("/"))
    # The first block repeats the table in 32 bits for old readers; the second one is complete.
    _, _, *counts = _HEADER.unpack_from(data)
    at = _HEADER.size + _block_size(counts, 4)
    _, _, *counts = _HEADER.unpack_from(data, at)
    n_times = counts[3]
    n_kinds = counts[4]
    at += _HEADER.size
    times = struct.unpack_from(f">{n_times}q", data, at)
    kind_of = data[at + 8 * n_times : at + 9 * n_times]
    kinds = [_KIND.unpack_from(data, at + 9 * n_times + 6 * i) for i in range(n_kinds)]
    rule = data[at + _block_size(counts, 8) :].strip(b"\n").decode()
    changes = [(when, kinds[kind][0]) for when, kind in zip(times, kind_of, strict=True)]
    return kinds[_first_kind(kinds, kind_of)][0], changes, rule


@cache
def zone_names() -> frozenset[str]:
    """Return the names of all zones in the IANA database's spelling."""
    return frozenset(read_tzdata("zones").decode().split())


def read_tzdata(*path: str) -> bytes:
    """Return the bytes of a file of the `tzdata` package."""
    # The package's loader also works if the package comes from a zip.
    folder = os.path.dirname(tzdata.__file__)  # noqa: PTH120  pathlib takes longer to import than the engine
    data: bytes = tzdata.__spec__.loader.get_data(os.path.join(folder, *path))  # noqa: PTH118  the same
    return data


def _block_size(counts: list[int], time_size: int) -> int:
    utc_flags, standard_flags, leaps, times, kinds, letters = counts
    return times * (time_size + 1) + kinds * _KIND.size + letters + leaps * (time_size + 4) + standard_flags + utc_flags


def _first_kind(kinds: list[tuple[int, ...]], kind_of: bytes) -> int:
    """Return the kind of time in force before the first change, by the rule of Go and tzcode."""
    if 0 not in kind_of:
        return 0
    if kinds[kind_of[0]][1]:
        for kind in range(kind_of[0] - 1, -1, -1):
            if not kinds[kind][1]:
                return kind
    return next((kind for kind, (_, summer, _) in enumerate(kinds) if not summer), 0)


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


_MINUTE: Final = 60  # seconds


@dataclass(frozen=True, slots=True)
class OffsetChange:
    """An instant at which a zone's UTC offset changes, with the offsets in minutes before and after."""

    at: datetime
    before: int
    after: int


def offset_changes(name: str, start: datetime, end: datetime) -> tuple[OffsetChange, ...]:
    """Return the offset changes of a zone in (start, end]."""
    table, moved = load_zone(name).table_for(unix_floor(start))
    segments = pairwise(zip(table.starts, table.offsets, strict=True))
    return tuple(
        OffsetChange(datetime.fromtimestamp(at - moved, UTC), before // _MINUTE, after // _MINUTE)
        for (_, before), (at, after) in segments
        if unix_floor(start) < at - moved <= unix_floor(end) and before != after
    )


def utc_offset_minutes(name: str, at: datetime) -> int:
    """Return a zone's UTC offset at an instant, in minutes."""
    table, moved = load_zone(name).table_for(unix_floor(at))
    return table.offsets[bisect_right(table.starts, unix_floor(at) + moved) - 1] // _MINUTE


@cache
def load_zoneinfo(name: str) -> "ZoneInfo":
    """Return a zone for `datetime.astimezone`; the name must be valid."""
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - it takes longer to import than the engine, and few show times

    return ZoneInfo.from_file(io.BytesIO(read_tzdata("zoneinfo", *name.split("/"))), key=name)
