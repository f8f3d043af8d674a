"""`foresail primer preview`: what a Primer would do for a CronJob, before anything is created."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, pairwise, takewhile
from typing import Any

import msgspec

from foresail.api.batch import CRON_JOB, CronJob
from foresail.api.instants import stamp
from foresail.api.quantities import quantity
from foresail.cli.access.cluster import Cluster, on_namespace
from foresail.cli.cron.words import minutes_of, pointed_out, wall_time
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.options.values import documents, objects
from foresail.cli.output.table import table
from foresail.cron import CronError, Dialect, Schedule, fires_after, outlook, parse
from foresail.cron.shift import Shifted, shift
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.primers.fires import STANDING, duty_cycle
from foresail.primers.rows import CronJobRow, cron_job_row, minutes
from foresail.primers.rules import MAX_PRIMER_CRON_JOBS
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


_DATES = 6


def preview(args: argparse.Namespace) -> int:
    """Print what would be done."""
    lead = minutes_of(args.warm_up)
    jobs = _from_file(args) if args.file else [_from_cluster(args)]
    print("\n\n".join("\n".join(previewed(job, lead, args, now())) for job in jobs))
    return 0


def previewed(cron: CronJobRow, lead: int, args: argparse.Namespace, at: datetime) -> Iterator[str]:
    """Yield the lines about one CronJob."""
    zone = cron.zone or args.zone
    length = timedelta(minutes=lead)
    try:
        schedule = parse(cron.text, Dialect.ROBFIG, zone)
    except CronError as error:
        problem = f"CronJob {cron.key.name}: spec.schedule: {pointed_out(error)}"
        raise CommandError(problem, f"allowed: {error.allowed}") from None
    yield f"CronJob {cron.key.name}: {cron.text!r} in {zone}, {schedule.describe()}"
    # Counted from the last run, which may be long ago: of a CronJob that was suspended since, say.
    first = outlook(schedule, cron.last or at, at).upcoming
    fires = [first, *islice(fires_after(schedule, first), args.count)][: args.count] if first is not None else []
    yield table(("WARM-UP", "FIRE"), [(wall_time(fire - length, zone), wall_time(fire, zone)) for fire in fires])
    duty = duty_cycle(cron, args.zone, length)
    note = "; this needs spec.allowStanding" if duty > STANDING else ""
    yield f"held for {duty} % of the time{note}"
    shape = cron.shape
    asks = requests_text(shape.requests) if shape else ""
    yield f"each placeholder holds {asks}" if asks else "nothing to hold: the pods request nothing (NothingToReserve)"
    yield from _by_cron_jobs(shift(schedule, lead, at), length)


def _by_cron_jobs(shifted: Shifted, length: timedelta) -> Iterator[str]:
    if shifted.schedules:
        yield "method CronJob would make:"
        yield table(
            ("SCHEDULE", "TIME ZONE"), [(schedule.schedule, schedule.time_zone) for schedule in shifted.schedules]
        )
    if len(shifted.schedules) > MAX_PRIMER_CRON_JOBS:
        yield f"more than {MAX_PRIMER_CRON_JOBS}: use method Placeholder"
    if shifted.exact:
        until = f" until {shifted.until:%Y-%m-%d}" if shifted.until else ""
        yield f"exact{until}: each fires {minutes(length)} before a fire, and at no other time"
        return
    yield f"method CronJob is not exact: {shifted.reason}"
    if shifted.inexact_dates:
        shown = ", ".join(day.isoformat() for day in shifted.inexact_dates[:_DATES])
        more = len(shifted.inexact_dates) - _DATES
        yield f"first on {shown}" + (f" and {more} more dates" if more > 0 else "")
    yield "method Placeholder is exact on every date"


def _from_file(args: argparse.Namespace) -> list[CronJobRow]:
    items = list(objects(documents(args.file), CRON_JOB.name))
    if not items:
        raise CommandError(f"{args.file} contains no CronJob", "specify a file with at least one")
    try:
        return [cron_job_row(_decoded(item)) for item in items]
    except (msgspec.DecodeError, TypeError, ValueError) as error:
        problem = f"a CronJob in {args.file} cannot be decoded: {error}"
        raise CommandError(problem, "correct it; kubectl apply --dry-run=server shows the field") from error


def _decoded(document: dict[str, Any]) -> CronJob:
    """Read a CronJob from a file; without a creation time it counts as created now."""
    metadata = {**(document.get("metadata") or {})}
    metadata["creationTimestamp"] = metadata.get("creationTimestamp") or stamp(now())
    return msgspec.json.decode(msgspec.json.encode({**document, "metadata": metadata}), type=CronJob)


def _from_cluster(args: argparse.Namespace) -> CronJobRow:
    if not args.cron_job:
        raise UsageError("no CronJob is specified", "specify a name, or -f FILE")

    async def read(cluster: Cluster) -> CronJobRow:
        return cron_job_row(await cluster.read(CRON_JOB, Key(args.namespace, args.cron_job), CronJob))

    return on_namespace(args, read)
