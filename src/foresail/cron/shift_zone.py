"""Which zones have one fixed offset, and the zones further east that do the borrowing.

"S minus X" is "S read X further east": `0 0 1 * *` minus an hour is `0 0 1 * *` in a zone an hour east, with
no day, month or leap year to compute. Whole-hour zones without summer time exist from 12 h west (Etc/GMT+12)
to 14 h east (Etc/GMT-14) of Greenwich. Their names follow POSIX, whose sign is the reverse of everybody's:
`Etc/GMT-1` is one hour *east*.

No such zone follows the summer time of another. But some places keep a whole number of hours ahead of others
the whole year round, as Athens does of Berlin: for a job in Berlin, Athens is the zone further east.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final

from foresail.cron.instant import unix_floor
from foresail.cron.offsets import minutes_east
from foresail.cron.zone import zone

_HOUR: Final = 60
_MINUTE: Final = 60  # seconds


@dataclass(frozen=True, slots=True)
class Zone:
    """A zone and its offset: minutes east of Greenwich."""

    name: str
    east: int


def _etc(hours: int) -> Zone:
    return Zone("UTC" if not hours else f"Etc/GMT{'-' if hours > 0 else '+'}{abs(hours)}", hours * _HOUR)


WHOLE_HOURS: Final = tuple(_etc(hours) for hours in range(-12, 15))
"""Every whole-hour zone without summer time, from west to east."""


LADDERS: Final = (
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
"""One well-known zone for each pair of offset and summer-time rule that stands on a ladder of such zones."""
_OFTEN: Final = timedelta(days=5)  # how often a distance is looked at; summer times differ by a week or more


def fixed_zone(name: str, since: datetime) -> Zone | None:
    """Give the zone with its offset if the zone data knows of no change after `since`, else None.

    The data's rule for years to come is part of this, so the answer holds until the data itself changes.
    """
    table, moved = zone(name).table_for(unix_floor(since))
    if table.starts[-1] > unix_floor(since) + moved:
        return None
    return Zone(name, table.offsets[-1] // _MINUTE)


@lru_cache(maxsize=512)
def zones_ahead(name: str, since: date, until: date) -> tuple[Zone, ...]:
    """Give zones that keep the same whole hours ahead of one with summer time, but for hours around a change.

    Their `east` is counted from that zone. Whether those hours matter to a schedule is for its fires to tell.
    """
    noons = [
        datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
        for day in (since + number * _OFTEN for number in range((until - since) // _OFTEN))
    ]
    ahead = []
    for other in LADDERS:
        distance = minutes_east(other, noons[0]) - minutes_east(name, noons[0])
        if (
            distance > 0
            and distance % _HOUR == 0
            and all(minutes_east(other, noon) - minutes_east(name, noon) == distance for noon in noons)
        ):
            ahead.append(Zone(other, distance))
    return tuple(ahead)
