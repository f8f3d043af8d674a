"""Delays a key until the watches have observed the operator's own writes for it.

An earlier reconcile would decide on old state: it would write the same again, get a conflict, and back off. Under load
a watch delivers a write later than its answer; without this, a thousand new parents took 2.8 writes each, of which two
are needed. This saves requests and guarantees nothing: a key waits for a moment at most, because a watch with a
selector may never deliver the write.
"""

import asyncio
import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from foresail.kube.reflector import WatchSpec
from foresail.plan import Key, Kind

_MAX_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Written:
    """An object that was written, with its new resourceVersion."""

    kind: Kind
    version: int
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Expectation:
    key: Key
    missing: int


class Expectations:
    """Tracks the resourceVersion of each watch; calls `release` with each key whose writes were observed.

    Two watches of one kind with different selectors are tracked apart.
    """

    def __init__(
        self,
        watched: Iterable[WatchSpec[Any, Any]],
        release: Callable[[Key], None],
        on_missing: Callable[[int, int], None] = lambda _watch, _version: None,
    ) -> None:
        self._watched = tuple(watched)
        self._observed = [0] * len(self._watched)
        self._pending: list[list[tuple[int, int, _Expectation]]] = [[] for _ in self._watched]
        self._order = count()  # a tie-breaker for equal versions
        self._release = release
        self._on_missing = on_missing  # called with each watch and the version that it is to deliver

    def expect(self, key: Key, written: Iterable[Written]) -> None:
        """Release a key when the watches have observed what was written for it; at once if they have."""
        ahead = [
            (number, write.version)
            for write in written
            for number, spec in enumerate(self._watched)
            if write.version > self._observed[number] and _delivers(spec, write)
        ]
        if not ahead:
            self._release(key)
            return
        expectation = _Expectation(key, len(ahead))
        for number, version in ahead:
            self._on_missing(number, version)
            heapq.heappush(self._pending[number], (version, next(self._order), expectation))
        asyncio.get_running_loop().call_later(_MAX_SECONDS, self._expire, expectation)

    def observed(self, watch: int, version: int) -> None:
        """Record the resourceVersion that a watch has reached, by its index."""
        self._observed[watch] = version
        pending = self._pending[watch]
        while pending and pending[0][0] <= version:
            expectation = heapq.heappop(pending)[2]
            expectation.missing -= 1
            if expectation.missing == 0:  # below 0: it expired before
                self._release(expectation.key)

    def _expire(self, expectation: _Expectation) -> None:
        if expectation.missing > 0:
            expectation.missing = 0
            self._release(expectation.key)


def _delivers(spec: WatchSpec[Any, Any], written: Written) -> bool:
    """Whether a watch delivers what was written; with a field selector that is not known."""
    in_scope = spec.kind == written.kind and spec.namespace in ("", written.namespace) and not spec.fields
    return in_scope and spec.selects(written.labels)
