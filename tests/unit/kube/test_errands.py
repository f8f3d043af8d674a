"""Errands: one for a key at a time, a few at once, what they bring wakes the key, and none outlives the lead."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from foresail.kube.errands import Errands
from foresail.plan import Brought, Key

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ONE, TWO, THREE = (Key("red", name) for name in ("one", "two", "three"))


class Town:
    """Where errands go: each waits until the test lets it come back."""

    def __init__(self, is_quick: Callable[[str], bool] | None = None) -> None:
        self.doors: dict[str, asyncio.Event] = {}
        self.there: list[str] = []
        self.woken: list[Key] = []
        if is_quick is None:
            self.errands = Errands[str, str](self._visit, at_once=2)
        else:
            self.errands = Errands[str, str](self._visit, at_once=2, is_quick=is_quick)
        self.errands.wake = self.woken.append

    async def _visit(self, wish: str) -> str:
        self.there.append(wish)
        await self.doors.setdefault(wish, asyncio.Event()).wait()
        return wish.upper()

    def open(self, wish: str) -> None:
        self.doors.setdefault(wish, asyncio.Event()).set()


async def a_moment() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_what_is_brought_wakes_its_key_and_only_a_few_are_out_at_once() -> None:
    async def story() -> None:
        town = Town()
        working = asyncio.create_task(town.errands.work())
        for key in (ONE, TWO, THREE, ONE):
            town.errands.send(key, key.name, NOW)
        await a_moment()
        assert town.there == ["one", "two"]
        town.open("two")
        await a_moment()
        assert town.woken == [TWO]
        assert town.errands.brought(TWO) == Brought("two", "TWO", NOW, 1)
        assert town.there == ["one", "two", "three"]
        town.errands.send(TWO, "two", NOW)
        town.open("one")
        town.open("three")
        await a_moment()
        again = town.errands.brought(TWO)
        assert again is not None
        assert again.tries == 2
        town.errands.send(TWO, "one", NOW)
        await a_moment()
        assert town.errands.brought(TWO) == Brought("one", "ONE", NOW, 1), "another wish is counted anew"
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    asyncio.run(story())


def test_what_is_forgotten_on_its_way_is_not_brought() -> None:
    async def story() -> None:
        town = Town()
        working = asyncio.create_task(town.errands.work())
        town.errands.send(ONE, "one", NOW)
        await a_moment()
        town.errands.forget(ONE)
        town.open("one")
        await a_moment()
        assert town.errands.brought(ONE) is None
        assert town.woken == []
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    asyncio.run(story())


def test_when_the_lead_is_lost_whoever_waited_is_looked_at_again() -> None:
    async def story() -> None:
        town = Town()
        working = asyncio.create_task(town.errands.work())
        for key in (ONE, TWO, THREE):
            town.errands.send(key, key.name, NOW)
        await a_moment()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        assert town.woken == [ONE, TWO, THREE]
        for name in ("one", "two", "three"):
            town.open(name)
        await a_moment()
        assert town.errands.brought(ONE) is None
        again = asyncio.create_task(town.errands.work())
        town.errands.send(ONE, "one", NOW)
        await a_moment()
        assert town.errands.brought(ONE) is not None
        again.cancel()
        await asyncio.gather(again, return_exceptions=True)

    asyncio.run(story())


def test_what_waited_for_a_place_is_as_old_as_its_run() -> None:
    async def story() -> None:
        town, late = Town(), NOW + timedelta(minutes=5)
        town.errands.clock = lambda: late if "one" in town.doors and town.doors["one"].is_set() else NOW
        working = asyncio.create_task(town.errands.work())
        for key in (ONE, TWO, THREE):
            town.errands.send(key, key.name, NOW)
        await a_moment()
        for name in ("one", "three"):
            town.open(name)
        await a_moment()
        assert town.errands.brought(ONE) == Brought("one", "ONE", NOW, 1)
        assert town.errands.brought(THREE) == Brought("three", "THREE", late, 1)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    asyncio.run(story())


def test_what_hangs_leaves_places_to_what_is_quick() -> None:
    async def story() -> None:
        town = Town(is_quick=lambda wish: wish == "three")
        working = asyncio.create_task(town.errands.work())
        for key in (ONE, TWO, THREE):
            town.errands.send(key, key.name, NOW)
        town.open("three")
        await a_moment()
        assert town.there.count("three") == 1
        assert town.woken == [THREE]
        assert "two" not in town.there, "the others have half of the places"
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    asyncio.run(story())


def test_what_is_forgotten_and_sent_again_goes_once_and_in_its_own_place() -> None:
    async def story() -> None:
        town = Town(is_quick=lambda wish: wish == "two")
        town.errands.send(ONE, "two", NOW)
        town.errands.forget(ONE)
        town.errands.send(ONE, "one", NOW)
        working = asyncio.create_task(town.errands.work())
        await a_moment()
        town.errands.send(TWO, "two", NOW)
        await a_moment()
        assert town.there == ["one", "two"]
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    asyncio.run(story())
