"""How many runs start when: the fires of all Schedules on the days of a picture, and where they pile up."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import pairwise, takewhile

from foresail.cli.output.messages import BOLD, RED, YELLOW, painted
from foresail.cron import IntervalSchedule, Schedule, fires_after, outlook
from foresail.cron.clock_changes import ClockJump, clock_jumps
from foresail.cron.zones import load_zoneinfo
from foresail.plan import Key
from foresail.reporting import some

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
    for (names, minute), dates in days.items():
        groups.setdefault((names, tuple(sorted(dates))), set()).add(minute)
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


SHOWN = 5
"""Pile-ups that are named."""

_SHOWN_TIMES = 3
_DAY, _WEEK = 24 * 60, 7
_NAMED = 6
_MANY, _VERY_MANY = 3, 10


def week_lines(load: Load) -> Iterator[str]:
    """Yield the days as lines of half hours, each with the most runs that start at once in it, then the pile-ups."""
    yield load.title
    yield " " * 12 + "".join(f"{hour:<6}" for hour in range(0, 24, 3)).rstrip()
    for day in load.days:
        cells = "".join(_cell(load, day, slot) for slot in range(SLOTS))
        runs = load.runs.get(day, 0)
        name = painted(f"{day:%a %d %b}", BOLD, sys.stdout) if day == load.today else f"{day:%a %d %b}"
        yield f"{name}  {cells}  {runs} {'run' if runs == 1 else 'runs'}"
    if load.most >= _VERY_MANY:
        yield f"# ten or more; the most is {load.most}"
    if not load.piles:
        return
    yield ""
    yield "in the same minute:"
    for pile in load.piles[:SHOWN]:
        yield f"  {pile_line(pile)}"
    if len(load.piles) > SHOWN:
        yield f"  and {len(load.piles) - SHOWN} more pile-ups; foresail schedule spread proposes other minutes"


def pile_line(pile: Pile) -> str:
    """Return a pile-up in words: when, how many, and whose."""
    return f"{_when(pile)}: {len(pile.names)} ({some(pile.names, _NAMED)})"


def _when(pile: Pile) -> str:
    rhythm = _rhythm(pile.minutes)
    is_daily = len(pile.days) == (pile.days[-1] - pile.days[0]).days + 1 and len(pile.days) >= _WEEK
    if rhythm and is_daily:
        return rhythm
    shown = ", ".join(f"{minute:%H:%M}" for minute in pile.minutes[:_SHOWN_TIMES])
    more = len(pile.minutes) - _SHOWN_TIMES
    times = rhythm or f"at {shown}{f' and {more} more times' if more > 0 else ''}"
    first = f"{pile.days[0]:%a %d %b}"
    if is_daily:
        return f"every day {times}"
    days = first if len(pile.days) == 1 else f"{len(pile.days)} days from {first}"
    return f"{days} {times}"


def _rhythm(times: Sequence[time]) -> str:
    """Return times of a day at equal distances in words; empty if they are not, or too few."""
    step = equal_step(times)
    if step is None:
        return ""
    first, last = (f"{moment:%H:%M}" for moment in (times[0], times[-1]))
    hours = "hour" if step == 60 else f"{step // 60} hours"  # noqa: PLR2004
    words = f"{step} minutes" if step % 60 else hours
    if len(times) * step != _DAY:
        return f"every {words} from {first} to {last}"
    if words == "hour":
        return f"every hour at :{times[0]:%M}" if times[0].minute else "every full hour"
    return f"every {words}" if step % 60 else f"every {words} from {first}"


def _cell(load: Load, day: date, slot: int) -> str:
    count = load.peaks.get((day, slot), 0)
    if not count:
        skipped = (jump for jump in load.jumps if jump.day == day and not jump.repeated)
        return " " if any(jump.begin <= slot * 30 < jump.end for jump in skipped) else "·"
    text = str(count) if count < _VERY_MANY else "#"
    if count >= _VERY_MANY:
        return painted(text, f"{BOLD};{RED}", sys.stdout)
    return painted(text, YELLOW, sys.stdout) if count >= _MANY else text
