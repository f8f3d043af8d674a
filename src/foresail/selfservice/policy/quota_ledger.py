"""The quota ledger: how many backups each namespace has in Velero's namespace, and how many are about to be there.

A backup is counted twice on its way: for the accepted request, and for Velero's object once it is observed. It counts
once in total, from the decision on: two requests that are decided one after the other never both get the last quota.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Collection
from datetime import datetime

from foresail.plan import Key


def incoming(name: str) -> str:
    """Return the name under which a restore counts in the namespace that it restores into, beside its own."""
    return f"into/{name}"


class QuotaLedger:
    """Counts backups, or restores, by namespace; every answer comes from sizes."""

    def __init__(self, force_deleted: Callable[[str], Collection[str]] = lambda _: ()) -> None:
        self._force_deleted = force_deleted  # of a namespace, what was deleted by force and may come back
        self._recorded: dict[str, str] = {}  # Velero's Backups, and the UID of the namespace that each is of
        self._stored: Counter[str] = Counter()  # by the namespace's UID
        self._active: dict[str, set[str]] = {}  # by the namespace's UID
        self._reserved: dict[str, str] = {}  # accepted and not reported as created yet, with the namespace
        self._unobserved: Counter[str] = Counter()  # by the namespace's name: reserved and not recorded

    def stored(self, uid: str, namespace: str, but: str) -> int:
        """Return how many backups a namespace has, one left out."""
        coming = sum(
            name not in self._recorded and name not in self._reserved and name != but
            for name in self._force_deleted(namespace)
        )
        return self._stored[uid] - (self._recorded.get(but) == uid) + self._unobserved_of(namespace, but) + coming

    def active(self, uid: str, namespace: str, but: str) -> int:
        """Return how many of them Velero has not finished, one left out."""
        active = self._active.get(uid, ())
        return len(active) - (but in active) + self._unobserved_of(namespace, but)

    def usage(self, uid: str, namespace: str) -> tuple[int, int]:
        """Return how many backups a namespace has, and how many of them Velero has not finished.

        A scrape calls this for each namespace, so it is fast.
        """
        force_deleted = self._force_deleted(namespace)
        coming = (
            sum(name not in self._recorded and name not in self._reserved for name in force_deleted)
            if force_deleted
            else 0
        )
        unseen = self._unobserved.get(namespace, 0)
        return self._stored.get(uid, 0) + unseen + coming, len(self._active.get(uid, ())) + unseen

    def record(self, uid: str, name: str, *, is_active: bool) -> bool:
        """Record a Velero object; return whether quota has become free."""
        if name not in self._recorded:
            self._recorded[name] = uid
            self._stored[uid] += 1
            _less(self._unobserved, self._reserved.get(name))
        was_active = name in self._active.get(uid, ())
        if is_active and not was_active:
            self._active.setdefault(uid, set()).add(name)
        elif was_active and not is_active:
            self._end(uid, name)
        return was_active and not is_active

    def remove(self, uid: str, name: str) -> None:
        """Remove a Velero object that is deleted."""
        if self._recorded.get(name) != uid:
            return
        del self._recorded[name]
        _less(self._stored, uid)
        self._end(uid, name)
        if name in self._reserved:
            self._unobserved[self._reserved[name]] += 1

    def reserve(self, namespace: str, name: str) -> None:
        """Reserve quota for a request that is accepted."""
        if name not in self._reserved:
            self._reserved[name] = namespace
            if name not in self._recorded:
                self._unobserved[namespace] += 1

    def release(self, namespace: str, name: str) -> bool:
        """Release a reservation that was used or will not be; return whether quota has become free."""
        reserved = self._reserved.pop(name, None)
        if reserved is None or name in self._recorded:
            return False
        _less(self._unobserved, reserved)
        return reserved == namespace

    def _end(self, uid: str, name: str) -> None:
        active = self._active.get(uid, set())
        active.discard(name)
        if not active:
            self._active.pop(uid, None)

    def _unobserved_of(self, namespace: str, but: str) -> int:
        is_one = self._reserved.get(but) == namespace and but not in self._recorded
        return self._unobserved[namespace] - is_one


def _less(counts: Counter[str], what: str | None) -> None:
    if what is not None:
        counts[what] -= 1
        if not counts[what]:
            del counts[what]


_Order = tuple[datetime, Key]


class QuotaQueue:
    """Keeps waiting requests in order, so that the first few cost the same however many wait."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[_Order]] = {}  # by namespace
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
