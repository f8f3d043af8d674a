"""How many runs start when: the fires of all Schedules on the days of a picture, and where they pile up."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import pairwise, takewhile

from foresail.cron import IntervalSchedule, Schedule, fires_after, outlook
from foresail.cron.clock_changes import ClockJump, clock_jumps
from foresail.cron.zones import load_zoneinfo
from foresail.plan import Key

SLOTS = 48  # half hours of a day
_FEWEST = 3  # times that make a rhythm
_MOST_COMPARED = 1000  # pile-ups that are compared with each other


@dataclass(frozen=True, slots=True)
class Timetable:
    """Whose runs are counted, and when they start between two instants."""

    key: Key
    fires: Callable[[datetime, datetime], Iterable[datetime]]


@dataclass(frozen=True, slots=True)
class Pile:
    """Runs that start in the same minutes of several days: their number, and whose they are."""

    minutes: tuple[time, ...]
    days: tuple[date, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """The days of a picture, the most runs that start in one minute of each half hour, and whose they are."""

    zone: str
    days: tuple[date, ...]
    schedules: int
    runs: dict[date, int]
    peaks: dict[tuple[date, int], int]
    piles: tuple[Pile, ...]
    jumps: tuple[ClockJump, ...]
    today: date

    @property
    def title(self) -> str:
        """What the picture shows."""
        counted = "1 schedule" if self.schedules == 1 else f"{self.schedules} schedules"
        return f"{counted}: the most runs that start in one minute of each half hour, in {self.zone}"

    @property
    def most(self) -> int:
        """The largest number of runs that start in the same minute."""
        return max(self.peaks.values(), default=0)


def load_of(timetables: Sequence[Timetable], days: Sequence[date], zone: str, now: datetime) -> Load:
    """Count the runs of all timetables."""
    wall = load_zoneinfo(zone)
    start, end = (datetime.combine(day, time(), wall) for day in (days[0], days[-1] + timedelta(days=1)))
    several = len({timetable.key.namespace for timetable in timetables}) > 1
    minutes: dict[datetime, list[str]] = {}
    for timetable in timetables:
        for fire in timetable.fires(start, end):
            minutes.setdefault(fire.replace(second=0), []).append(str(timetable.key) if several else timetable.key.name)
    # Not by wall time: in autumn the clock shows an hour twice.
    local = [(at.astimezone(wall), names) for at, names in sorted(minutes.items())]
    runs: dict[date, int] = {}
    peaks: dict[tuple[date, int], int] = {}
    for at, names in local:
        half_hour = (at.date(), (at.hour * 60 + at.minute) // 30)
        runs[at.date()] = runs.get(at.date(), 0) + len(names)
        peaks[half_hour] = max(peaks.get(half_hour, 0), len(set(names)))
    return Load(
        zone,
        tuple(days),
        len(timetables),
        runs,
        peaks,
        tuple(_piles(local)),
        tuple(clock_jumps(zone, start, end)),
        now.astimezone(wall).date(),
    )


def fires_between(cron: Schedule, base: datetime, start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield the fires of a schedule; one that counts from its last run is followed from there."""
    yield from _chained(cron, base, start, end) if isinstance(cron, IntervalSchedule) else cron.between(start, end)


def _chained(cron: Schedule, base: datetime, start: datetime, end: datetime) -> Iterator[datetime]:
    before = outlook(cron, base, start - timedelta(seconds=1)).due or base
    yield from (fire for fire in takewhile(lambda fire: fire < end, fires_after(cron, before)) if fire >= start)


def _piles(minutes: Iterable[tuple[datetime, list[str]]]) -> list[Pile]:
    """Return the minutes in which several start, the largest pile-ups first.

    Minutes and days with the same Schedules are one pile-up. A minute in which others start as well counts for it too
    where it completes a rhythm.
    """
    days: dict[tuple[tuple[str, ...], time], set[date]] = {}
    for at, starting in minutes:
        several = tuple(sorted(set(starting)))  # one that fires twice in a minute is no pile-up
        if len(several) > 1:
            days.setdefault((several, at.time()), set()).add(at.date())
    groups: dict[tuple[tuple[str, ...], tuple[date, ...]], set[time]] = {}
    for (names, minute), found in days.items():
        groups.setdefault((names, tuple(sorted(found))), set()).add(minute)
    piles = [
        Pile(tuple(sorted(_with_rhythm(times, _shared(names, when, groups)))), when, names)
        for (names, when), times in sorted(groups.items())
    ]
    return sorted(piles, key=lambda pile: (-len(pile.names), pile.days[0], pile.minutes))


def equal_step(minutes: Sequence[time]) -> int | None:
    """Return the number of minutes between times at equal distances; None if they are not, or too few."""
    passed = [minute.hour * 60 + minute.minute for minute in minutes]
    steps = {later - earlier for earlier, later in pairwise(passed)}
    return steps.pop() if len(minutes) >= _FEWEST and len(steps) == 1 else None


def _with_rhythm(times: set[time], shared: set[time]) -> set[time]:
    return times | shared if equal_step(sorted(times | shared)) is not None else times


def _shared(
    names: tuple[str, ...], days: tuple[date, ...], groups: Mapping[tuple[tuple[str, ...], tuple[date, ...]], set[time]]
) -> set[time]:
    """Return the minutes of larger pile-ups that contain this one on all its days."""
    if len(groups) > _MOST_COMPARED:
        return set()
    larger = (
        times
        for (others, others_days), times in groups.items()
        if len(others) > len(names) and set(names) < set(others) and set(days) <= set(others_days)
    )
    return set().union(*larger)
