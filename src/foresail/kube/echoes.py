"""Holds a key back until the watches have brought what was just written for it.

A look before that would see the past: it would write the same again, be refused for its old version, and back off.
Under load the echo of a write comes later than its answer, so without this a thousand new parents took 2.8 writes
each, of which two are needed. It is an economy and no guarantee: a write that no watch shows, for a selector may
leave it out, holds its key for a moment only.
"""

import asyncio
import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count

from foresail.plan import Key, Kind

_LONGEST = 1.0  # seconds


@dataclass(frozen=True, slots=True)
class Written:
    """An object of that kind was written, and has that version since."""

    kind: Kind
    version: int


@dataclass(slots=True)
class _Held:
    key: Key
    missing: int


class Echoes:
    """Knows how far each watched kind has been read; `give_back` is called with each key that was held."""

    def __init__(self, watched: Iterable[Kind], give_back: Callable[[Key], None]) -> None:
        self._reached = dict.fromkeys(watched, 0)
        self._awaited: dict[Kind, list[tuple[int, int, _Held]]] = {kind: [] for kind in self._reached}
        self._order = count()  # of two that wait for the same version, neither is the smaller
        self._give_back = give_back

    def hold(self, key: Key, written: Iterable[Written]) -> None:
        """Give a key back when the watches have reached what was written for it: at once, if they have."""
        ahead = [each for each in written if each.version > self._reached.get(each.kind, each.version)]
        if not ahead:
            self._give_back(key)
            return
        held = _Held(key, len(ahead))
        for each in ahead:
            heapq.heappush(self._awaited[each.kind], (each.version, next(self._order), held))
        asyncio.get_running_loop().call_later(_LONGEST, self._give_up, held)

    def reached(self, kind: Kind, version: int) -> None:
        """Take in how far a kind has been read."""
        self._reached[kind] = version
        awaited = self._awaited[kind]
        while awaited and awaited[0][0] <= version:
            held = heapq.heappop(awaited)[2]
            held.missing -= 1
            if held.missing == 0:  # not below: then it was given up before
                self._give_back(held.key)

    def _give_up(self, held: _Held) -> None:
        if held.missing > 0:
            held.missing = 0
            self._give_back(held.key)
