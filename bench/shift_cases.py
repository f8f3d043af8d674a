"""Random schedules and lead times for the shift, each of which follows from the seed."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

FIXED_ZONES: Final = {  # minutes east, written down here so that the check does not ask the code under test
    "UTC": 0,
    "Asia/Kolkata": 330,
    "Asia/Kathmandu": 345,
    "Asia/Tokyo": 540,
    "Australia/Eucla": 525,
    "Africa/Nairobi": 180,
    "America/Phoenix": -420,
    "America/Sao_Paulo": -180,
    "Pacific/Marquesas": -570,
    "Pacific/Pago_Pago": -660,
    "Pacific/Kiritimati": 840,
    "Etc/GMT+12": -720,
}
CHANGING_ZONES: Final = (
    "Europe/Berlin",
    "Europe/Dublin",
    "America/New_York",
    "America/Santiago",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "America/Havana",
    "Europe/London",
    "America/Chicago",
    "Asia/Beirut",
    "Antarctica/Troll",
)
LONGEST_LEAD: Final = 10_000
_USUAL: Final = (1, 2, 3, 5, 10, 15, 20, 30, 45, 60, 90, 120, 240, 480, 720, 840, 1440, 2880, 10_000)
_WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MONTHS: Final = ("JAN", "feb", "MAR", "apr", "MAY", "JUN", "jul", "AUG", "SEP", "OCT", "nov", "DEC")
_EVERYDAY: Final = (  # shapes that people write
    "0 0 * * *",
    "0 0 1 * *",
    "*/5 * * * *",
    "*/15 * 1 * *",
    "0 * * * 5",
    "0 2 * * 1-5",
    "0 0 1 1 *",
    "30 3 * * SUN",
    "0 0 1,15 * *",
    "0 0 31 * *",
    "0 9-17 * * MON-FRI",
    "0 0 * 3 1",
    "0 0 29 2 *",
    "45 20 2-31 * 0",
    "0 0 1-7 * 1",
    "0 */6 * * *",
    "59 23 28-31 * *",
    "* * * * *",
    "0 0 1 3 *",
    "0 1 1 */3 *",
)


@dataclass(frozen=True, slots=True)
class Case:
    """One schedule to be said `lead` minutes earlier; dialect is "robfig" or "go-cron"."""

    text: str
    dialect: str
    zone: str
    lead: int


def cases(seed: int, count: int) -> Iterator[Case]:
    """Draw cases: half in UTC, some in zones whose offset changes, a few intervals."""
    rng = random.Random(seed)  # noqa: S311 - repeatable on purpose
    for _ in range(count):
        dialect = rng.choice(("robfig", "go-cron"))
        zone = _zone(rng)
        if _chance(rng, 0.01):
            yield Case(f"@every {rng.randint(1, 90)}m", dialect, zone, _lead(rng))
        else:
            yield Case(_expression(rng, dialect), dialect, zone, _lead(rng))


def _zone(rng: random.Random) -> str:
    zones = rng.choices((("UTC",), tuple(FIXED_ZONES), CHANGING_ZONES), weights=(50, 44, 6))[0]
    return rng.choice(zones)


def _chance(rng: random.Random, share: float) -> bool:
    return rng.random() < share


def _lead(rng: random.Random) -> int:
    """Draw a lead time: the usual ones, evenly from all, or of any order of magnitude."""
    drawn = (rng.choice(_USUAL), rng.randint(1, LONGEST_LEAD), max(1, round(10 ** rng.uniform(0, 4))))
    return rng.choices(drawn, weights=(20, 40, 40))[0]


def _expression(rng: random.Random, dialect: str) -> str:
    if _chance(rng, 0.15):
        return rng.choice(_EVERYDAY)
    minute = _field(rng, 0, 59, star=0.15)
    hour = _field(rng, 0, 23, star=0.35)
    day = _field(rng, 1, 31, star=0.5)
    month = _field(rng, 1, 12, star=0.6, names=_MONTHS)
    weekday = _field(rng, 0, 6, star=0.5, names=_WEEKDAYS)
    if dialect == "go-cron" and _chance(rng, 0.05):
        weekday = rng.choice(("7", "5-7", "FRI-MON", "6-1"))
    return f"{minute} {hour} {day} {month} {weekday}"


def _field(rng: random.Random, low: int, high: int, *, star: float, names: tuple[str, ...] = ()) -> str:
    if _chance(rng, star):
        return "?" if _chance(rng, 0.05) else "*"
    if _chance(rng, 0.45):
        return _value(rng.randint(low, high), low, rng, names)
    return ",".join(_item(rng, low, high, names) for _ in range(rng.choice((1, 1, 2, 3))))


def _item(rng: random.Random, low: int, high: int, names: tuple[str, ...]) -> str:
    first = rng.randint(low, high)
    last = rng.randint(first, high)
    step = rng.randint(2, max(2, (high - low) // 2))
    match rng.randrange(6):
        case 0:
            return f"*/{step}"
        case 1:
            return f"{first}/{step}" if first + step <= high else str(first)
        case 2 if last - first > step:
            return f"{first}-{last}/{step}"
        case 3 | 4 if last > first:
            return f"{_value(first, low, rng, names)}-{_value(last, low, rng, names)}"
        case _:
            return _value(first, low, rng, names)


def _value(value: int, low: int, rng: random.Random, names: tuple[str, ...]) -> str:
    return names[value - low] if names and _chance(rng, 0.3) else str(value)
