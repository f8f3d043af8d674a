"""Runs a reflector against the API server: opens what it asks for, and feeds it what comes."""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

from foresail.kube.clock import steady
from foresail.kube.failures import Cause, Failure, unreachable
from foresail.kube.lines import Lines
from foresail.kube.nothing import nothing
from foresail.kube.reflector import Page, Phase, Reflector
from foresail.kube.server import Server, Stream
from foresail.plan import Kind

Wire = TypeVar("Wire")
Row = TypeVar("Row")
_log = logging.getLogger(__name__)

STALL_SECONDS = 90.0  # the API server sends a bookmark each minute, so silence beyond that is a dead stream
STALE_SECONDS = 300.0  # an older store makes the process unready; a working watch confirms it each minute
_LOG_AGAIN = 600.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
_TURN = 500  # lines after which other tasks get a turn


class Watch(Generic[Wire, Row]):
    """One stream for one interest, kept open for as long as `run` runs."""

    def __init__(
        self,
        client: Server,
        reflector: Reflector[Wire, Row],
        reached: Callable[[Kind, int], None] = nothing,
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
        self._reached = reached  # is told up to which version the store is true
        self._stall = stall
        self._clock = clock
        self._jitter = jitter  # from 0 to 1
        self._confirmed_at = clock()  # when an event, a bookmark or a whole list last arrived
        self._bookmark_at: float | None = None  # when the last one arrived
        self._logged: dict[Cause, float] = {}  # of the failures since then
        self._brought = False  # whether the present request brought anything; if not, the next one waits
        self._followed = False  # whether it brought anything new: a list alone does not end a back-off

    def age(self) -> float:
        """Return how many seconds ago the API server last confirmed the store, by an event, a bookmark or a list."""
        return self._clock() - self._confirmed_at

    def bookmark_age(self) -> float | None:
        """Return how many seconds ago the last bookmark arrived; None if there was none yet."""
        return self._clock() - self._bookmark_at if self._bookmark_at is not None else None

    async def run(self) -> None:
        """Follow the interest until cancelled; no answer of the server's ends it."""
        pause = _FIRST_PAUSE
        while True:
            self._brought = self._followed = False
            failure = await self._request()
            self.last_failure = failure
            wait = self.reflector.ended(failure)
            if wait and failure is not None:
                self._count(failure)
            if self._followed:
                pause = _FIRST_PAUSE
            if wait or (failure is None and not self._brought):
                await asyncio.sleep(pause * (0.75 + 0.5 * self._jitter()))
                pause = min(pause * 2, _LONGEST_PAUSE)

    async def _request(self) -> Failure | None:
        if self.reflector.phase is Phase.LISTING:
            return await self._list()
        stream = await self._open()
        if isinstance(stream, Failure):
            return stream
        async with stream:
            try:
                async for line in self._lines(stream):
                    was_whole = self.reflector.phase is Phase.WATCHING
                    bookmarks = self.reflector.bookmarks
                    failure = self.reflector.line(line)
                    if failure is not None:
                        return failure
                    self._brought = True
                    if self.reflector.bookmarks > bookmarks:
                        self._bookmark_at = self._clock()
                    if self.reflector.phase is Phase.WATCHING:
                        self._confirmed_at = self._clock()
                    if was_whole:
                        self._followed = True
                        self._log_recovery()
                    self._tell()
                    if self.reflector.synced and not self.synced.is_set():
                        self.synced.set()
            except OSError as problem:
                return unreachable(problem)
        return None

    async def _open(self) -> Stream | Failure:
        """Ask for the stream; whoever takes the connection and never answers is as silent as a dead stream."""
        interest = self.reflector.interest
        kind, parameters, metadata_only = interest.kind, self.reflector.parameters, interest.metadata_only
        try:
            async with asyncio.timeout(self._stall):
                return await self._client.stream(kind, interest.namespace, parameters, metadata_only=metadata_only)
        except TimeoutError:
            return Failure(Cause.UNREACHABLE, f"the watch was not answered for {self._stall:g} s")

    async def _lines(self, stream: Stream) -> AsyncIterator[bytes]:
        lines = Lines()
        since_turn = 0
        while True:
            try:
                # Not wait_for: on Python 3.11 it loses a cancellation that comes together with what it waits for.
                async with asyncio.timeout(self._stall):
                    chunk = await stream.read()
            except TimeoutError:
                raise ConnectionAbortedError(f"nothing came for {self._stall:g} s") from None
            if not chunk:
                return
            for line in lines.feed(chunk):
                since_turn += 1
                yield line
            if since_turn >= _TURN:
                since_turn = 0
                await asyncio.sleep(0)

    async def _list(self) -> Failure | None:
        interest = self.reflector.interest
        while self.reflector.phase is Phase.LISTING:
            parameters, metadata_only = self.reflector.parameters, interest.metadata_only
            page = await self._client.page(
                interest.kind, interest.namespace, parameters, Page, metadata_only=metadata_only
            )
            if isinstance(page, Failure):
                return page
            self._brought = True
            self.reflector.page(page)
        self._confirmed_at = self._clock()
        self._tell()
        self.synced.set()
        return None

    def _count(self, failure: Failure) -> None:
        """Count a failed request, and log it unless the same cause was logged a while ago."""
        self.failures[failure.cause] += 1
        now = self._clock()
        if self._followed or now - self._logged.get(failure.cause, -_LOG_AGAIN) < _LOG_AGAIN:
            return  # a stream that worked and broke is not worth a line; if it cannot be opened again, that is
        self._logged[failure.cause] = now
        kind = self.reflector.interest.kind.name
        state = f"last confirmed {self.age():.0f} s ago" if self.reflector.synced else "not read yet"
        _log.warning("cannot watch %s, %s, retrying: %s", kind, state, failure)

    def _log_recovery(self) -> None:
        if self._logged:
            causes = ", ".join(cause.value for cause in self._logged)
            _log.info("watching %s again after %s", self.reflector.interest.kind.name, causes)
            self._logged.clear()

    def _tell(self) -> None:
        version = self.reflector.version
        if version.isdecimal():
            self._reached(self.reflector.interest.kind, int(version))
