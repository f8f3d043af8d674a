"""How many backups each namespace has: what is in Velero's namespace, and what is about to be.

The same backup is claimed twice on its way: by a request that has been accepted, and by Velero's object once it is
seen. It counts once, from the moment of the decision on: two requests that are decided one after the other can never
both get the last place.
"""


class Places:
    """Counts without going through anything: every question is answered from sizes."""

    def __init__(self) -> None:
        self._stored: dict[str, dict[str, bool]] = {}  # by the namespace's UID: names, and whether they are active
        self._active: dict[str, int] = {}
        self._promised: dict[str, set[str]] = {}  # by the namespace's name: what has been accepted and is not seen

    def stored(self, uid: str, namespace: str, but: str) -> int:
        """Return how many backups a namespace has, one left out."""
        held = self._stored.get(uid, {})
        return len(held) - (but in held) + len(self._unseen(uid, namespace, but))

    def active(self, uid: str, namespace: str, but: str) -> int:
        """Return how many of them Velero has not finished, one left out."""
        held = self._stored.get(uid, {})
        return self._active.get(uid, 0) - held.get(but, False) + len(self._unseen(uid, namespace, but))

    def hold(self, uid: str, name: str, *, is_active: bool) -> bool:
        """Take what is known of a Velero Backup; return whether a place has become free by it."""
        held = self._stored.setdefault(uid, {})
        was_active = held.get(name, False)
        held[name] = is_active
        self._active[uid] = self._active.get(uid, 0) + is_active - was_active
        return was_active and not is_active

    def free(self, uid: str, name: str) -> None:
        """Take that a Velero Backup is gone."""
        held = self._stored.get(uid, {})
        if name in held:
            self._active[uid] -= held.pop(name)
            if not held:
                del self._stored[uid], self._active[uid]

    def promise(self, namespace: str, name: str) -> None:
        """Take that a request has been accepted."""
        self._promised.setdefault(namespace, set()).add(name)

    def settle(self, namespace: str, name: str) -> None:
        """Take that a promise has been kept, or that there is nobody any more to keep it to."""
        promised = self._promised.get(namespace)
        if promised is not None:
            promised.discard(name)
            if not promised:
                del self._promised[namespace]

    def _unseen(self, uid: str, namespace: str, but: str) -> set[str]:
        return self._promised.get(namespace, set()) - self._stored.get(uid, {}).keys() - {but}
