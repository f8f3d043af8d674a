"""The offset of a zone at an instant, and the instants at which it changes."""

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from foresail.cron.instant import unix_floor
from foresail.cron.zone import zone

_MINUTE: Final = 60  # seconds


@dataclass(frozen=True, slots=True)
class Change:
    """An instant at which a zone's offset changes: minutes east before and from then on."""

    at: datetime
    before: int
    after: int


def changes(name: str, start: datetime, end: datetime) -> tuple[Change, ...]:
    """List the changes of offset in (start, end]."""
    table, moved = zone(name).table_for(unix_floor(start))
    segments = pairwise(zip(table.starts, table.offsets, strict=True))
    return tuple(
        Change(datetime.fromtimestamp(at - moved, UTC), before // _MINUTE, after // _MINUTE)
        for (_, before), (at, after) in segments
        if unix_floor(start) < at - moved <= unix_floor(end) and before != after
    )


def minutes_east(name: str, at: datetime) -> int:
    """Give a zone's offset at an instant."""
    table, moved = zone(name).table_for(unix_floor(at))
    return table.offsets[bisect_right(table.starts, unix_floor(at) + moved) - 1] // _MINUTE
