"""Proves or compares what shifted expressions fire: X before the original, and only then.

For zones of fixed offset each expression becomes sets of minutes of the UTC day, each with its set of days over the
400 years of the calendar. Equal sets are equal for all time; nothing is sampled.

For zones whose offset changes, five years of fires are one integer with a bit per minute. Far from a clock change the
bits follow from the wall clock. Near a change the dialect may skip, repeat or move a fire, or lose a whole day; there
the bits come from the schedule itself, fire by fire.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from foresail.cron.dialect import Dialect
from foresail.cron.fields import Fields, values_of
from foresail.cron.schedule import CalendarSchedule
from foresail.cron.shift.days import CYCLE_STARTS, day_rule, day_set, shift_day_set
from foresail.cron.zones import offset_changes, utc_offset_minutes

_DAY_MINUTES: Final = 24 * 60


@dataclass(frozen=True, slots=True)
class OffsetFields:
    """The fields of an expression, and the minutes to subtract from its wall time to get UTC."""

    fields: Fields
    offset: int


Layout = tuple[tuple[int, int], ...]
"""Pairs of minutes of the UTC day and days of the cycle, both as masks."""


@dataclass(frozen=True, slots=True)
class FireDiff:
    """Fires that are missing, not wanted, and doubled."""

    lost: Layout
    spurious: Layout
    doubled: Layout


def diff_fires(wanted: OffsetFields, fired: Iterable[OffsetFields], dialect: Dialect) -> FireDiff:
    """Compare the fires of expressions with the wanted ones over all 400 years."""
    target = _layout(wanted, dialect)
    others = [part for fields in fired for part in _layout(fields, dialect)]
    lost = []
    spurious = []
    doubled = []
    for minutes in _partition([mask for mask, _ in (*target, *others)]):
        want = _days(target, minutes)
        fire = 0
        twice = 0
        for mask, days in others:
            if mask & minutes:
                twice |= fire & days
                fire |= days
        lost.append((minutes, want & ~fire))
        spurious.append((minutes, fire & ~want))
        doubled.append((minutes, twice))
    return FireDiff(_without_empty(lost), _without_empty(spurious), _without_empty(doubled))


def _without_empty(layout: list[tuple[int, int]]) -> Layout:
    return tuple((minutes, days) for minutes, days in layout if days)


def _days(layout: list[tuple[int, int]], minutes: int) -> int:
    return next((days for mask, days in layout if mask & minutes), 0)


def _partition(masks: list[int]) -> list[int]:
    """Split the minutes of the day so that each mask contains all of a part or none; drop unused minutes."""
    parts = [0]
    for mask in masks:
        seen = sum(parts)
        halves = [half for part in parts for half in (part & mask, part & ~mask)]
        parts = [part for part in (*halves, mask & ~seen) if part]
    return parts


def _layout(expression: OffsetFields, dialect: Dialect) -> list[tuple[int, int]]:
    """Return the minutes of the UTC day with their days: those that stay on their day and those that borrow one."""
    fields = expression.fields
    rule = day_rule(fields, dialect)
    if rule is None:
        return []
    days = day_set(rule, dialect)
    clock = sum(fields.minutes << (60 * hour) for hour in range(24) if fields.hours >> hour & 1)
    by, rest = divmod(expression.offset, _DAY_MINUTES)
    borrowing = (clock & ((1 << rest) - 1)) << (_DAY_MINUTES - rest)
    parts = ((clock >> rest, by), (borrowing, by + 1))
    return [(minutes, shift_day_set(days, part)) for minutes, part in parts if minutes]


def instants(layout: Layout, start: datetime, end: datetime) -> list[datetime]:
    """Return the instants of a layout in [start, end), in order."""
    first = (start - CYCLE_STARTS).days
    span = (1 << ((end - start).days + 2)) - 1
    moments = [
        CYCLE_STARTS + timedelta(days=first + day, minutes=minute)
        for minutes, days in layout
        for day in values_of(shift_day_set(days, first) & span)
        for minute in values_of(minutes)
    ]
    return sorted(at for at in moments if start <= at < end)


_MINUTE: Final = timedelta(minutes=1)
_DAY: Final = timedelta(days=1)
# A change can affect the rest of its day, and no more.
_BEFORE: Final = timedelta(hours=3)
_AFTER: Final = timedelta(hours=27)
_NONZERO_BYTE: Final = re.compile(rb"[^\0]", re.DOTALL)


def compare(
    original: CalendarSchedule, minutes: int, fired: Sequence[CalendarSchedule], start: datetime, end: datetime
) -> tuple[list[datetime], list[datetime]]:
    """Return the minutes in [start, end) that are lost, and those that are spurious or doubled."""
    lead = minutes * _MINUTE
    wanted = _fires(original, start + lead, end + lead)
    union = twice = 0
    for schedule in fired:
        fires = _fires(schedule, start, end)
        twice |= union & fires
        union |= fires
    return _to_instants(wanted & ~union, start), _to_instants((union & ~wanted) | twice, start)


def _to_instants(bits: int, first: datetime) -> list[datetime]:
    """Return the instants of a bit set, byte by byte, since clearing bits of a long integer copies it."""
    layout = bits.to_bytes(bits.bit_length() // 8 + 1, "little")
    return [
        first + (8 * found.start() + bit) * _MINUTE
        for found in _NONZERO_BYTE.finditer(layout)
        for bit in range(8)
        if found[0][0] >> bit & 1
    ]


def _fires(schedule: CalendarSchedule, start: datetime, end: datetime) -> int:
    """Return the fires in [start, end) as one bit per minute."""
    midnight = start.replace(hour=0, minute=0)
    first = midnight - 3 * _DAY
    last = midnight + (end - midnight).days * _DAY + 4 * _DAY
    wall = _wall_clock_fires(schedule, first, last)
    at = start
    offset = utc_offset_minutes(schedule.zone, start)
    fires = 0
    for change in offset_changes(schedule.zone, first, last):
        opens = min(end, max(start, change.at - _BEFORE))
        closes = min(end, change.at + _AFTER)
        fires |= _cut(wall, at - first, opens - at, offset) << ((at - start) // _MINUTE)
        at = max(at, closes)
        offset = change.after
        if opens < closes:
            near_change = sum(1 << ((fire - opens) // _MINUTE) for fire in schedule.between(opens, closes))
            fires |= near_change << ((opens - start) // _MINUTE)
    return fires | _cut(wall, at - first, end - at, offset) << ((at - start) // _MINUTE)


def _cut(wall: int, begin: timedelta, length: timedelta, offset: int) -> int:
    """Return the fires of a time span with one UTC offset throughout."""
    if length <= timedelta():
        return 0
    return (wall >> (begin // _MINUTE + offset)) & ((1 << (length // _MINUTE)) - 1)


def _wall_clock_fires(schedule: CalendarSchedule, first: datetime, last: datetime) -> int:
    """Return the wall times of the fires from one midnight to another, as one bit per minute."""
    fields = schedule.fields
    rule = day_rule(fields, schedule.dialect)
    if rule is None:
        return 0
    hours = sum(fields.minutes << (60 * hour) for hour in range(24) if fields.hours >> hour & 1)
    fires = hours.to_bytes(_DAY // _MINUTE // 8, "little")
    idle = bytes(_DAY // _MINUTE // 8)
    span = (last - first).days
    days = shift_day_set(day_set(rule, schedule.dialect), (first - CYCLE_STARTS).days) & ((1 << span) - 1)
    return int.from_bytes(b"".join([fires if days >> day & 1 else idle for day in range(span)]), "little")
