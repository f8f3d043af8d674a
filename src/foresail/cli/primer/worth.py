"""What a Primer is worth and what it costs: time saved at each fire, CPU- and memory-hours held in a day."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, pairwise, takewhile

from foresail.api.quantities import quantity
from foresail.cron import Schedule, fires_after
from foresail.plan import Key
from foresail.primers.fires import STANDING
from foresail.primers.shape import amounts

_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)
_HORIZONS = (7 * _DAY, 53 * 7 * _DAY)  # whole weeks, and at least one fire of what fires once a year
_ENOUGH_FIRES = 7
_MOST_FIRES = 1440 * 7  # every minute of the shorter horizon
_GIB = 1024**3
_BYTES = ("memory", "ephemeral-storage")
_UNITS = ("Ti", "Gi", "Mi", "Ki")


@dataclass(frozen=True, slots=True)
class Prices:
    """What an hour of one CPU and of one GiB of memory costs, in the user's currency."""

    cpu_hour: float = 0.0
    memory_gib_hour: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.cpu_hour or self.memory_gib_hour)


@dataclass(frozen=True, slots=True)
class Usage:
    """How often a CronJob fires in a day, and for how long capacity is held before its fires."""

    fires_a_day: float
    held_a_day: timedelta


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One CronJob, how long its runs waited, and what a Primer would hold for it."""

    key: Key
    delays: tuple[int, ...]  # in seconds, one for each run
    warm_up: timedelta
    usage: Usage
    duty: int  # percent of the time in which capacity is held, as the operator counts it
    requests: tuple[tuple[str, str], ...]  # of one pod
    count: int = 1  # pods of one run

    @property
    def saved_per_fire(self) -> int:
        """The mean start delay in seconds: what a run saves that finds its node warm."""
        return round(sum(self.delays) / len(self.delays))

    @property
    def saved_a_day(self) -> timedelta:
        """The time saved in a day, by which suggestions are sorted."""
        return timedelta(seconds=self.saved_per_fire * self.usage.fires_a_day)

    @property
    def cpu_hours(self) -> float:
        """CPU-hours held in a day."""
        return self._held("cpu")

    @property
    def memory_gib_hours(self) -> float:
        """GiB-hours of memory held in a day."""
        return self._held("memory") / _GIB

    @property
    def holds_something(self) -> bool:
        """Whether the pods request anything that can be held."""
        return any(amounts(self.requests).values())

    @property
    def needs_allow_standing(self) -> bool:
        """Whether capacity would be held for more than half of the time, which a Primer must allow."""
        return self.duty > STANDING

    def cost_a_day(self, prices: Prices) -> float:
        """Return what the held capacity costs in a day."""
        return self.cpu_hours * prices.cpu_hour + self.memory_gib_hours * prices.memory_gib_hour

    def _held(self, resource: str) -> float:
        amount = float(amounts(self.requests).get(resource, 0))
        return amount * self.count * (self.usage.held_a_day / _HOUR)


def requests_text(requests: Sequence[tuple[str, str]]) -> str:
    """Return what a pod requests, with bytes in the largest unit that keeps them whole."""
    return ", ".join(f"{name} {_in_units(text) if name in _BYTES else text}" for name, text in requests)


def usage(schedule: Schedule, warm_up: timedelta, at: datetime) -> Usage:
    """Count the fires of the next week, or of a year if that has few; windows that overlap are held once."""
    horizon, fires = _fires(schedule, at)
    if not fires:
        return Usage(0.0, timedelta(0))
    gaps = [later - earlier for earlier, later in pairwise(fires)]
    first = gaps[0] if gaps else warm_up
    held = sum((min(gap, warm_up) for gap in (first, *gaps)), timedelta(0))
    days = horizon / _DAY
    return Usage(len(fires) / days, held / days)


def p95(delays: Sequence[int]) -> int:
    """Return the delay that 95 % of the runs do not exceed."""
    return sorted(delays)[max(-(-len(delays) * 95 // 100) - 1, 0)]


def _fires(schedule: Schedule, at: datetime) -> tuple[timedelta, list[datetime]]:
    """Return the fires of the first horizon with enough of them, and how long it is."""
    horizon = timedelta(0)
    fires = list[datetime]()
    for horizon in _HORIZONS:
        fires = _fires_until(schedule, at, at + horizon)
        if len(fires) >= _ENOUGH_FIRES:
            break
    is_cut = len(fires) == _MOST_FIRES  # more often than every minute
    return (fires[-1] - at if is_cut else horizon), fires


def _fires_until(schedule: Schedule, at: datetime, end: datetime) -> list[datetime]:
    return list(takewhile(lambda fire: fire <= end, islice(fires_after(schedule, at), _MOST_FIRES)))


def _in_units(text: str) -> str:
    value = quantity(text)
    for power, unit in zip(range(len(_UNITS), 0, -1), _UNITS, strict=True):
        if value and value % 1024**power == 0:
            return f"{value // 1024**power}{unit}"
    return text
