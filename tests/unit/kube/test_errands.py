"""Errands: one for a key at a time, a few at once, what they bring wakes the key, and none outlives the lead."""

import asyncio
from datetime import UTC, datetime

from foresail.kube.errands import Errands
from foresail.plan import Brought, Key

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ONE, TWO, THREE = (Key("red", name) for name in ("one", "two", "three"))


class Town:
    """Where errands go: each waits until the test lets it come back."""

    def __init__(self) -> None:
        self.doors: dict[str, asyncio.Event] = {}
        self.there: list[str] = []
        self.woken: list[Key] = []
        self.errands = Errands[str, str](self._visit, at_once=2)
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
