"""The time zones in which a shifted expression may be written.

A schedule shifted by X fires like the same schedule in a zone X further east: `0 0 1 * *` an hour earlier is
`0 0 1 * *` in a zone an hour east, with no day, month or leap year to compute. Whole-hour zones without
daylight saving time exist from UTC-12 (Etc/GMT+12) to UTC+14 (Etc/GMT-14). Their names follow POSIX, whose
sign is reversed: `Etc/GMT-1` is one hour *east*.

No such zone follows the daylight saving time of another. But some zones stay a whole number of hours ahead of
others all year, as Athens does of Berlin. For a job in Berlin, Athens is the zone further east.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final

from foresail.cron.civil_time import unix_floor
from foresail.cron.zones import load_zone, utc_offset_minutes

_HOUR: Final = 60
_MINUTE: Final = 60  # seconds


@dataclass(frozen=True, slots=True)
class OffsetZone:
    """A zone and its UTC offset in minutes."""

    name: str
    offset: int


def _etc(hours: int) -> OffsetZone:
    return OffsetZone("UTC" if not hours else f"Etc/GMT{'-' if hours > 0 else '+'}{abs(hours)}", hours * _HOUR)


WHOLE_HOUR_ZONES: Final = tuple(_etc(hours) for hours in range(-12, 15))
"""Every whole-hour zone without daylight saving time, from west to east."""


PARALLEL_DST_ZONES: Final = (
    "Atlantic/Azores",
    "Europe/London",
    "Europe/Berlin",
    "Europe/Athens",
    "America/Anchorage",
    "America/Los_Angeles",
    "America/Denver",
    "America/Chicago",
    "America/New_York",
    "America/Halifax",
    "Australia/Sydney",
    "Pacific/Norfolk",
)
"""Zones that share their daylight saving rule with another one: one well-known zone for each rule and offset."""
_SAMPLE_INTERVAL: Final = timedelta(days=5)  # daylight saving rules differ by a week or more


def fixed_offset_zone(name: str, since: datetime) -> OffsetZone | None:
    """Return the zone with its offset if the zone data has no change after `since`, else None.

    The data includes the rule for future years, so the result is valid until the data changes.
    """
    table, moved = load_zone(name).table_for(unix_floor(since))
    if table.starts[-1] > unix_floor(since) + moved:
        return None
    return OffsetZone(name, table.offsets[-1] // _MINUTE)


@lru_cache(maxsize=512)
def parallel_zones_east(name: str, since: date, until: date) -> tuple[OffsetZone, ...]:
    """Return zones that stay the same whole hours ahead of a zone, except for hours around a clock change.

    Their `offset` is relative to that zone. Callers compare fires to see whether those hours matter.
    """
    noons = [
        datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
        for day in (since + number * _SAMPLE_INTERVAL for number in range((until - since) // _SAMPLE_INTERVAL))
    ]
    ahead = []
    for other in PARALLEL_DST_ZONES:
        distance = utc_offset_minutes(other, noons[0]) - utc_offset_minutes(name, noons[0])
        if (
            distance > 0
            and distance % _HOUR == 0
            and all(utc_offset_minutes(other, noon) - utc_offset_minutes(name, noon) == distance for noon in noons)
        ):
            ahead.append(OffsetZone(other, distance))
    return tuple(ahead)
