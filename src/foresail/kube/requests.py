"""Requests to the API server: how many may be in flight, and how long they take until their answers begin.

A 429 is no fault of the object in question. Sending as many requests again after Retry-After gets more 429s, and a
back-off per object makes the unlucky ones wait for minutes. So each 429 halves the limit, down to one. Each other
answer raises it a little: as many answers as the limit raise it by one.
"""

import asyncio
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Awaitable
from types import TracebackType
from typing import Protocol, Self, TypeVar

BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Upper bounds in seconds, the same as client-go's."""

_NO_ANSWER = "<error>"  # client-go's word


class _Answer(Protocol):
    @property
    def status(self) -> int: ...


Answer = TypeVar("Answer", bound=_Answer)


class Durations:
    """A histogram of request durations."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)  # by bucket, the last for those beyond all bounds
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Count a request."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


class Requests:
    """Request metrics of one or several clients."""

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, str, str]] = Counter()  # by code, method and host
        self.durations: dict[tuple[str, str], Durations] = {}  # by method and host

    async def measured(self, method: str, host: str, sending: Awaitable[Answer]) -> Answer:
        """Wait until the answer to a request begins, and count the request."""
        # aiohttp's tracing would cost a sixth of the request's own time.
        begun = time.perf_counter()
        try:
            answer = await sending
        except Exception:
            self.answers[_NO_ANSWER, method, host] += 1
            raise
        self.answers[str(answer.status), method, host] += 1
        durations = self.durations.get((method, host))
        if durations is None:
            durations = self.durations[method, host] = Durations()
        durations.add(time.perf_counter() - begun)
        return answer


class RequestLimiter:
    """Limits the requests in flight; waiters enter with `async with`, in order of arrival."""

    __slots__ = ("_in_flight", "_limit", "_max_in_flight", "_waiting")

    def __init__(self, max_in_flight: int) -> None:
        self._max_in_flight = max_in_flight
        self._limit = float(max_in_flight)
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def limit(self) -> int:
        """How many requests may be in flight now."""
        return int(self._limit)

    def throttle(self) -> None:
        """Halve the limit after a 429."""
        self._limit = max(1.0, self._limit / 2)

    def recover(self) -> None:
        """Raise the limit a little after any other answer."""
        if self._limit < self._max_in_flight:
            self._limit = min(float(self._max_in_flight), self._limit + 1 / self._limit)

    async def __aenter__(self) -> Self:
        if self._waiting or self._in_flight >= self.limit:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():  # admitted and cancelled in the same turn of the event loop
                    self._in_flight -= 1
                    self._admit_waiting()
                raise
        else:
            self._in_flight += 1
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._in_flight -= 1
        self._admit_waiting()

    def _admit_waiting(self) -> None:
        while self._waiting and self._in_flight < self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self._in_flight += 1
                turn.set_result(None)
