"""How many requests are under way at once: fewer when the API server says that they are too many, then more again.

A refusal as one too many is no fault of the object that it was about. Whoever sends as many again after Retry-After
is refused again, and with a back-off for each object the unlucky ones wait for minutes. So the answer to a refusal is
to send fewer at once, half as many each time and never less than one; and to each request that is let through a
little more, so that as many as there are now, all let through, make room for one.
"""

import asyncio
from collections import deque
from types import TracebackType
from typing import Self


class Places:
    """Places for requests, taken with `async with` and given in the order in which they were asked for."""

    __slots__ = ("_most", "_number", "_taken", "_waiting")

    def __init__(self, most: int) -> None:
        self._most = most
        self._number = float(most)
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def number(self) -> int:
        """How many places there are now."""
        return int(self._number)

    def refused(self) -> None:
        """Take back half of the places: a request was one too many."""
        self._number = max(1.0, self._number / 2)

    def admitted(self) -> None:
        """Give back a part of a place: a request was let through."""
        if self._number < self._most:
            self._number = min(float(self._most), self._number + 1 / self._number)

    async def __aenter__(self) -> Self:
        if self._waiting or self._taken >= self.number:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():  # its place was given to it in the same turn of the loop
                    self._taken -= 1
                    self._give()
                raise
        else:
            self._taken += 1
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._taken -= 1
        self._give()

    def _give(self) -> None:
        while self._waiting and self._taken < self.number:
            turn = self._waiting.popleft()
            if not turn.done():
                self._taken += 1
                turn.set_result(None)
