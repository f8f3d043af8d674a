"""Counts requests to the API server and measures the time until their answers begin."""

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable
from typing import Protocol, TypeVar

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
