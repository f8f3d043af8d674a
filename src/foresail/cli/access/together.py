"""Requests at the same time: a command waits for the slowest of them, not for their sum."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """Do the work in a thread; a caller that is cancelled waits for its end, since a thread cannot be cancelled."""
    task = asyncio.create_task(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


class Together:
    """Tasks that run at the same time."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[Any]] = []

    def begin(self, reading: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin one more, and return it to be awaited."""
        task = asyncio.create_task(reading)
        self._tasks.append(task)
        return task

    async def end(self) -> None:
        """Wait for all; raise the error of the first that has one, by the order in which they began."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for task in self._tasks:
            task.result()

    async def cancel(self) -> None:
        """Cancel those that have not ended, and forget the errors of all."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()


@asynccontextmanager
async def together() -> AsyncIterator[Together]:
    """Run tasks at the same time until the block ends; an error in the block cancels them."""
    tasks = Together()
    try:
        yield tasks
        await tasks.end()
    finally:
        await tasks.cancel()


async def all_of(readings: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results in order."""
    async with together() as tasks:
        running = [tasks.begin(reading) for reading in readings]
    return [task.result() for task in running]
