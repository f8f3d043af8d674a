"""The slot tests of Velero's Schedules, with NonAdminSchedules: bad weather, set clocks, runs deleted at once."""

import asyncio
from datetime import datetime, timedelta

import pytest

from foresail.api.nonadmin import NON_ADMIN_BACKUP
from foresail.kube.loop import LoopTiming
from foresail.plan import Key
from tests.worlds.streams import Weather
from tests.worlds.tenant_schedules import NAS, TenantScene, tell
from tests.worlds.virtual_time import BEGINNING
from tests.worlds.world import done

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def slots(*minutes: int) -> list[datetime]:
    return [BEGINNING + minute * MINUTE for minute in minutes]


@pytest.mark.parametrize(
    "weather", [Weather(lag=3.0), Weather(held_back=2), Weather(repeating=3)], ids=["late", "held back", "repeated"]
)
def test_news_that_come_late_or_twice_bring_no_slot_twice(weather: Weather) -> None:
    async def story(scene: TenantScene) -> None:
        scene.weather = weather
        await scene.stop()
        scene.start()
        scene.schedule(NAS, "*/2 * * * *")
        await scene.until(BEGINNING + 20.5 * MINUTE)

    found, due = tell(story).slots(), slots(*range(2, 22, 2))
    assert found == sorted(set(found))
    assert set(found) <= set(due)
    assert found
    if not weather.held_back:  # who is two events behind does not see that a run has ended until more happens
        assert found == due


@pytest.mark.parametrize("step", [HOUR, -HOUR], ids=["forward", "back"])
def test_a_clock_that_is_set_brings_no_slot_twice(step: timedelta) -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, "*/10 * * * *")
        await asyncio.sleep(45.5 * 60)
        scene.clock.step(step)
        await asyncio.sleep(100 * 60)

    # Forward, the slots that were jumped over make one late run. Back, a slot that has its run gets no second one.
    later = range(100, 210, 10) if step > timedelta(0) else (-10, 0, *range(50, 90, 10))
    assert tell(story, timing=LoopTiming()).slots() == slots(*range(10, 50, 10), *later)


@pytest.mark.parametrize("restarts", [False, True], ids=["same process", "restarted"])
def test_a_clock_that_jumps_a_year_ahead_and_back_stops_no_schedule(restarts: bool) -> None:
    year = timedelta(days=365)

    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, "*/10 * * * *")
        await asyncio.sleep(45.5 * 60)
        scene.clock.step(year)
        await asyncio.sleep(10)
        scene.clock.step(-year)
        if restarts:
            await scene.stop()
            scene.start()
        await asyncio.sleep(3 * 3600)

    scene = tell(story, timing=LoopTiming())
    found, expected = scene.slots(), slots(10, 20, 30, 40, *range(50, 230, 10))
    assert len(found) == len(set(found))
    assert [slot for slot in found if slot < BEGINNING + year / 2] == expected
    assert len(found) <= len(expected) + 1
    assert "TimeInFuture" in {note.reason for note in scene.notes}


@pytest.mark.repeats
def test_a_run_that_is_deleted_the_moment_it_is_there_is_not_made_again() -> None:
    async def story(scene: TenantScene) -> None:
        await scene.stop()
        scene.schedule(NAS, "* * * * *")

        async def tidy() -> None:
            while True:
                for key in list(scene.world.history.present(NON_ADMIN_BACKUP)):
                    done(scene.world.delete(NON_ADMIN_BACKUP, Key(key.namespace, key.name)))
                await asyncio.sleep(0.001)

        tidying = asyncio.create_task(tidy())
        scene.start()
        await scene.until(BEGINNING + 3.5 * MINUTE)
        tidying.cancel()

    assert tell(story).slots() == slots(1, 2, 3)
