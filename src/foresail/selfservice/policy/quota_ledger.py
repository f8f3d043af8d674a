"""How many backups each namespace has: what is in Velero's namespace, and what is about to be.

The same backup is claimed twice on its way: by a request that has been accepted, and by Velero's object once it is
seen. It counts once, from the moment of the decision on: two requests that are decided one after the other can never
both get the last place.
"""

from collections import Counter
from collections.abc import Callable, Collection


class Places:
    """Counts without going through anything: every question is answered from sizes."""

    def __init__(self, lingering: Callable[[str], Collection[str]] = lambda _: ()) -> None:
        self._lingering = lingering  # of a namespace, what was deleted by force and may come back
        self._held: dict[str, str] = {}  # Velero's Backups, and the UID of the namespace that each is of
        self._stored: Counter[str] = Counter()  # by the namespace's UID
        self._active: dict[str, set[str]] = {}  # by the namespace's UID
        self._promised: dict[str, str] = {}  # what has been accepted and is not said to be made, and its namespace
        self._unseen: Counter[str] = Counter()  # by the namespace's name: of what is promised, what is not held

    def stored(self, uid: str, namespace: str, but: str) -> int:
        """Return how many backups a namespace has, one left out."""
        coming = sum(
            name not in self._held and name not in self._promised and name != but for name in self._lingering(namespace)
        )
        return self._stored[uid] - (self._held.get(but) == uid) + self._unseen_of(namespace, but) + coming

    def active(self, uid: str, namespace: str, but: str) -> int:
        """Return how many of them Velero has not finished, one left out."""
        active = self._active.get(uid, ())
        return len(active) - (but in active) + self._unseen_of(namespace, but)

    def usage(self, uid: str, namespace: str) -> tuple[int, int]:
        """Return how many backups a namespace has, and how many of them Velero has not finished.

        A scrape asks this for each namespace, so it takes no detour.
        """
        lingering = self._lingering(namespace)
        coming = sum(name not in self._held and name not in self._promised for name in lingering) if lingering else 0
        unseen = self._unseen.get(namespace, 0)
        return self._stored.get(uid, 0) + unseen + coming, len(self._active.get(uid, ())) + unseen

    def hold(self, uid: str, name: str, *, is_active: bool) -> bool:
        """Take what is known of a Velero Backup; return whether a place has become free by it."""
        if name not in self._held:
            self._held[name] = uid
            self._stored[uid] += 1
            _less(self._unseen, self._promised.get(name))
        was_active = name in self._active.get(uid, ())
        if is_active and not was_active:
            self._active.setdefault(uid, set()).add(name)
        elif was_active and not is_active:
            self._end(uid, name)
        return was_active and not is_active

    def free(self, uid: str, name: str) -> None:
        """Take that a Velero Backup is gone."""
        if self._held.get(name) != uid:
            return
        del self._held[name]
        _less(self._stored, uid)
        self._end(uid, name)
        if name in self._promised:
            self._unseen[self._promised[name]] += 1

    def promise(self, namespace: str, name: str) -> None:
        """Take that a request has been accepted."""
        if name not in self._promised:
            self._promised[name] = namespace
            if name not in self._held:
                self._unseen[namespace] += 1

    def settle(self, namespace: str, name: str) -> bool:
        """Take that a promise has been kept, or will not be; return whether a place has become free by it."""
        if self._promised.pop(name, None) is None or name in self._held:
            return False
        _less(self._unseen, namespace)
        return True

    def _end(self, uid: str, name: str) -> None:
        active = self._active.get(uid, set())
        active.discard(name)
        if not active:
            self._active.pop(uid, None)

    def _unseen_of(self, namespace: str, but: str) -> int:
        is_one = self._promised.get(but) == namespace and but not in self._held
        return self._unseen[namespace] - is_one


def _less(counts: Counter[str], what: str | None) -> None:
    if what is not None:
        counts[what] -= 1
        if not counts[what]:
            del counts[what]
