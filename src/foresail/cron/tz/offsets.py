"""The UTC offset of a zone at an instant, and the instants at which it changes."""

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from foresail.cron.civil_time import unix_floor
from foresail.cron.tz.zone import load_zone

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
