"""What one viewer has just read: pages share it for a second, and after each use of the token only."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")

SECONDS = 1.0
"""How long a read is shared."""


class Recent:
    """Shares reads of one viewer that are under way or a second old, if the API server still accepts the viewer."""

    def __init__(self, check: Callable[[], Awaitable[object]]) -> None:
        self._check = check
        self._reads = dict[str, asyncio.Task[Any]]()
        self._waiting: Counter[asyncio.Task[Any]] = Counter()

    async def get(self, what: str, read: Callable[[], Awaitable[T]]) -> T:
        """Return what was just read, or read it."""
        if what in self._reads:
            await self._check()  # the token may have expired since
        if what not in self._reads:
            self._reads[what] = self._begun(what, read)
        task: asyncio.Task[T] = self._reads[what]
        self._waiting[task] += 1
        try:
            return await asyncio.shield(task)  # another page may wait for it, when this one is left
        finally:
            self._waiting[task] -= 1
            if not self._waiting[task]:
                del self._waiting[task]
                await self._end(what, task)

    def forget(self) -> None:
        """Forget everything: the viewer has changed something."""
        self._reads.clear()

    def _begun(self, what: str, read: Callable[[], Awaitable[T]]) -> asyncio.Task[T]:
        async def reading() -> T:
            return await read()

        def ended(done: asyncio.Task[T]) -> None:
            is_good = not done.cancelled() and done.exception() is None
            asyncio.get_running_loop().call_later(SECONDS if is_good else 0, self._drop, what, done)

        task = asyncio.create_task(reading())
        task.add_done_callback(ended)
        return task

    async def _end(self, what: str, read: asyncio.Task[Any]) -> None:
        """End a read after the last page has stopped waiting; the turn of that page lasts until then."""
        if not read.done():
            self._drop(what, read)
            read.cancel()
            await asyncio.wait([read])

    def _drop(self, what: str, read: asyncio.Task[Any]) -> None:
        if self._reads.get(what) is read:
            del self._reads[what]
