"""Who reads and follows at once: memory is bounded, nobody waits without end, and no viewer takes every turn."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from http import HTTPStatus
from weakref import WeakValueDictionary

MOST_STREAMS = 16
"""Pages that one viewer follows at once."""

MOST_PAGES = 4
"""Pages of one viewer that wait or are made at once, apart from those that are followed."""

LONGEST_WAIT = 30.0
"""Seconds until a page gives up waiting for its turn."""


class TurnError(Exception):
    """Why a page has no turn now."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class Turns:
    """What all viewers read at once: one the whole cluster, some their own namespaces, few the files of Velero."""

    def __init__(self) -> None:
        self.cluster = asyncio.Semaphore(1)
        self.namespaces = asyncio.Semaphore(8)
        self.files = asyncio.Semaphore(2)
        self.plans = asyncio.Semaphore(1)
        self._shares: WeakValueDictionary[str, Share] = WeakValueDictionary()

    def share(self, viewer: str = "") -> "Share":
        """Return the share of one viewer, which all their readers have in common."""
        return self._shares.setdefault(viewer, Share(self))


class Share:
    """The turns of one viewer: at most two reads and one file at a time."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._pages = 0
        self._reads = asyncio.Semaphore(2)
        self._files = asyncio.Semaphore(1)

    @contextmanager
    def page(self) -> Iterator[None]:
        """Count a page until the block ends; refuse it if the viewer has too many."""
        if self._pages >= MOST_PAGES:
            raise TurnError(HTTPStatus.TOO_MANY_REQUESTS, f"You have asked for more than {MOST_PAGES} pages at once.")
        self._pages += 1
        try:
            yield
        finally:
            self._pages -= 1

    @asynccontextmanager
    async def read(self, *, is_administrator: bool) -> AsyncIterator[None]:
        """Wait for the turn to read objects."""
        async with _turn(self._reads, self._turns.cluster if is_administrator else self._turns.namespaces):
            yield

    @asynccontextmanager
    async def file(self) -> AsyncIterator[None]:
        """Wait for the turn to read files of Velero."""
        async with _turn(self._files, self._turns.files):
            yield

    @asynccontextmanager
    async def plan(self) -> AsyncIterator[None]:
        """Wait for the turn to make a plan of files that were read."""
        async with _turn(self._turns.plans):
            yield


@asynccontextmanager
async def _turn(*limits: asyncio.Semaphore) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(LONGEST_WAIT):
                for limit in limits:
                    await stack.enter_async_context(limit)
        except TimeoutError:
            raise TurnError(HTTPStatus.SERVICE_UNAVAILABLE, "The console is busy with other pages.") from None
        yield


class Streams:
    """Bounds how many pages are followed at once and for how long; a browser then begins a new stream by itself."""

    def __init__(self, most: int, longest: float = float("inf")) -> None:
        self._most = most
        self._longest = longest
        self._open: Counter[str] = Counter()
        self.ended = asyncio.Event()

    @contextmanager
    def one(self, viewer: str) -> Iterator[bool]:
        """Count a stream until the block ends; False if there are too many already."""
        is_free = self._open[viewer] < MOST_STREAMS and self._open.total() < self._most
        self._open[viewer] += is_free
        try:
            yield is_free
        finally:
            self._open[viewer] -= is_free
            self._open += Counter()  # without the viewers that have left

    def is_over(self, seconds: float) -> bool:
        """Whether a stream ends that has lasted so long."""
        return self.ended.is_set() or seconds > self._longest
