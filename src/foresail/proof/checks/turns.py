"""Whose turn it is: one check of all tenants runs at a time, and their namespaces take turns."""

from foresail.plan import Key

_AHEAD = 100
"""How far a namespace without a turn so far is ahead, in arrivals and turns: new ones without end block nobody."""


class Turns:
    """The checks of tenants that wait: first those of namespaces that had a turn least lately, then by arrival."""

    def __init__(self) -> None:
        self.taken: Key | None = None
        """The check that starts; once its status reports the run, the store has it."""
        self._waiting: dict[Key, int] = {}
        self._served: dict[str, int] = {}
        self._count = 0
        self._first: Key | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def first(self) -> Key | None:
        """The check whose turn is next."""
        if self._first is None and self._waiting:
            self._first = min(self._waiting, key=self._order)
        return self._first

    def is_free(self, key: Key, *, is_busy: bool) -> bool:
        """Whether a check may start: no other one runs, and none comes before it."""
        if is_busy or self.taken not in (None, key):
            return False
        first = self.first
        return first is None or first == key or (key not in self._waiting and self._order(key) < self._order(first))

    def wait(self, key: Key) -> None:
        """Note that a check waits."""
        if key in self._waiting:
            return
        self._count += 1
        self._waiting[key] = self._count
        if self._first is not None and self._order(key) < self._order(self._first):
            self._first = key

    def leave(self, key: Key) -> None:
        """Forget that a check waits."""
        if self._waiting.pop(key, None) is not None and key == self._first:
            self._first = None

    def take(self, key: Key) -> None:
        """Reserve the turn for a check that starts."""
        self.taken = key
        self._count += 1
        self._served[key.namespace] = self._count
        self.leave(key)
        self._first = None  # its namespace comes last now

    def release(self, key: Key) -> None:
        """Release the turn of a check that did not start, or whose run is observed."""
        if self.taken == key:
            self.taken = None

    def _order(self, key: Key) -> tuple[int, int]:
        arrived = self._waiting.get(key, self._count + 1)
        return self._served.get(key.namespace, arrived - _AHEAD), arrived
