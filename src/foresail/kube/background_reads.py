"""Reads that take longer than a reconcile and write nothing run in the background; a result requeues the key.

A Plan requests a read, and a later reconcile of the same key uses its result. Results are kept in memory only: the next
leader reads again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from foresail.kube.turns import Turns
from foresail.plan import Key, ReadResult

Query = TypeVar("Query")
Found = TypeVar("Found")


def _never(_: object) -> bool:
    return False


class _Requests(asyncio.Queue[tuple[Key, tuple[Query, datetime]]]):
    """The requested reads that wait, with namespaces taking turns."""

    def drop(self, key: Key) -> None:
        """Remove the read of a key, if it waits."""
        self._queue.drop(key)

    def _init(self, maxsize: int) -> None:  # noqa: ARG002 - this and the two below are asyncio.Queue's hooks for another order
        self._queue = Turns[tuple[Query, datetime]]()

    def _put(self, item: tuple[Key, tuple[Query, datetime]]) -> None:
        self._queue.push(*item)

    def _get(self) -> tuple[Key, tuple[Query, datetime]]:
        return self._queue.pop()


class BackgroundReads(Generic[Query, Found]):
    """Runs the reads of one controller while this process leads: one per key at a time, `concurrency` in all.

    Namespaces take turns.

    `run` always returns something: a failure is a result too. If `is_quick` is given, quick reads get half of the
    workers for themselves, so that slow ones, which may hang, do not delay them.
    """

    def __init__(
        self,
        run: Callable[[Query], Awaitable[Found]],
        *,
        concurrency: int = 2,
        is_quick: Callable[[Query], bool] = _never,
    ) -> None:
        self.wake: Callable[[Key], None] = lambda _: None
        self.clock: Callable[[], datetime] | None = None  # without it, a read starts when it is requested
        self._run = run
        self._concurrency = concurrency
        self._is_quick = is_quick
        self._results: dict[Key, ReadResult[Query, Found]] = {}
        self._requested: dict[Key, tuple[Query, datetime]] = {}
        self._slow_queue = _Requests[Query]()
        self._quick_queue = _Requests[Query]()

    def result(self, key: Key) -> ReadResult[Query, Found] | None:
        """Return the last result for a key."""
        return self._results.get(key)

    @property
    def requested(self) -> list[Key]:
        """The keys whose reads are queued or running."""
        return list(self._requested)

    def request(self, key: Key, query: Query, now: datetime) -> None:
        """Request a read, unless one for this key is queued or running."""
        if key not in self._requested:
            request = self._requested[key] = query, now
            (self._quick_queue if self._is_quick(query) else self._slow_queue).put_nowait((key, request))

    def forget(self, key: Key) -> None:
        """Forget the result for a key, and discard the one of a read that is still running."""
        self._results.pop(key, None)
        self._requested.pop(key, None)
        self._slow_queue.drop(key)
        self._quick_queue.drop(key)

    async def work(self) -> None:
        """Run reads until cancelled; requeue the keys of unfinished ones, because this process may lead again."""
        try:
            async with asyncio.TaskGroup() as group:
                quick = 0 if self._is_quick is _never else max(self._concurrency // 2, 1)
                for number in range(self._concurrency):
                    group.create_task(self._run_reads(self._quick_queue if number < quick else self._slow_queue))
        finally:
            unfinished = list(self._requested)
            self._requested.clear()
            self._slow_queue, self._quick_queue = _Requests[Query](), _Requests[Query]()
            for key in unfinished:
                self.wake(key)

    async def _run_reads(self, queue: _Requests[Query]) -> None:
        while True:
            key, request = await queue.get()
            query, requested = request
            started = self.clock() if self.clock is not None else requested
            found = await self._run(query)
            if self._requested.get(key) is not request:
                continue  # forgotten while it ran
            del self._requested[key]
            before = self._results.get(key)
            attempts = before.attempts + 1 if before is not None and before.query == query else 1
            self._results[key] = ReadResult(query, found, started, attempts)
            self.wake(key)


@runtime_checkable
class HasBackgroundReads(Protocol):
    """A controller whose decisions need background reads."""

    @property
    def background_reads(self) -> BackgroundReads[Any, Any]:
        """Its background reads, which the loop runs."""
