"""The time of the worlds: every other test here believes it."""

import asyncio
import time
from datetime import timedelta

import pytest

from tests.worlds import virtual_time
from tests.worlds.virtual_time import BEGINNING, StandstillError, WallClock

YEAR = 365 * 86_400.0


def test_a_year_of_waiting_takes_no_time_and_ends_at_its_instant() -> None:
    async def wait() -> float:
        await asyncio.sleep(YEAR)
        return asyncio.get_running_loop().time()

    began = time.monotonic()
    assert virtual_time.run(wait()) == pytest.approx(YEAR, abs=0.01)
    assert time.monotonic() - began < 5


def test_timers_end_in_the_order_of_their_instants() -> None:
    async def wait() -> list[float]:
        order: list[float] = []

        async def one(seconds: float) -> None:
            await asyncio.sleep(seconds)
            order.append(seconds)

        await asyncio.gather(*map(one, (3.0, 0.001, 86_400.0, 2.0, 0.0)))
        return order

    assert virtual_time.run(wait()) == [0.0, 0.001, 2.0, 3.0, 86_400.0]


def test_a_wait_that_nothing_can_end_is_an_error_and_not_a_test_that_hangs() -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    with pytest.raises(StandstillError):
        virtual_time.run(wait())


def test_setting_the_wall_clock_moves_no_timer() -> None:
    async def wait() -> tuple[float, timedelta]:
        clock = WallClock()
        sleep = asyncio.create_task(asyncio.sleep(60))
        await asyncio.sleep(30)
        clock.step(timedelta(hours=-1))
        await sleep
        return asyncio.get_running_loop().time(), clock() - BEGINNING

    passed, shown = virtual_time.run(wait())
    assert passed == pytest.approx(60, abs=0.001)
    assert shown.total_seconds() == pytest.approx(-59 * 60, abs=0.001)
