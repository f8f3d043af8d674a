"""Instants: each is handled once and not early, over a year, over deaths, and over a clock that is set."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from foresail.kube.loop import LoopTiming
from foresail.plan import Key
from tests.worlds import virtual_time
from tests.worlds.process import CALM, Process
from tests.worlds.scene import eventually
from tests.worlds.streams import Weather
from tests.worlds.ticking import TICK, TICKER, Ticking, ticker
from tests.worlds.virtual_time import BEGINNING, WallClock
from tests.worlds.visitor import Visitor
from tests.worlds.world import Definition, World, done

DAY = timedelta(days=1)
YEAR = 365 * DAY
PERIODS = {"often": timedelta(hours=2), "nightly": DAY, "weekly": 7 * DAY, "odd": timedelta(hours=7, minutes=13)}
# A year has half a million bookmarks and thirty million looks at the clock: both are spread out, nothing else is.
RARE_BOOKMARKS = Weather(bookmark_every=86_400.0)


class Ticks:
    """A world with tickers in it, and what became of their slots."""

    def __init__(self, periods: dict[str, timedelta], first: datetime) -> None:
        self.clock = WallClock()
        self.world = World(self.clock, Definition(TICKER), Definition(TICK))
        for name, every in periods.items():
            done(self.world.create(TICKER, {"metadata": {"name": name}} | ticker(first, every), "tenant", "default"))

    def start(self, weather: Weather | None = None, timing: LoopTiming | None = None) -> Process:
        visitor = Visitor(self.world, weather=weather or Weather())
        return Process(visitor, Ticking(), workers=2, timing=timing)

    def made(self) -> dict[str, list[tuple[datetime, datetime]]]:
        """Return for each ticker its slots, and by the clock when each was handled."""
        found: dict[str, list[tuple[datetime, datetime]]] = {}
        for key, tick in sorted(self.world.history.present(TICK).items()):
            slot, at = (datetime.fromisoformat(tick["spec"][name]) for name in ("slot", "at"))
            found.setdefault(key.name.partition("-")[0], []).append((slot, at))
        return found


def slots(first: datetime, every: timedelta, end: datetime) -> list[datetime]:
    return [first + number * every for number in range(int((end - first) / every) + 1)]


@pytest.mark.repeats
def test_a_year_of_instants_is_handled_each_once_and_none_early_or_late(figure: Callable[[str], None]) -> None:
    first = BEGINNING + timedelta(minutes=30)

    async def live() -> tuple[Ticks, datetime]:
        ticks = Ticks(PERIODS, first)
        process = ticks.start(RARE_BOOKMARKS, CALM)
        await asyncio.sleep(YEAR.total_seconds())
        await process.kill()
        creates = [write for write in process.visitor.writes if write.verb == "create"]
        assert len(creates) == len(ticks.world.history.present(TICK)), "none was tried twice"
        return ticks, ticks.clock()

    began = time.monotonic()
    ticks, end = virtual_time.run(live())
    seconds = time.monotonic() - began
    made = ticks.made()
    expected = {name: slots(first, every, end) for name, every in PERIODS.items()}
    assert {name: [slot for slot, _ in of] for name, of in made.items()} == expected
    lateness = [at - slot for of in made.values() for slot, at in of]
    assert min(lateness) >= timedelta(0)
    assert max(lateness) <= timedelta(milliseconds=100)
    assert seconds < 60
    figure(f"worlds: a year with {len(lateness)} instants in {seconds:.1f} s, latest by {max(lateness)}")


def test_a_year_with_a_death_each_week_loses_and_repeats_nothing() -> None:
    first = BEGINNING + timedelta(minutes=30)

    async def live() -> Ticks:
        ticks = Ticks({"odd": PERIODS["odd"], "nightly": DAY}, first)
        for week in range(52):
            process = ticks.start(RARE_BOOKMARKS, CALM)
            await asyncio.sleep(7 * 86_400.0 - 3600.0 * (week % 5))
            await process.kill()
            await asyncio.sleep(3600.0 * (week % 5))
        return ticks

    ticks = virtual_time.run(live())
    end = BEGINNING + 52 * 7 * DAY
    for name, every in (("odd", PERIODS["odd"]), ("nightly", DAY)):
        assert [slot for slot, _ in ticks.made()[name]] == slots(first, every, end - timedelta(seconds=1))


@pytest.mark.parametrize("step", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_clock_that_is_set_by_an_hour_brings_each_instant_once_and_none_early(step: timedelta) -> None:
    first, every = BEGINNING + timedelta(minutes=5), timedelta(minutes=10)

    async def live() -> tuple[Ticks, datetime, int]:
        ticks = Ticks({"often": every}, first)
        process = ticks.start()
        await asyncio.sleep(7200 + 120)
        before = len(ticks.world.history.present(TICK))
        ticks.clock.step(step)
        await asyncio.sleep(5)
        soon = len(ticks.world.history.present(TICK)) - before
        await asyncio.sleep(7200)
        await process.kill()
        return ticks, ticks.clock(), soon

    ticks, end, soon = virtual_time.run(live())
    assert soon == (6 if step > timedelta(0) else 0), "forward, six instants have come at once; back, none for long"
    made = ticks.made()["often"]
    assert [slot for slot, _ in made] == slots(first, every, max(end, BEGINNING.astimezone(UTC)))
    assert all(at >= slot for slot, at in made), "by the clock that it goes by"


@pytest.mark.parametrize("step", [timedelta(hours=1), timedelta(hours=-1)])
@pytest.mark.parametrize("asleep", [0, 1, 700])
def test_a_clock_that_is_set_while_the_process_is_dead_brings_no_instant_twice(step: timedelta, asleep: int) -> None:
    first, every = BEGINNING + timedelta(minutes=5), timedelta(minutes=10)

    async def live() -> tuple[Ticks, datetime]:
        ticks = Ticks({"often": every}, first)
        for _ in range(2):
            process = ticks.start()
            await asyncio.sleep(3600 + 7 * 60)
            await process.kill()
            ticks.clock.step(step)
            await asyncio.sleep(asleep)
        process = ticks.start()
        await asyncio.sleep(3 * 3600)
        await process.kill()
        return ticks, ticks.clock()

    ticks, end = virtual_time.run(live())
    made = ticks.made()["often"]
    assert [slot for slot, _ in made] == slots(first, every, end)
    assert all(at >= slot for slot, at in made)


@pytest.mark.parametrize("step", [timedelta(hours=1), timedelta(hours=-1)])
def test_an_instant_is_met_within_a_second_of_the_clock_being_set(step: timedelta) -> None:
    async def live() -> list[tuple[datetime, datetime]]:
        ticks = Ticks({"once": 1000 * DAY}, BEGINNING + timedelta(minutes=90))
        process = ticks.start()
        await asyncio.sleep(3600)
        ticks.clock.step(step)
        await asyncio.sleep(3600 * 3)
        await process.kill()
        return ticks.made()["once"]

    ((slot, at),) = virtual_time.run(live())
    assert at >= slot
    jumped = timedelta(minutes=30) if step > timedelta(0) else timedelta(0)  # the clock passed over it by that much
    assert at - slot <= jumped + timedelta(seconds=1.1)


@pytest.mark.parametrize("step", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_back_off_lasts_as_long_as_it_should_whatever_is_done_to_the_clock(step: timedelta) -> None:
    async def live() -> float:
        ticks = Ticks({"late": DAY}, BEGINNING - timedelta(hours=2))
        process = ticks.start()
        process.visitor.lost_answers = 4
        await asyncio.sleep(0.9)
        ticks.clock.step(step)
        start = asyncio.get_running_loop().time()
        late = Key("default", "late")
        await eventually(lambda: "status" in ticks.world.history.present(TICKER)[late], 4000)
        await process.kill()
        return asyncio.get_running_loop().time() - start

    assert virtual_time.run(live()) < 5
