"""Runs a reflector against the API server: sends its requests and feeds it the answers."""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any, Generic, TypeVar

from foresail.kube.clock import steady
from foresail.kube.failures import INITIALIZING_SECONDS, Cause, Failure, pattern, unreachable
from foresail.kube.json_stream import LineSplitter
from foresail.kube.pages import MOST_PER_PAGE, Page, smaller_page
from foresail.kube.reflector import Phase, Reflector
from foresail.kube.server import Server, Stream

Wire = TypeVar("Wire")
Row = TypeVar("Row")
_log = logging.getLogger(__name__)

STALL_SECONDS = 90.0  # after so long without news a stream is reopened: it may be dead, or its kind quiet
STANDSTILL_SECONDS = 1_800.0  # etcd tells an API server its revision, even of a quiet kind, each 22 minutes at least
_LOG_INTERVAL = 600.0  # seconds between two log lines about the same failure
_LOG_PAUSE = 10.0  # and between two about failures of the same cause
_FIRST_PAUSE, _MAX_PAUSE = 0.2, 10.0
UNSERVED_SECONDS = 120.0  # between two requests for a kind that the API server does not serve; below STALE_SECONDS
_UNSERVED_AT_FIRST, _UNSERVED_LATER = 3, 8  # 404s in a row that count: a server that has just started may send some
_MAX_LINES, _MAX_SECONDS = 500, 0.01  # of work after which other tasks get a turn


class SilentStreamError(ConnectionAbortedError):
    """A stream delivered nothing for a while, not even a bookmark."""


