"""How close together the fires of a schedule are, and by how much each schedule is delayed."""

import hashlib
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise, takewhile

from foresail.cron import Schedule, fires_after

COMPARED_FIRES = 1_000
"""How many fires are looked at: every day of a schedule has the same hours, so a short gap is among the first ones."""

COMPARED_AHEAD = timedelta(days=400)
"""How far ahead they are looked for: more than a year, which includes every clock change."""


def shortest_gap(cron: Schedule, now: datetime) -> timedelta | None:
    """Return the shortest time between two fires in the time ahead; None if there are fewer than two."""
    return _shortest_gap(cron, now.replace(hour=0, minute=0, second=0, microsecond=0))


def longest_gap(cron: Schedule, now: datetime) -> timedelta | None:
    """Return the longest time between two fires in the time ahead; None if there are fewer than two."""
    start = now.replace(hour=0, minute=0, second=0, microsecond=0)
    ahead = takewhile(lambda each: each - start <= COMPARED_AHEAD, fires_after(cron, start))
    return max((later - earlier for earlier, later in pairwise(islice(ahead, COMPARED_FIRES))), default=None)


@lru_cache(20_000)
def _shortest_gap(cron: Schedule, start: datetime) -> timedelta | None:
    ahead = takewhile(lambda each: each - start <= COMPARED_AHEAD, fires_after(cron, start))
    fires = islice(ahead, COMPARED_FIRES)
    return min((later - earlier for earlier, later in pairwise(fires)), default=None)


def stable_delay(uid: str, longest: timedelta) -> timedelta:
    """Return the delay of a schedule, in whole seconds up to the longest: the same after every restart."""
    seconds = longest // timedelta(seconds=1)
    if seconds <= 0:
        return timedelta()
    return timedelta(seconds=int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8], "big") % (seconds + 1))
