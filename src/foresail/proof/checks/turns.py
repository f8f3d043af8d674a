"""Whose turn it is: few checks of all tenants run at a time, one of a namespace, and their namespaces take turns."""

from bisect import bisect_left, insort
from collections.abc import Collection, Iterator
from itertools import islice

from foresail.plan import Key

AT_ONCE = 4
"""Checks of tenants that run at a time by default. Velero restores one after the other, so more only wait there."""

_AHEAD = 100
"""How far a namespace without a turn so far is ahead, in arrivals and turns: new ones without end block nobody."""


class Turns:
    """The checks of tenants that wait: first those of namespaces that had a turn least lately, then by arrival."""

    def __init__(self, most: int = AT_ONCE) -> None:
        self.taken: set[Key] = set()
        """The checks that start; once the status of one reports the run, the store has it."""
        self._most = most
        self._waiting: dict[str, dict[Key, int]] = {}  # by namespace, in the order of their arrival
        self._line: list[tuple[tuple[int, int], str]] = []  # the namespaces that wait, in their order
        self._served: dict[str, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    @property
    def next(self) -> list[Key]:
        """The checks whose turns are next, if their namespaces have none now: enough for every turn there is."""
        return [next(iter(self._waiting[namespace])) for _, namespace in islice(self._line, 2 * self._most)]

    def is_free(self, key: Key, running: Collection[Key] = ()) -> bool:
        """Whether a check may start: there is room beside those that run, and it is among the next for it."""
        busy = ({*running} | self.taken) - {key}
        room = self._most - len(busy)
        namespaces = {check.namespace for check in busy}
        if room <= 0 or key.namespace in namespaces:
            return False
        own = self._waiting.get(key.namespace)
        if own and next(iter(own)) != key:
            return False  # another of its namespace came first
        mine = self._order(key.namespace)
        ahead = islice(self._ahead(mine, namespaces), room)
        return sum(1 for _ in ahead) < room

    def wait(self, key: Key) -> None:
        """Note that a check waits."""
        own = self._waiting.setdefault(key.namespace, {})
        if key in own:
            return
        self._count += 1
        own[key] = self._count
        if len(own) == 1:
            insort(self._line, (self._order(key.namespace), key.namespace))

    def leave(self, key: Key) -> None:
        """Forget that a check waits."""
        own = self._waiting.get(key.namespace, {})
        if key not in own:
            return
        self._remove(key.namespace)
        del own[key]
        if own:
            insort(self._line, (self._order(key.namespace), key.namespace))
        else:
            del self._waiting[key.namespace]

    def take(self, key: Key) -> None:
        """Reserve a turn for a check that starts; its namespace comes last now."""
        self.taken.add(key)
        self.leave(key)
        self._count += 1
        is_waiting = key.namespace in self._waiting
        if is_waiting:
            self._remove(key.namespace)
        self._served[key.namespace] = self._count
        if is_waiting:
            insort(self._line, (self._order(key.namespace), key.namespace))

    def release(self, key: Key) -> None:
        """Release the turn of a check that did not start, or whose run is observed."""
        self.taken.discard(key)

    def _remove(self, namespace: str) -> None:
        entry = self._order(namespace), namespace
        del self._line[bisect_left(self._line, entry)]

    def _ahead(self, order: tuple[int, int], busy: Collection[str]) -> Iterator[str]:
        """Yield the namespaces that wait before an order, and have no turn now."""
        for other, namespace in self._line:
            if other >= order:
                return
            if namespace not in busy:
                yield namespace

    def _order(self, namespace: str) -> tuple[int, int]:
        """Return the order of the first check of a namespace, or of one that would come now."""
        own = self._waiting.get(namespace)
        arrived = next(iter(own.values())) if own else self._count + 1
        return self._served.get(namespace, arrived - _AHEAD), arrived
