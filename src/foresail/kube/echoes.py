"""Holds a key back until the watches have brought what was just written for it.

A look before that would see the past: it would write the same again, be refused for its old version, and back off.
Under load the echo of a write comes later than its answer, so without this a thousand new parents took 2.8 writes
each, of which two are needed. It is an economy and no guarantee: a write that no watch shows, for a selector may
leave it out, holds its key for a moment only.
"""

import asyncio
import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from foresail.kube.reflector import Interest
from foresail.plan import Key, Kind

_LONGEST = 1.0  # seconds


@dataclass(frozen=True, slots=True)
class Written:
    """An object was written, and has that version since."""

    kind: Kind
    version: int
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Held:
    key: Key
    missing: int


class Echoes:
    """Knows how far each watch has read; `give_back` is called with each key that was held.

    A kind may be watched twice with different selectors: what one of the two has read says nothing about the other.
    """

    def __init__(self, watched: Iterable[Interest[Any, Any]], give_back: Callable[[Key], None]) -> None:
        self._watched = tuple(watched)
        self._reached = [0] * len(self._watched)
        self._awaited: list[list[tuple[int, int, _Held]]] = [[] for _ in self._watched]
        self._order = count()  # of two that wait for the same version, neither is the smaller
        self._give_back = give_back

    def hold(self, key: Key, written: Iterable[Written]) -> None:
        """Give a key back when the watches have reached what was written for it: at once, if they have."""
        ahead = [
            (number, each.version)
            for each in written
            for number, interest in enumerate(self._watched)
            if each.version > self._reached[number] and _shows(interest, each)
        ]
        if not ahead:
            self._give_back(key)
            return
        held = _Held(key, len(ahead))
        for number, version in ahead:
            heapq.heappush(self._awaited[number], (version, next(self._order), held))
        asyncio.get_running_loop().call_later(_LONGEST, self._give_up, held)

    def reached(self, watch: int, version: int) -> None:
        """Take in how far a watch has read, by its place among the watched."""
        self._reached[watch] = version
        awaited = self._awaited[watch]
        while awaited and awaited[0][0] <= version:
            held = heapq.heappop(awaited)[2]
            held.missing -= 1
            if held.missing == 0:  # not below: then it was given up before
                self._give_back(held.key)

    def _give_up(self, held: _Held) -> None:
        if held.missing > 0:
            held.missing = 0
            self._give_back(held.key)


def _shows(interest: Interest[Any, Any], written: Written) -> bool:
    """Whether a watch will bring what was written."""
    is_there = interest.kind == written.kind and interest.namespace in ("", written.namespace)
    return is_there and interest.selects(written.labels)
