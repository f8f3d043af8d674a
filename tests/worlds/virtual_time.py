"""Time that jumps: when nothing is left to do now, it is already the instant of the next timer."""

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")
# What a turn of the event loop takes at least. Were it nothing, a timer of this very instant would never be due once
# the loop's resolution of a nanosecond is lost in the rounding of a large time.
_TURN = 1e-6
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


class StandstillError(RuntimeError):
    """Everything waits, and no timer will ever end the wait."""


class _Jumping(selectors.SelectSelector):
    """Instead of waiting for a time, lets it have passed."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout == 0:  # there is work: nobody need ask the system for more
            self.now += _TURN
            return []
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise StandstillError("every task waits for another")
            self.now += max(timeout, 0.0)
        self.now += _TURN
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose seconds last as long as the work in them; the order of all timers is kept."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


class WallClock:
    """The time of day in a world: moves with the loop, and can be set like any clock on a wall."""

    def __init__(self, beginning: datetime = BEGINNING) -> None:
        self._beginning = beginning

    def __call__(self) -> datetime:
        return self._beginning + timedelta(seconds=asyncio.get_running_loop().time())

    def step(self, by: timedelta) -> None:
        """Set the clock forward or back; no timer of the event loop notices."""
        self._beginning += by


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
