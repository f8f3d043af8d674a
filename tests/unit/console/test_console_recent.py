"""Reads that pages share: those of one viewer only, for a second, and never after the token has expired."""

import asyncio

import pytest

from foresail.console import recent
from foresail.console.recent import Recent


class Source:
    """Counts its reads."""

    def __init__(self) -> None:
        self.reads = self.checks = 0
        self.problem: Exception | None = None

    async def read(self) -> int:
        self.reads += 1
        await asyncio.sleep(0.01)
        if self.problem:
            raise self.problem
        return self.reads

    async def check(self) -> None:
        self.checks += 1
        if self.problem:
            raise self.problem


def test_pages_share_what_is_read_at_the_moment_and_each_checks_the_viewer() -> None:
    async def steps() -> None:
        source = Source()
        found = Recent(source.check)
        assert await asyncio.gather(*(found.get("a", source.read) for _ in range(5))) == [1] * 5
        assert await found.get("b", source.read) == 2
        assert (await found.get("a", source.read), source.reads, source.checks) == (1, 2, 5)

    asyncio.run(steps())


def test_what_was_read_is_forgotten_after_a_while_and_after_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "SECONDS", 0.05)

    async def steps() -> None:
        source = Source()
        found = Recent(source.check)
        await found.get("a", source.read)
        found.forget()
        assert await found.get("a", source.read) == 2
        await asyncio.sleep(0.5)
        assert await found.get("a", source.read) == 3

    asyncio.run(steps())


def test_nothing_is_shared_with_a_viewer_whose_token_is_refused_and_no_failure_is_kept() -> None:
    async def steps() -> None:
        source = Source()
        found = Recent(source.check)
        await found.get("a", source.read)
        source.problem = PermissionError("expired")
        with pytest.raises(PermissionError):
            await found.get("a", source.read)
        with pytest.raises(PermissionError):
            await found.get("b", source.read)
        await asyncio.sleep(0.05)
        source.problem = None
        assert await found.get("b", source.read) == 3

    asyncio.run(steps())


def test_a_page_that_is_left_does_not_end_the_read_of_another() -> None:
    async def steps() -> None:
        source = Source()
        found = Recent(source.check)
        left = asyncio.create_task(found.get("a", source.read))
        await asyncio.sleep(0)
        stays = asyncio.create_task(found.get("a", source.read))
        await asyncio.sleep(0)
        left.cancel()
        assert await stays == 1

    asyncio.run(steps())


def test_a_read_that_nobody_waits_for_any_more_is_ended() -> None:
    async def steps() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def read() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        found = Recent(Source().check)
        pages = [asyncio.create_task(found.get("a", read)) for _ in range(2)]
        await begun.wait()
        pages[0].cancel()
        await asyncio.wait(pages[:1])
        assert not ended.is_set()
        pages[1].cancel()
        await asyncio.wait(pages)
        assert ended.is_set()
        source = Source()
        assert await found.get("a", source.read) == 1

    asyncio.run(steps())
