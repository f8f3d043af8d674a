"""How close together the fires of a schedule are."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise, takewhile

from foresail.cron import Schedule, fires_after, outlook
from foresail.slots.starts import Timing, place

COMPARED_FIRES = 1_000
"""How many fires are looked at: every day of a schedule has the same hours, so a short gap is among the first ones."""

COMPARED_AHEAD = timedelta(days=400)
"""How far ahead they are looked for: more than a year, which includes every clock change."""

_A_DAY_OF_FIRES = 1_500  # of the densest schedule, and some of the next day
_MOST_RUNS = 100
_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)


def shortest_gap(cron: Schedule, now: datetime) -> timedelta | None:
    """Return the shortest time between two fires in the time ahead; None if there are fewer than two."""
    return _shortest_gap(cron, now.replace(hour=0, minute=0, second=0, microsecond=0))


def longest_gap(cron: Schedule, now: datetime) -> timedelta | None:
    """Return the longest time between two fires in the time ahead; None if there are fewer than two."""
    return _longest_gap(cron, now.replace(hour=0, minute=0, second=0, microsecond=0))


def longest_run_gap(cron: Schedule, slot: datetime, timing: Timing | None) -> timedelta | None:
    """Return the longest time between the slots of two runs from a slot on; None if no run follows it soon."""
    gap = longest_gap(cron, slot)
    if timing is None or timing.windows is None:
        return gap
    return max(
        (length for length in (gap, _longest_between_runs(cron, slot, timing)) if length is not None), default=None
    )


_FEWEST_FIRES = 24
"""So many are compared however rare they are: of those in a few months of a year, only some may be on a Sunday."""


@lru_cache(20_000)
def _longest_gap(cron: Schedule, start: datetime) -> timedelta | None:
    fires = list[datetime]()
    for instant in islice(fires_after(cron, start), _A_DAY_OF_FIRES):
        fires.append(instant)
        if instant - start > COMPARED_AHEAD and len(fires) >= _FEWEST_FIRES:  # the gap before it counts too
            break
    gaps = [later - earlier for earlier, later in pairwise(fires)]
    if len(fires) == _A_DAY_OF_FIRES:  # the days without a fire may come later
        gaps += _gaps_of_days(cron, start)
    return max(gaps, default=None)


def _gaps_of_days(cron: Schedule, start: datetime) -> Iterator[timedelta]:
    """Yield the gaps that include a whole day."""
    at = start
    while at - start <= COMPARED_AHEAD:
        fire = cron.next(at)
        if fire is None:
            return
        if fire - at > _DAY:
            last = cron.last_fire(start, at)
            yield fire - (last or at)
        at = max(at + _DAY, fire.replace(hour=0, minute=0, second=0, microsecond=0))


@lru_cache(20_000)
def _longest_between_runs(cron: Schedule, slot: datetime, timing: Timing) -> timedelta | None:
    gaps = list[timedelta]()
    first = slot
    for _ in range(_MOST_RUNS):
        placed = place(cron, slot, slot + timing.offset, timing)
        if placed.upcoming is None or placed.starts is None or slot - first > COMPARED_AHEAD:
            break
        # Of the slots that wait for an opening, the newest runs.
        following = max(placed.upcoming, outlook(cron, slot, placed.starts - timing.offset).due or slot)
        gaps.append(following - slot)
        slot = following
    return max(gaps, default=None)


@lru_cache(20_000)
def _shortest_gap(cron: Schedule, start: datetime) -> timedelta | None:
    ahead = takewhile(lambda fire: fire - start <= COMPARED_AHEAD, fires_after(cron, start))
    fires = islice(ahead, COMPARED_FIRES)
    return min((later - earlier for earlier, later in pairwise(fires)), default=None)


def expected_since(cron: Schedule, begun: datetime, now: datetime) -> datetime | None:
    """Return since when a good backup should have started; None if the schedule, which has `begun`, is younger."""
    since = third_last_fire(cron, now)
    return since if since is not None and since > begun else None


def third_last_fire(cron: Schedule, now: datetime) -> datetime | None:
    """Return the fire before the last two; None if there was none in the time behind."""
    return _third_last_fire(cron, now.replace(second=0, microsecond=0))


@lru_cache(20_000)
def _third_last_fire(cron: Schedule, now: datetime) -> datetime | None:
    at: datetime | None = now
    for _ in range(3):
        at = cron.last_fire(now - COMPARED_AHEAD, at - _SECOND) if at is not None else None
    return at
