"""A year in the lives of random Schedules: what people do to them, when the operator is down and the bucket away.

So that what must happen can be computed without knowing how long each request takes, everything has its place in the
minute: calendar slots at :00, what people do between :15 and :25, the location at :26 to :28, the end of a Backup at
:30.5. Nothing but milliseconds of the operator's own comes near another's place.
"""

import zlib
from dataclasses import dataclass, replace
from random import Random

from foresail.cron import Dialect

DAYS = 365
MINUTES = DAYS * 1440
ZONES = (
    "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Santiago",
    "Africa/Cairo", "Europe/Dublin", "Antarctica/Troll", "America/St_Johns", "Pacific/Auckland", "Asia/Tokyo",
    "Africa/Casablanca", "America/Havana", "Asia/Beirut", "Pacific/Chatham", "Europe/London", "America/Los_Angeles",
    "Pacific/Kiritimati", "Asia/Jerusalem",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Deed:
    """Something that somebody does: a change of the spec, or a Backup by hand of that name."""

    at: float  # seconds since the beginning of the year
    spec: dict[str, object] | None = None
    by_hand: str = ""


@dataclass(frozen=True, slots=True)
class Story:
    """One Schedule: when it is made and how, and what is done to it afterwards."""

    name: str
    created: float
    spec: dict[str, object]
    deeds: tuple[Deed, ...]
    policy: dict[str, object] | None = None  # the spec of a SchedulePolicy for it alone


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all Schedules of one cluster share."""

    dialect: Dialect
    zone: str
    default: bool
    down: tuple[tuple[float, float], ...]  # when the operator does not run
    deaths: tuple[float, ...]  # killed within milliseconds of a slot, and back eight seconds later
    away: tuple[tuple[float, float], ...]  # when the location is unavailable
    stories: tuple[Story, ...]


def surroundings(number: int, schedules: int, seed: int) -> Surroundings:
    """Return one cluster with its year, the same for the same numbers."""
    random = Random(f"{seed}/{number}")  # noqa: S311 - a reproducible sample, not a secret
    down = _stretches(random, 12, 3 * 1440, place=(15, 25), beyond=0.75)
    deaths = [60.0 * (30 * random.randrange(MINUTES // 30)) + random.uniform(0.0005, 0.02) for _ in range(40)]
    return Surroundings(
        dialect=list(Dialect)[number % 2],
        zone=ZONES[number % len(ZONES)],
        default=number // 2 % 2 == 1,
        down=down,
        deaths=tuple(sorted({at for at in deaths if not any(start - 60 <= at <= end + 60 for start, end in down)})),
        away=_stretches(random, 40, 3 * 1440, place=(26, 28), beyond=0.25),
        stories=tuple(_story(random, f"s{number}-{index}") for index in range(schedules)),
    )


def with_policies(around: Surroundings, seed: int) -> Surroundings:
    """Give each Schedule a random policy."""
    random = Random(f"policies/{seed}/{around.zone}/{around.dialect}")  # noqa: S311 - not a secret
    stories = tuple(replace(each, policy=_policy(random)) for each in around.stories)
    return replace(around, stories=stories)


def _policy(random: Random) -> dict[str, object]:
    spec: dict[str, object] = {}
    if random.random() < 0.5:
        spec["timeZone"] = random.choice(ZONES)
    if random.random() < 0.6:
        spec["spread"] = {"within": f"{random.choice((10, 45, 120, 1380))}m"}
    if random.random() < 0.6:
        spec["startingDeadline"] = f"{random.choice((5, 60, 240, 2400))}m"
    if random.random() < 0.75:
        windows: dict[str, object] = {"outside": random.choice(("Delay", "Skip"))}
        kept = random.choice((("allowed",), ("excluded",), ("allowed", "excluded")))
        for field in kept:
            windows[field] = [_window(random, field) for _ in range(random.randint(1, 2))]
        spec["windows"] = windows
    return spec


def _window(random: Random, field: str) -> dict[str, object]:
    hour = random.randrange(24)
    if field == "allowed":
        text = random.choice((f"0 {hour} * * *", f"30 {hour} * * 1-5", f"0 {hour},{(hour + 9) % 24} * * *"))
        length = random.choice((90, 360, 720))
    else:
        text = random.choice((f"0 {hour} * * {random.randrange(7)}", "0 0 28-31 * *", f"15 {hour} * * *"))
        length = random.choice((30, 300, 1440))
    zone = random.choice(({}, {"timeZone": random.choice(ZONES)}))
    return {"schedule": text, "duration": f"{length}m", **zone}


def lasts(key: str) -> int:
    """Return for how many minutes a Backup lasts, beginning with the one in which it is made."""
    draw = zlib.crc32(key.encode())
    return 1 + draw % 4 if draw % 25 else 60 + draw % (30 * 60)


def end_of(key: str, made: float) -> float:
    """Return when a Backup that is made at that second ends."""
    return (made // 60 + lasts(key)) * 60 + 30.5


def _stretches(
    random: Random, count: int, longest: int, *, place: tuple[int, int], beyond: float
) -> tuple[tuple[float, float], ...]:
    found: list[tuple[float, float]] = []
    for minute in sorted(random.sample(range(1440, MINUTES), count)):
        start = minute * 60 + random.randint(*place) + beyond
        length = int(longest ** random.random()) + 1
        end = (minute + length) * 60 + random.randint(*place) + beyond
        if not found or start > found[-1][1] + 3600:
            found.append((start, end))
    return tuple(found)


def _story(random: Random, name: str) -> Story:
    first = random.choice((0, 0, random.randrange(60 * 1440)))
    minutes = sorted(random.sample(range(first + 1, MINUTES - 1), random.randrange(4, 20)))
    spec: dict[str, object] = {"schedule": expression(random)}
    if random.random() < 0.15:
        spec["paused"] = True
    if random.random() < 0.3:
        spec["skipImmediately"] = random.random() < 0.6
    deeds = []
    paused = bool(spec.get("paused"))
    for minute in minutes:
        at = _place(random, minute)
        draw = random.random()
        if draw < 0.6:
            paused = not paused
            field = random.choice(({}, {}, {"skipImmediately": random.choice((True, False, None))}))
            deeds.append(Deed(at, {"paused": paused, **field}))
        elif draw < 0.75:
            deeds.append(Deed(at, {"schedule": expression(random)}))
        elif draw < 0.9:
            deeds.append(Deed(at, {"skipImmediately": random.choice((True, True, False, None))}))
        else:
            deeds.append(Deed(at, by_hand=f"{name}-by-hand-{minute}"))
    return Story(name, _place(random, first), spec, tuple(deeds))


def _place(random: Random, minute: int) -> float:
    return minute * 60 + random.randint(15, 25) + 0.5


def expression(random: Random) -> str:
    """Return a random expression; most of them are rare, for a year of every minute would take a day."""
    minute = random.choice((0, 0, 30, random.randrange(60)))
    hour = random.choice((0, 1, 2, 3, random.randrange(24), random.randrange(24)))
    day, weekday = random.randint(1, 31), random.randrange(7)
    kinds = {
        f"{minute} {hour} * * *": 25,
        f"{minute} {hour} * * 1-5": 10,
        f"{minute} {hour} * * {weekday}": 16,
        f"{minute} {hour} {day} * *": 10,
        f"{minute} {hour} {day},{1 + day % 28} * {weekday}": 10,
        f"{minute} {hour} */2 * {weekday}": 3,
        f"{minute} {hour},{(hour + 12) % 24} * * *": 3,
        f"{minute} * * * *": 0.4,
        f"{minute} {hour} 1 */3 *": 5,
        f"@every {random.randrange(7 * 60, 200 * 60)}m": 7,
        random.choice(("@daily", "@weekly", "@monthly", "@midnight", "@yearly")): 4,
        random.choice(("0 0 30 2 *", "0 0 31 4,6,9,11 *", "@manual")): 2,
        random.choice((f"{minute} */24 * * *", f"{minute} {hour} * * 7", f"{minute} {hour} * * FRI-MON")): 3,
        f"{minute} {hour} 29 2 *": 1,
    }
    text = random.choices(list(kinds), list(kinds.values()))[0]
    word = random.choice(("", "", "TZ=", "CRON_TZ="))
    return f"{word}{random.choice(ZONES)} {text}" if word else text
