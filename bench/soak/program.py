"""What there is in the soak and what is to happen: drawn from one seed before it begins."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from testbed.control_plane import APISERVER
from testbed.velero import S3, VELERO

LEADER = "leader"
KINDS = (APISERVER, VELERO, S3, LEADER)
WARM_UP = timedelta(minutes=2)
MOST_BACKUPS = 1_000
"""That may reach Velero in the hour."""

_MINUTE = timedelta(minutes=1)
_PERIODS = (2, 3, 4, 5, 6, 10)  # minutes between two slots: each divides an hour
_APART = (60.0, 150.0)  # seconds from the end of one fault to the next
_QUIET_END = 90.0  # seconds before the end in which nothing is killed any more
_LEADERS_PART = 0.45  # of the time in which leaders are killed; those that are left live long enough to be measured
_AWAY = {APISERVER: (5.0, 40.0), VELERO: (20.0, 60.0), S3: (75.0, 120.0), LEADER: (5.0, 20.0)}
"""How many seconds each is away. Velero looks at its location once a minute, so a shorter end of S3 is no fault."""


class Numbers(msgspec.Struct, frozen=True):
    """How many there are of everything."""

    minutes: int
    namespaces: int
    schedules: int
    firing: int  # Schedules that have slots in this time
    every: int  # minutes between two of them
    requests: int  # NonAdminBackups in all
    live: int  # of them made while it runs; all others are complete before
    deleted: int
    forced: int
    restores: int
    cron_jobs: int

    @property
    def nodes(self) -> int:
        """How many nodes hold the runs and placeholders of a few minutes."""
        return max(self.cron_jobs // 25, 2)


def numbers(size: float, minutes: int) -> Numbers:
    """Return them at a part of the full size, and for a part of the hour."""
    hours = minutes / 60

    def part(full: float, least: int) -> int:
        return max(round(full * size), least)

    return Numbers(
        minutes=minutes,
        namespaces=part(1_000, 10),
        schedules=part(2_000, 10),
        firing=part(30, 3),
        every=max((each for each in _PERIODS if each * 4 <= minutes), default=_PERIODS[0]),
        requests=part(5_000, 50),
        live=part(120 * hours, 15),
        deleted=part(20 * hours, 2),
        forced=part(20 * hours, 2),
        restores=part(15 * hours, 2),
        cron_jobs=part(500, 10),
    )


# Schedules and CronJobs


def namespace(number: int) -> str:
    """Return the name of a tenant's namespace."""
    return f"tenant-{number:05}"


def firing(number: int, of: Numbers) -> tuple[str, str]:
    """Return the name and the expression of a Schedule that has slots in this time."""
    return f"often-{number:04}", f"{number % of.every}-59/{of.every} * * * *"


def resting(number: int, began: datetime) -> tuple[str, str]:
    """Return the name and the expression of a Schedule whose next slot is hours away."""
    hour = (began.hour + 4 + number % 19) % 24
    day = f"{number % 7}" if number % 3 == 0 else "*"
    return f"daily-{number:04}", f"{number % 60} {hour} * * {day}"


def slots(number: int, of: Numbers, begins: datetime, ends: datetime) -> list[datetime]:
    """Return the slots of such a Schedule, which a reader can count by hand: no cron engine is asked."""
    return [each for each in _minutes(begins, ends) if each.minute % of.every == number % of.every]


def fire_minutes(number: int, of: Numbers, begins: datetime) -> tuple[int, ...]:
    """Return the minutes of the hour at which a CronJob fires: one, or two for each second CronJob."""
    first = WARM_UP // _MINUTE + 1
    room = max(of.minutes - first, 1)
    offsets = [first + number % room]
    if number % 2 and offsets[0] + room // 2 < of.minutes:
        offsets.append(offsets[0] + room // 2)
    return tuple(sorted({(begins.minute + each) % 60 for each in offsets}))


def fires(number: int, of: Numbers, begins: datetime, ends: datetime) -> list[datetime]:
    """Return the fires of a CronJob whose warm-up begins in this time too."""
    at = fire_minutes(number, of, begins)
    return [each for each in _minutes(begins + WARM_UP, ends) if each.minute in at]


def _minutes(begins: datetime, ends: datetime) -> Iterator[datetime]:
    at = begins.replace(second=0, microsecond=0)
    while at <= ends:
        if at > begins:
            yield at
        at += _MINUTE


# Faults


@dataclass(frozen=True, slots=True)
class Blow:
    """Something that is to be killed: what, so many seconds after the begin or the fault before, and for how long."""

    kind: str
    after: float
    away: float


def blows(seed: int, minutes: int) -> list[Blow]:
    """Return what is killed and when, in turns of a random order in which each kind comes once."""
    chance = random.Random(seed)  # noqa: S311 - chance, not secrecy
    found: list[Blow] = []
    is_short = minutes < 20  # a rehearsal, which still wants one of each
    apart = (15.0, 30.0) if is_short else _APART
    at, last = 0.0, minutes * 60 - _QUIET_END
    turn: list[str] = []
    while True:
        if not turn:
            turn = list(KINDS)
            chance.shuffle(turn)
        kind = turn.pop()
        if kind == LEADER and at > last * _LEADERS_PART and not is_short:
            continue
        after, away = chance.uniform(*apart), chance.uniform(*_AWAY[kind])
        at += after + away
        if at > last:
            return found
        found.append(Blow(kind, after, away))


# Tenants


@dataclass(frozen=True, slots=True)
class Wish:
    """Something that a tenant does, so many seconds after the begin."""

    at: float
    verb: str
    number: int = 0


CREATE, DELETE, FORCE, RESTORE = "create", "delete", "force", "restore"


def wishes(seed: int, of: Numbers) -> Sequence[Wish]:
    """Return what tenants do, in its order: they ask all the time, and change their minds in the middle of it."""
    chance = random.Random(seed)  # noqa: S311 - chance, not secrecy
    length = of.minutes * 60.0
    found = [Wish(chance.uniform(0, length - 60), CREATE, number) for number in range(of.live)]
    for verb, count in ((DELETE, of.deleted), (FORCE, of.forced), (RESTORE, of.restores)):
        found += [Wish(chance.uniform(0.3 * length, 0.8 * length), verb) for _ in range(count)]
    return sorted(found, key=lambda each: each.at)
