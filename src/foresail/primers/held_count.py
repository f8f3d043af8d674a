"""How many placeholders hold capacity: only with a known owner, and no namespace exhausts the limit of the cluster."""

from collections import Counter
from typing import NamedTuple, Protocol, TypeVar

from foresail.primers.rows import PlaceholderRow

_Counted = TypeVar("_Counted")


class Owner(NamedTuple):
    """A Primer, or a CronJob with annotations: its namespace and its UID."""

    namespace: str
    uid: str


class _Owning(Protocol):
    @property
    def uid(self) -> str: ...


class HeldCount:
    """Counts the placeholders of known owners, by namespace and in the cluster, as changes come in.

    Anyone who may create pods in a namespace can forge one. So no namespace counts for more than its own limit.
    """

    def __init__(self, max_per_namespace: int) -> None:
        self.in_cluster = 0
        self._max_per_namespace = max_per_namespace
        self._in_namespace: Counter[str] = Counter()
        self._by_owner: Counter[Owner] = Counter()
        self._owners = set[Owner]()

    def in_namespace(self, namespace: str) -> int:
        """Return how many hold capacity in a namespace."""
        return self._in_namespace[namespace]

    def learn_placeholder(self, old: PlaceholderRow | None, new: PlaceholderRow | None) -> None:
        """Take in the change of a placeholder."""
        for row, change in ((old, -1), (new, 1)):
            if row is not None and _counts(row):
                owner = _owner_of(row)
                _add(self._by_owner, owner, change)
                if owner in self._owners:
                    self._count(owner.namespace, change)

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

    def is_owned(self, row: PlaceholderRow) -> bool:
        """Whether the owner of a placeholder is known in its namespace."""
        return _owner_of(row) in self._owners

    def _count(self, namespace: str, change: int) -> None:
        before = min(self._in_namespace[namespace], self._max_per_namespace)
        _add(self._in_namespace, namespace, change)
        self.in_cluster += min(self._in_namespace[namespace], self._max_per_namespace) - before


def _owner_of(row: PlaceholderRow) -> Owner:
    """Return who owns a placeholder, as its mark has it."""
    return Owner(row.key.namespace, row.primer_uid)


def _counts(row: PlaceholderRow) -> bool:
    return row.holds and bool(row.primer_uid and row.target_uid) and row.fire is not None


def _add(counter: Counter[_Counted], key: _Counted, change: int) -> None:
    counter[key] += change
    if not counter[key]:
        del counter[key]
