"""Comparison of schedules by the instants at which they really fire, for zones whose offset changes.

Far from a change the wall clock says it all, and five years of minutes are one integer. Around a change the
dialect has its own ways (a wall time may be skipped, repeated, moved, or a whole day lost), so there, and
only there, the schedule itself is asked, fire by fire.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from foresail.cron.offsets import changes, minutes_east
from foresail.cron.schedule import Calendar
from foresail.cron.shift_days import CYCLE_STARTS, day_rule, days_of, earlier

_MINUTE: Final = timedelta(minutes=1)
_DAY: Final = timedelta(days=1)
# A change can cost the whole day on which it falls, and no more; what came before it is past.
_BEFORE: Final = timedelta(hours=3)
_AFTER: Final = timedelta(hours=27)
_SOME: Final = re.compile(rb"[^\0]", re.DOTALL)


def compare(
    original: Calendar, minutes: int, fired: Sequence[Calendar], start: datetime, end: datetime
) -> tuple[list[datetime], list[datetime]]:
    """Give the minutes from `start` until `end` that are lost, and those that are spurious or doubled."""
    lead = minutes * _MINUTE
    wanted = _fires(original, start + lead, end + lead)
    union = twice = 0
    for schedule in fired:
        fires = _fires(schedule, start, end)
        twice |= union & fires
        union |= fires
    return _listed(wanted & ~union, start), _listed((union & ~wanted) | twice, start)


def _listed(bits: int, first: datetime) -> list[datetime]:
    """List the minutes of a layout, byte by byte: taking bits off so long a number costs a copy each."""
    layout = bits.to_bytes(bits.bit_length() // 8 + 1, "little")
    return [
        first + (8 * found.start() + bit) * _MINUTE
        for found in _SOME.finditer(layout)
        for bit in range(8)
        if found[0][0] >> bit & 1
    ]


def _fires(schedule: Calendar, start: datetime, end: datetime) -> int:
    """Lay the fires in [start, end) out as one bit a minute."""
    midnight = start.replace(hour=0, minute=0)
    first, last = midnight - 3 * _DAY, midnight + (end - midnight).days * _DAY + 4 * _DAY
    wall = _wall_clock(schedule, first, last)
    at, east = start, minutes_east(schedule.zone, start)
    fires = 0
    for change in changes(schedule.zone, first, last):
        opens, closes = min(end, max(start, change.at - _BEFORE)), min(end, change.at + _AFTER)
        fires |= _stretch(wall, at - first, opens - at, east) << ((at - start) // _MINUTE)
        at, east = max(at, closes), change.after
        if opens < closes:
            asked = sum(1 << ((fire - opens) // _MINUTE) for fire in schedule.between(opens, closes))
            fires |= asked << ((opens - start) // _MINUTE)
    return fires | _stretch(wall, at - first, end - at, east) << ((at - start) // _MINUTE)


def _stretch(wall: int, begin: timedelta, length: timedelta, east: int) -> int:
    """Cut a stretch of instants out of the wall clock, where the offset is the same throughout."""
    if length <= timedelta():
        return 0
    return (wall >> (begin // _MINUTE + east)) & ((1 << (length // _MINUTE)) - 1)


def _wall_clock(schedule: Calendar, first: datetime, last: datetime) -> int:
    """Lay out what the clock on the wall shows at each fire, from one midnight to another."""
    fields = schedule.fields
    rule = day_rule(fields, schedule.dialect)
    if rule is None:
        return 0
    hours = sum(fields.minutes << (60 * hour) for hour in range(24) if fields.hours >> hour & 1)
    fires, idle = hours.to_bytes(_DAY // _MINUTE // 8, "little"), bytes(_DAY // _MINUTE // 8)
    span = (last - first).days
    days = earlier(days_of(rule, schedule.dialect), (first - CYCLE_STARTS).days) & ((1 << span) - 1)
    return int.from_bytes(b"".join([fires if days >> day & 1 else idle for day in range(span)]), "little")
