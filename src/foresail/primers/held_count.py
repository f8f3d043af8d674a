"""For how many pods capacity is held: only with a known owner, and no namespace exhausts the limit of the cluster."""

from collections import Counter
from typing import NamedTuple, Protocol, TypeVar

from foresail.primers.buffer_rows import BufferRow
from foresail.primers.rows import PlaceholderRow

_Counted = TypeVar("_Counted")
_Holding = PlaceholderRow | BufferRow


class Owner(NamedTuple):
    """A Primer, or a CronJob with annotations: its namespace and its UID."""

    namespace: str
    uid: str


class _Owning(Protocol):
    @property
    def uid(self) -> str: ...


class HeldCount:
    """Counts the pods of placeholders and buffers with known owners, by namespace and in the cluster.

    Anyone who may create them in a namespace can forge one. So no namespace counts for more than its own limit.
    """

    def __init__(self, max_per_namespace: int) -> None:
        self.in_cluster = 0
        self._max_per_namespace = max_per_namespace
        self._in_namespace: Counter[str] = Counter()
        self._by_owner: Counter[Owner] = Counter()
        self._owners = set[Owner]()

    def in_namespace(self, namespace: str) -> int:
        """Return for how many pods capacity is held in a namespace."""
        return self._in_namespace[namespace]

    def learn(self, old: _Holding | None, new: _Holding | None) -> None:
        """Take in the change of a placeholder or of a buffer."""
        for row, sign in ((old, -1), (new, 1)):
            held = _held_by(row) if row is not None else 0
            if row is not None and held:
                owner = _owner_of(row)
                _add(self._by_owner, owner, sign * held)
                if owner in self._owners:
                    self._count(owner.namespace, sign * held)

    def learn_owner(self, namespace: str, old: _Owning | None, new: _Owning | None) -> None:
        """Take in the change of a Primer or of a CronJob."""
        if old is not None and new is not None and old.uid == new.uid:
            return
        if old is not None and (owner := Owner(namespace, old.uid)) in self._owners:
            self._owners.discard(owner)
            self._count(namespace, -self._by_owner[owner])
        if new is not None and (owner := Owner(namespace, new.uid)) not in self._owners:
            self._owners.add(owner)
            self._count(namespace, self._by_owner[owner])

    def is_owned(self, row: _Holding) -> bool:
        """Whether the owner of a placeholder or of a buffer is known in its namespace."""
        return _owner_of(row) in self._owners

    def _count(self, namespace: str, change: int) -> None:
        before = min(self._in_namespace[namespace], self._max_per_namespace)
        _add(self._in_namespace, namespace, change)
        self.in_cluster += min(self._in_namespace[namespace], self._max_per_namespace) - before


def _owner_of(row: _Holding) -> Owner:
    """Return the owner by the mark."""
    return Owner(row.key.namespace, row.primer_uid)


def _held_by(row: _Holding) -> int:
    """Return for how many pods a row holds capacity; none without a whole mark."""
    if not (row.primer_uid and row.target_uid) or row.fire is None:
        return 0
    if isinstance(row, BufferRow):
        return row.replicas if row.is_live else 0
    return int(row.holds)


def _add(counter: Counter[_Counted], key: _Counted, change: int) -> None:
    counter[key] += change
    if not counter[key]:
        del counter[key]
