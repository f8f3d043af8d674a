"""Which zones have one fixed offset, and the zones further east that do the borrowing.

"S minus X" is "S read X further east": `0 0 1 * *` minus an hour is `0 0 1 * *` in a zone an hour east, with no
day, month or leap year to compute. Whole-hour zones without summer time exist from 12 h west (Etc/GMT+12) to
14 h east (Etc/GMT-14) of Greenwich. Their names follow POSIX, whose sign is the reverse of everybody's:
`Etc/GMT-1` is one hour *east*.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

FOLLOWED: Final = timedelta(days=366 * 30)
"""How far ahead a zone must keep its offset to count as fixed; no law in the zone data reaches as far unseen."""
_PROBE: Final = timedelta(days=1)  # no zone keeps an offset for less than a day
_HOUR: Final = 60


@dataclass(frozen=True, slots=True)
class Zone:
    """A zone and its offset: minutes east of Greenwich."""

    name: str
    east: int


def whole_hour_zones() -> tuple[Zone, ...]:
    """Give every whole-hour zone without summer time, from west to east."""
    return _WHOLE_HOURS


def _etc(hours: int) -> Zone:
    return Zone("UTC" if not hours else f"Etc/GMT{'-' if hours > 0 else '+'}{abs(hours)}", hours * _HOUR)


_WHOLE_HOURS: Final = tuple(_etc(hours) for hours in range(-12, 15))


@dataclass(frozen=True, slots=True)
class Change:
    """An instant at which a zone's offset changes: minutes east before and from then on."""

    at: datetime
    before: int
    after: int


def fixed_zone(name: str, since: datetime) -> Zone | None:
    """Give the zone with its offset if the offset stays the same for 30 years from `since`, else None."""
    day = since.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if changes(name, day, day + FOLLOWED):
        return None
    return Zone(name, _east(ZoneInfo(name), day))


@lru_cache(maxsize=512)
def changes(name: str, start: datetime, end: datetime) -> tuple[Change, ...]:
    """List the changes of offset in (start, end], by probing each day and closing in to the minute."""
    zone = ZoneInfo(name)
    found = []
    at, east = start, _east(zone, start)
    while at < end:
        before, at = at, min(at + _PROBE, end)
        if (now := _east(zone, at)) != east:
            found.append(_close_in(zone, before, at))
            east = now
    return tuple(found)


def minutes_east(name: str, at: datetime) -> int:
    """Give a zone's offset at an instant."""
    return _east(ZoneInfo(name), at)


def _close_in(zone: ZoneInfo, before: datetime, after: datetime) -> Change:
    while after - before > timedelta(minutes=1):
        middle = before + timedelta(minutes=(after - before) // timedelta(minutes=2))
        if _east(zone, middle) == _east(zone, before):
            before = middle
        else:
            after = middle
    return Change(after, _east(zone, before), _east(zone, after))


def _east(zone: ZoneInfo, at: datetime) -> int:
    offset = at.astimezone(zone).utcoffset()
    return (offset or timedelta()) // timedelta(minutes=1)
