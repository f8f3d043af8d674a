"""The requests of each namespace that wait for quota, oldest first."""

from bisect import bisect_left, insort
from datetime import datetime

from foresail.plan import Key

Order = tuple[datetime, Key]


class QuotaQueue:
    """Keeps waiting requests in order, so that the first few cost the same however many wait."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Order]] = {}  # by namespace
        self._created: dict[Key, datetime] = {}

    def __len__(self) -> int:
        return len(self._created)

    def enter(self, key: Key, created: datetime) -> None:
        """Add a request, unless it waits already."""
        if key not in self._created:
            self._created[key] = created
            insort(self._waiting.setdefault(key.namespace, []), (created, key))

    def leave(self, key: Key) -> None:
        """Remove a request that does not wait any more."""
        created = self._created.pop(key, None)
        if created is None:
            return
        waiting = self._waiting[key.namespace]
        del waiting[bisect_left(waiting, (created, key))]
        if not waiting:
            del self._waiting[key.namespace]

    def earlier(self, key: Key) -> int:
        """Return how many requests of its namespace are before one; 0 if it does not wait."""
        created = self._created.get(key)
        return 0 if created is None else bisect_left(self._waiting[key.namespace], (created, key))

    def first(self, namespace: str, count: int) -> list[Key]:
        """Return the oldest requests of a namespace."""
        return [key for _, key in self._waiting.get(namespace, ())[:count]]