class Watch(Generic[Wire, Row]):
    """One stream, open while `run` runs; it feeds one reflector and those that share the stream."""

    def __init__(
        self,
        client: Server,
        reflector: Reflector[Wire, Row],
        on_version: Callable[[int], None] = lambda _: None,
        *,
        stall: float = STALL_SECONDS,
        clock: Callable[[], float] = steady,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.reflector = reflector
        self.synced = asyncio.Event()
        self.last_failure: Failure | None = None
        self.failures: Counter[Cause] = Counter()
        self._client = client
        self._reflectors = [reflector]
        self._on_version = [on_version]  # called with the resourceVersion that the stores have reached
        self._stall = stall
        self._clock = clock
        self._jitter = jitter  # from 0 to 1
        self._confirmed_at = clock()  # when an event, a bookmark or a whole list last arrived
        self._version = ""
        self._moved_at = self._confirmed_at  # when the resourceVersion last changed
        self._unseen: tuple[int, float] | None = None  # the first own write that is missing, and since when
        self._bookmark_at: float | None = None  # when the last one arrived
        self._logged: dict[Cause, tuple[float, str]] = {}  # when and what was logged last, since the last recovery
        self._received = False  # whether the current request delivered anything; if not, the next one waits
        self._received_event = False  # whether it delivered news: a list alone does not reset the back-off

    def share(
        self, reflector: Reflector[Any, Any], on_version: Callable[[int], None] = lambda _: None
    ) -> "SharedWatch":
        """Feed another reflector from the same stream; only before `run`."""
        self._reflectors.append(reflector)
        self._on_version.append(on_version)
        if len({shared.spec.labels for shared in self._reflectors}) > 1:
            for shared in self._reflectors:
                shared.filters = True
        return SharedWatch(self, reflector)

    def expect(self, version: int) -> None:
        """Expect an own write, by its resourceVersion: as long as it is missing, the store is as old."""
        if self._unseen is None:
            self._unseen = version, self._clock()

    def age(self) -> float:
        """Return the seconds since the API server last confirmed the store by an event, a bookmark or a list.

        An API server whose watch cache stands still confirms anything, but sends neither own writes nor a new version.
        """
        now = self._clock()
        unseen = now - self._unseen[1] if self._unseen is not None else 0.0
        standstill = now - self._moved_at
        return max(now - self._confirmed_at, unseen, standstill if standstill > STANDSTILL_SECONDS else 0.0)

    def bookmark_age(self) -> float | None:
        """Return the seconds since the last bookmark; None if there was none yet."""
        return self._clock() - self._bookmark_at if self._bookmark_at is not None else None

    async def run(self) -> None:
        """Keep the watch open until cancelled; no answer of the server ends it."""
        pauses: dict[Cause | None, float] = {}  # per cause, so that a 410 after a long outage starts at the first pause
        unserved = 0  # 404s in a row
        while True:
            self._received = self._received_event = False
            failure = await self._request()
            self.last_failure = failure
            waits = [reflector.end_request(failure) for reflector in self._reflectors]
            wait = any(waits)
            unserved = unserved + 1 if self.reflector.is_unserved(failure) else 0
            if unserved >= (_UNSERVED_LATER if self.reflector.synced else _UNSERVED_AT_FIRST):
                self._mark_unserved()
            if unserved and not self.reflector.store.is_served:
                self._confirmed_at = self._moved_at = self._clock()
                self._unseen = None
                await asyncio.sleep(UNSERVED_SECONDS)
                continue
            if wait and failure is not None and not unserved:
                self._count(failure)
            if self._received_event:
                pauses.clear()
            if wait or (failure is None and not self._received):
                await self._back_off(pauses, failure)

    async def _back_off(self, pauses: dict[Cause | None, float], failure: Failure | None) -> None:
        """Wait before the next request: longer after each failure of the same cause."""
        cause = failure.cause if failure is not None else None
        pause = pauses.get(cause, _FIRST_PAUSE)
        is_initializing = failure is not None and failure.is_initializing
        pauses[cause] = min(pause * 2, INITIALIZING_SECONDS if is_initializing else _MAX_PAUSE)
        await asyncio.sleep(pause * (0.75 + 0.5 * self._jitter()))

    async def _request(self) -> Failure | None:
        if self.reflector.phase is Phase.LISTING:
            return await self._list()
        continues = self.reflector.phase is Phase.WATCHING
        stream = await self._open()
        if isinstance(stream, Failure):
            return stream
        if continues:
            self._confirmed_at = self._clock()  # the server has our resourceVersion and sends what came after it
        async with stream:
            try:
                return await self._follow(stream)
            except SilentStreamError as problem:
                if self.reflector.phase is not Phase.WATCHING:
                    return unreachable(problem)
                self._received_event = True  # a quiet kind may get no news; a dead server fails the next request
                self._log_recovery()
                return None
            except OSError as problem:
                return unreachable(problem)

    async def _follow(self, stream: Stream) -> Failure | None:
        async for line in self._lines(stream):
            was_whole = self.reflector.phase is Phase.WATCHING
            bookmarks = self.reflector.bookmarks
            failure = next(filter(None, [reflector.feed_line(line) for reflector in self._reflectors]), None)
            if failure is not None:
                return failure
            self._received = True
            if self.reflector.bookmarks > bookmarks:
                self._bookmark_at = self._clock()
            if self.reflector.phase is Phase.WATCHING:
                self._confirmed_at = self._clock()
            if was_whole:
                self._received_event = True
                self._log_recovery()
            self._report_version()
            if self.reflector.synced and not self.synced.is_set():
                self.synced.set()
        return None

    async def _open(self) -> Stream | Failure:
        """Open the stream; a server that accepts the connection and never answers counts as a dead stream."""
        spec = self.reflector.spec
        kind = spec.kind
        parameters = self.reflector.parameters
        metadata_only = spec.metadata_only
        try:
            async with asyncio.timeout(self._stall):
                return await self._client.stream(kind, spec.namespace, parameters, metadata_only=metadata_only)
        except TimeoutError:
            return Failure(Cause.UNREACHABLE, f"the watch was not answered for {self._stall:g} s")

    async def _lines(self, stream: Stream) -> AsyncIterator[bytes]:
        lines = LineSplitter()
        since_turn = 0
        worked = 0.0
        time = asyncio.get_running_loop().time
        news_at = time()
        while True:
            try:
                # Not wait_for: on Python 3.11 it loses a cancellation that comes together with what it waits for.
                async with asyncio.timeout_at(news_at + self._stall):
                    chunk = await stream.read()
            except TimeoutError:
                raise SilentStreamError(f"no event for {self._stall:g} s") from None
            if not chunk:
                return
            for line in lines.feed(chunk):
                began = time()
                version = self.reflector.version
                yield line
                if self.reflector.phase is not Phase.WATCHING or self.reflector.version != version:
                    news_at = time()  # a bookmark that repeats the version is none: the watch cache may stand still
                since_turn = since_turn + 1
                worked = worked + time() - began
                if since_turn >= _MAX_LINES or worked >= _MAX_SECONDS:
                    since_turn = 0
                    worked = 0.0
                    await asyncio.sleep(0)

    async def _list(self) -> Failure | None:
        spec = self.reflector.spec
        limit = MOST_PER_PAGE
        while self.reflector.phase is Phase.LISTING:
            parameters = {**self.reflector.parameters, "limit": str(limit)}
            page = await self._client.page(
                spec.kind, spec.namespace, parameters, Page, metadata_only=spec.metadata_only
            )
            if isinstance(page, Failure) and (smaller := smaller_page(limit, page)):
                limit = smaller
                continue
            if isinstance(page, Failure):
                return page
            self._received = True
            for reflector in self._reflectors:
                reflector.feed_page(page)
        self._confirmed_at = self._clock()
        self._report_version()
        self.synced.set()
        return None

    def _mark_unserved(self) -> None:
        if self.reflector.store.is_served:
            _log.info("the API server does not serve %s; retrying later", self.reflector.spec.kind.name)
        for reflector in self._reflectors:
            reflector.mark_unserved()
        self.synced.set()

    def _count(self, failure: Failure) -> None:
        """Count a failed request, and log it unless the same was logged recently."""
        self.failures[failure.cause] += 1
        now, words = self._clock(), pattern(failure.message)
        logged_at, logged = self._logged.get(failure.cause, (-_LOG_INTERVAL, ""))
        if self._received_event or now - logged_at < (_LOG_INTERVAL if words == logged else _LOG_PAUSE):
            return  # a stream that ends after events is normal; a failure to reopen it is logged
        self._logged[failure.cause] = now, words
        kind = self.reflector.spec.kind.name
        state = f"last confirmed {self.age():.0f} s ago" if self.reflector.synced else "not read yet"
        _log.warning("cannot watch %s, %s, retrying: %s", kind, state, failure)

    def _log_recovery(self) -> None:
        if self._logged:
            causes = ", ".join(cause.value for cause in self._logged)
            _log.info("watching %s again after %s", self.reflector.spec.kind.name, causes)
            self._logged.clear()

    def _report_version(self) -> None:
        version = self.reflector.version
        if version != self._version:
            self._version, self._moved_at = version, self._clock()
        if version.isdecimal():
            number = int(version)
            if self._unseen is not None and number >= self._unseen[0]:
                self._unseen = None
            for listener in self._on_version:
                listener(number)


class SharedWatch:
    """A watch that shares the stream of another one; only the reflector is its own."""

    def __init__(self, owner: Watch[Any, Any], reflector: Reflector[Any, Any]) -> None:
        self.owner = owner
        self.reflector = reflector

    @property
    def synced(self) -> asyncio.Event:
        """Set when the store is complete."""
        return self.owner.synced

    @property
    def last_failure(self) -> Failure | None:
        """Why the last request ended."""
        return self.owner.last_failure

    def expect(self, version: int) -> None:
        """Expect an own write, by its resourceVersion."""
        self.owner.expect(version)

    def age(self) -> float:
        """Return the seconds since the API server last confirmed the store."""
        return self.owner.age()

    def bookmark_age(self) -> float | None:
        """Return the seconds since the last bookmark; None if there was none yet."""
        return self.owner.bookmark_age()

    async def run(self) -> None:
        """Wait until cancelled: the owner runs the stream."""
        await asyncio.Event().wait()
