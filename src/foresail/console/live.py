"""Whether what a page shows has changed: a digest of the versions of its objects."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256

from foresail.cli.tenant.tenant_request import TenantRequest

ONE, MANY = 2.0, 10.0
"""Seconds between two reads of one object, and at least of a list."""

_REST = 10  # times as long as a list took to read, nothing is read

MOST_STREAMS = 16
"""Pages that one viewer follows at once."""

CHANGED = b"event: changed\ndata:\n\n"
ALIVE = b": alive\n\n"
FIRST = b"retry: 10000\n\n"


def digest(requests: Iterable[TenantRequest]) -> str:
    """Return a text that is another one as soon as one of the objects is."""
    versions = sorted(
        f"{request.request.metadata.uid} {request.request.metadata.resource_version}" for request in requests
    )
    return sha256("\n".join(versions).encode()).hexdigest()[:32]


def pause(took: float, *, is_one: bool) -> float:
    """Return the seconds until the next read, by how long the last one took."""
    return ONE if is_one else max(MANY, _REST * took)


class Streams:
    """Bounds how many pages are followed at once and for how long; a browser then begins a new stream by itself."""

    def __init__(self, most: int, longest: float = float("inf")) -> None:
        self._most, self._longest = most, longest
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
