"""Measures `next` beside croniter and cronsim, all in one run: `make bench-cron`."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from statistics import median
from time import perf_counter
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim

from foresail.cron import Dialect, parse

_SPECS = (
    "* * * * *",
    "*/5 * * * *",
    "*/15 8-18 * * 1-5",
    "0 * * * *",
    "17 */6 * * *",
    "0 3 * * *",
    "30 2 * * 0",
    "0 22 * * 1-5",
    "0 0 1 * *",
    "15 4 1,15 * *",
    "0 0 13 * 5",
    "45 23 31 12 *",
    "0 12 1 */3 *",
    "59 23 28-31 * *",
    "0 0 29 2 *",
)
_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Africa/Cairo", "Australia/Lord_Howe")
_STARTS = tuple(datetime(2026, 1, 3, 4, 5, 6, tzinfo=UTC) + timedelta(days=23, hours=7) * i for i in range(16))
_WORST = ("0 0 29 2 *", "0 0 31 2 *", "0 0 30 2 1", ", * * * *", "59 23 29 2 6", "0 0 1 jan mon")
_ROUNDS = 7


def best(action: Callable[[], object], rounds: int = _ROUNDS) -> float:
    """Return the shortest time of an action in microseconds: the one least disturbed by other work."""
    shortest = float("inf")
    for _ in range(rounds):
        started = perf_counter()
        action()
        shortest = min(shortest, perf_counter() - started)
    return shortest * 1e6


def beside_others() -> float:
    """Print the time of one `next` for each library, and return how much faster ours is at the median."""
    ratios = []
    times: dict[str, list[float]] = {"foresail": [], "croniter": [], "cronsim": []}
    for spec in _SPECS:
        for name in _ZONES:
            schedule = parse(spec, Dialect.ROBFIG, name)
            local = [start.astimezone(ZoneInfo(name)) for start in _STARTS]
            iterators = [croniter(spec, start) for start in local]
            simulations = [CronSim(spec, start) for start in local]
            ours = best(lambda: [schedule.next(start) for start in local]) / len(local)  # noqa: B023  called at once
            # The rivals are iterators that move on: each round asks for the fire after the last one.
            theirs = best(lambda: [one.get_next(datetime) for one in iterators]) / len(local)  # noqa: B023
            simulated = best(lambda: [next(one) for one in simulations]) / len(local)  # noqa: B023
            for who, time in (("foresail", ours), ("croniter", theirs), ("cronsim", simulated)):
                times[who].append(time)
            ratios.append(min(theirs, simulated) / ours)
    for who, measured in times.items():
        print(f"{who:9} median {median(measured):7.2f} us, slowest {max(measured):8.2f} us")
    print(f"faster than the faster of the two: median {median(ratios):.1f}, least {min(ratios):.1f}")
    return median(ratios)


def worst_case() -> float:
    """Print and return the slowest `next` over rare and impossible dates, all zones and both dialects."""
    slowest = 0.0
    for dialect in Dialect:
        for spec in _WORST:
            for name in _ZONES:
                schedule = parse(spec, dialect, name)
                for start in (datetime(2026, 3, 28, tzinfo=UTC), datetime(2096, 3, 1, tzinfo=UTC)):
                    time = best(lambda: schedule.next(start))  # noqa: B023  called at once
                    slowest = max(slowest, time)
    print(f"slowest next of a rare or impossible date: {slowest:.0f} us")
    return slowest


def main() -> int:
    """Measure, and fail if `next` is not three times as fast or a rare date takes a millisecond."""
    ratio = beside_others()
    slowest = worst_case()
    return 0 if ratio >= 3 and slowest < 1000 else 1


if __name__ == "__main__":
    sys.exit(main())
