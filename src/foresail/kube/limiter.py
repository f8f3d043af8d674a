"""Limits the requests in flight: fewer after the API server answers 429, then gradually more again.

A 429 is no fault of the object in question. Sending as many requests again after Retry-After gets more 429s, and a
back-off per object makes the unlucky ones wait for minutes. So each 429 halves the limit, down to one. Each other
answer raises it a little: as many answers as the limit raise it by one.
"""

import asyncio
from collections import deque
from types import TracebackType
from typing import Self


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
