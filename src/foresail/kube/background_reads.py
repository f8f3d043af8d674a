"""Reads that take longer than a reconcile and write nothing run in the background; a result requeues the key.

A Plan requests a read, and a later reconcile of the same key uses its result. Results are kept in memory only: the next
leader reads again. Quick reads that wait with equal queries share one read. It starts after all of them were requested,
so no result is older than its request.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from foresail.kube.queue import Turns
from foresail.plan import Key, ReadResult

_log = logging.getLogger(__name__)
_PAUSE = 60.0  # seconds until a read that raised an exception is tried again

Query = TypeVar("Query")
Answer = TypeVar("Answer")


def _never(_: object) -> bool:
    return False


Request = tuple[Query, datetime]


class _Requests(asyncio.Queue[tuple[Key, Request[Query]]]):
    """The requested reads that wait, with namespaces taking turns."""

    def start(self, key: Key, request: Request[Query]) -> dict[Key, Request[Query]]:
        """Return the requests that a read answers which starts now."""
        return {key: request}

    def end(self, query: Query) -> None:
        """Note that the read of a query has ended."""

    def drop(self, key: Key, _: Request[Query]) -> None:
        """Remove the request of a key, if it waits."""
        self._queue.drop(key)

    def _init(self, maxsize: int) -> None:  # noqa: ARG002 - this and the two below are asyncio.Queue's hooks for another order
        self._queue = Turns[Request[Query]]()

    def _put(self, item: tuple[Key, Request[Query]]) -> None:
        self._queue.push(*item)

    def _get(self) -> tuple[Key, Request[Query]]:
        return self._queue.pop()


class _SharedRequests(_Requests[Query]):
    """The same with one turn for all requests that have equal queries; a query is hashable and runs once at a time.

    A request that comes while its query runs waits for the next read.
    """

    def start(self, key: Key, request: Request[Query]) -> dict[Key, Request[Query]]:
        """Return all requests that wait with the same query: they are older than the read that starts now."""
        self._running.add(request[0])
        return self._waiting.pop(request[0], {key: request})

    def end(self, query: Query) -> None:
        """Give a turn to the requests that came while their query ran."""
        self._running.discard(query)
        for item in self._waiting.pop(query, {}).items():
            self.put_nowait(item)

    def drop(self, key: Key, request: Request[Query]) -> None:
        """Remove the request of a key, if it waits; the next with the same query takes over its turn."""
        waiting = self._waiting.get(request[0], {})
        if waiting.pop(key, None) is None:
            return
        has_turn = key in self._queue
        super().drop(key, request)
        if not waiting:
            del self._waiting[request[0]]
        elif has_turn:
            super()._put(next(iter(waiting.items())))

    def _init(self, maxsize: int) -> None:
        super()._init(maxsize)
        self._waiting: dict[Query, dict[Key, Request[Query]]] = {}
        self._running: set[Query] = set()

    def _put(self, item: tuple[Key, Request[Query]]) -> None:
        key, request = item
        waiting = self._waiting.setdefault(request[0], {})
        waiting[key] = request
        if len(waiting) == 1 and request[0] not in self._running:
            super()._put(item)


class BackgroundReads(Generic[Query, Answer]):
    """Runs the reads of one controller while this process is the leader: one per key at a time, `concurrency` at once.

    Namespaces take turns.

    `run` returns something also if it fails; if it raises, which is a bug, the read is tried again later. Reads for
    which `is_quick` holds have `quick` workers of their own, so that slow ones, which may hang, do not delay them.
    """

    def __init__(
        self,
        run: Callable[[Query], Awaitable[Answer]],
        *,
        concurrency: int = 2,
        is_quick: Callable[[Query], bool] = _never,
        quick: int = 0,
    ) -> None:
        self.wake: Callable[[Key], None] = lambda _: None
        self.clock: Callable[[], datetime] | None = None  # without it, a read starts when it is requested
        self.failures = 0  # reads that raised an exception
        self._run = run
        self._concurrency = concurrency
        self._is_quick = is_quick
        self._quick_concurrency = quick
        self._results: dict[Key, ReadResult[Query, Answer]] = {}
        self._requested: dict[Key, Request[Query]] = {}
        self._slow_queue = _Requests[Query]()
        self._quick_queue: _Requests[Query] = _SharedRequests[Query]()

    def result(self, key: Key) -> ReadResult[Query, Answer] | None:
        """Return the last result for a key."""
        return self._results.get(key)

    @property
    def requested(self) -> list[Key]:
        """The keys whose reads are queued or running."""
        return list(self._requested)

    def age(self, now: datetime) -> float:
        """Return for how many seconds the oldest read has been queued or running."""
        return max(((now - requested).total_seconds() for _, requested in self._requested.values()), default=0.0)

    def request(self, key: Key, query: Query, now: datetime) -> None:
        """Request a read, unless one for this key is queued or running."""
        if key not in self._requested:
            request = self._requested[key] = query, now
            self._queue_of(query).put_nowait((key, request))

    def forget(self, key: Key) -> None:
        """Forget the result for a key, and discard the one of a read that is still running."""
        self._results.pop(key, None)
        request = self._requested.pop(key, None)
        if request is not None:
            self._queue_of(request[0]).drop(key, request)

    async def work(self) -> None:
        """Run reads until cancelled; requeue the keys of unfinished ones, because this process may lead again."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._concurrency):
                    group.create_task(self._run_reads(self._slow_queue))
                for _ in range(self._quick_concurrency):
                    group.create_task(self._run_reads(self._quick_queue))
        finally:
            unfinished = list(self._requested)
            self._requested.clear()
            self._slow_queue = _Requests[Query]()
            self._quick_queue = _SharedRequests[Query]()
            for key in unfinished:
                self.wake(key)

    def _queue_of(self, query: Query) -> _Requests[Query]:
        return self._quick_queue if self._is_quick(query) else self._slow_queue

    async def _run_reads(self, queue: _Requests[Query]) -> None:
        while True:
            key, request = await queue.get()
            query, requested = request
            answered = queue.start(key, request)
            started = self.clock() if self.clock is not None else requested
            try:
                answer = await self._run(query)
            except Exception:  # noqa: BLE001 - whatever one object does to us must not end the work on others
                self.failures += 1
                _log.exception("the background read for %s failed, retrying in %g s", key, _PAUSE)
                asyncio.get_running_loop().call_later(_PAUSE, self._retry, answered)
                continue
            finally:
                queue.end(query)
            for asking, its_request in answered.items():
                if self._requested.get(asking) is its_request:  # else it was forgotten while the read ran
                    self._keep(asking, query, answer, started)

    def _retry(self, answered: dict[Key, Request[Query]]) -> None:
        for key, request in answered.items():
            if self._requested.get(key) is request:  # else it was forgotten, or leadership was lost
                self._queue_of(request[0]).put_nowait((key, request))

    def _keep(self, key: Key, query: Query, answer: Answer, started: datetime) -> None:
        del self._requested[key]
        before = self._results.get(key)
        attempts = before.attempts + 1 if before is not None and before.query == query else 1
        took = max(self.clock() - started, timedelta()) if self.clock is not None else timedelta()
        self._results[key] = ReadResult(query, answer, started, attempts, took)
        self.wake(key)


@runtime_checkable
class HasBackgroundReads(Protocol):
    """A controller whose decisions need background reads."""

    @property
    def background_reads(self) -> BackgroundReads[Any, Any]:
        """Its background reads, which the loop runs."""
