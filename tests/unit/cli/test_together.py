"""Requests at the same time: results in order, the first error by order, and nothing runs on after an error."""

import asyncio

import pytest

from foresail.cli.access.together import all_of, together
from foresail.cli.errors import CommandError


async def after(seconds: float, result: str) -> str:
    await asyncio.sleep(seconds)
    return result


async def fails(seconds: float, problem: str) -> str:
    await asyncio.sleep(seconds)
    raise CommandError(problem)


def test_results_come_in_order_and_take_as_long_as_the_slowest() -> None:
    async def run() -> tuple[list[str], float]:
        began = asyncio.get_running_loop().time()
        results = await all_of([after(0.05, "a"), after(0.01, "b"), after(0.03, "c")])
        return results, asyncio.get_running_loop().time() - began

    results, took = asyncio.run(run())
    assert results == ["a", "b", "c"]
    assert took < 0.085


def test_the_error_is_that_of_the_first_request_whichever_fails_first() -> None:
    with pytest.raises(CommandError, match="first"):
        asyncio.run(all_of([after(0, "a"), fails(0.02, "first"), fails(0, "second")]))


def test_an_error_in_the_block_cancels_the_others() -> None:
    ended: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("slow")

    async def run() -> None:
        async with together() as tasks:
            running = tasks.begin(slow())
            await tasks.begin(fails(0, "problem"))
            await running

    with pytest.raises(CommandError, match="problem"):
        asyncio.run(run())
    assert ended == ["slow"]
