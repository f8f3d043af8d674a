"""Turns of the console: memory is bounded, nobody waits without end, and one viewer leaves turns for the others."""

import asyncio
import threading
from contextlib import AsyncExitStack, ExitStack
from http import HTTPStatus

import pytest

from foresail.cli.access.together import in_thread
from foresail.console import turns
from foresail.console.turns import MOST_PAGES, TurnError, Turns


def test_one_viewer_at_a_time_reads_the_whole_cluster_and_tenants_do_not_wait_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "LONGEST_WAIT", 0.05)

    async def steps() -> None:
        shared = Turns()
        async with shared.share("ann").read(is_administrator=True), shared.share("bob").read(is_administrator=False):
            with pytest.raises(TurnError) as refused:
                async with shared.share("cyd").read(is_administrator=True):
                    pass
        assert refused.value.status == HTTPStatus.SERVICE_UNAVAILABLE
        async with shared.share("cyd").read(is_administrator=True):
            pass  # who gave up waiting holds nothing

    asyncio.run(steps())


def test_the_pages_of_one_viewer_are_bounded_and_those_of_another_are_not_counted() -> None:
    async def steps() -> None:
        shared = Turns()
        ann = shared.share("ann")
        with ExitStack() as stack:
            for _ in range(MOST_PAGES):
                stack.enter_context(shared.share("ann").page())
            with pytest.raises(TurnError) as refused, ann.page():
                pass
            assert refused.value.status == HTTPStatus.TOO_MANY_REQUESTS
            with shared.share("bob").page():
                pass
        with ann.page():
            pass

    asyncio.run(steps())


def test_no_viewer_takes_all_turns_of_namespaces_or_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "LONGEST_WAIT", 0.05)

    async def steps() -> None:
        shared = Turns()
        ann, bob = shared.share("ann"), shared.share("bob")
        async with AsyncExitStack() as stack:
            for _ in range(2):
                await stack.enter_async_context(ann.read(is_administrator=False))
            await stack.enter_async_context(ann.file())
            for refused in (ann.read(is_administrator=False), ann.file()):
                with pytest.raises(TurnError):
                    await stack.enter_async_context(refused)
            await stack.enter_async_context(bob.read(is_administrator=False))
            await stack.enter_async_context(bob.file())
            with pytest.raises(TurnError):  # two files at once, of whomever
                await stack.enter_async_context(shared.share("cyd").file())
            await stack.enter_async_context(bob.plan())
            with pytest.raises(TurnError):
                await stack.enter_async_context(ann.plan())

    asyncio.run(steps())


def test_work_in_a_thread_counts_until_it_ends() -> None:
    begun, goes_on, ended = threading.Event(), threading.Event(), list[bool]()

    def work() -> None:
        begun.set()
        ended.append(goes_on.wait(30))

    async def steps() -> None:
        task = asyncio.create_task(in_thread(work))
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(goes_on.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == [True]

    asyncio.run(steps())
