"""Requests at the same time: a command waits for the slowest of them, not for their sum."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")


@asynccontextmanager
async def together() -> AsyncIterator[asyncio.TaskGroup]:
    """Run tasks at the same time; the first error ends the others, and is raised as itself."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def all_of(readings: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results in order."""
    async with together() as tasks:
        running = [tasks.create_task(each) for each in readings]
    return [each.result() for each in running]
