"""A store of the objects of one kind: flat rows with only what decisions need, and declared indexes."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

import msgspec

from foresail.plan import Key

Row = TypeVar("Row")
Indexer = Callable[[Row], Iterable[Hashable]]
"""Returns the index values of a row."""


_Keys = Key | tuple[Key, ...] | set[Key]
"""The keys under a value: most values have one, which is stored as it is, and a set of ten takes five times as much."""

_FEW = 16
STALE_SECONDS = 300.0  # an older store makes the process unready, and nothing is deleted because of it


def _is_new() -> float:
    return 0.0


class Unreadable(msgspec.Struct, frozen=True):
    """An object that cannot be decoded into the type of its kind."""

    key: Key
    uid: str
    problem: str
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)


class Store(Generic[Row]):
    """Rows by key and by the values of the declared indexes; no lookup scans all rows.

    An unreadable object has no row, not even its last readable one, because decisions would take that as current. It is
    in `unread` instead, so that code that acts on absence, such as a cleanup, can tell that the object still exists.
    """

    __slots__ = ("_found", "_indexers", "_rows", "age", "is_served", "unread")

    def __init__(self, indexes: Mapping[str, Indexer[Row]] | None = None) -> None:
        self.unread: dict[Key, Unreadable] = {}  # objects that exist and cannot be decoded
        self.is_served = True  # False if the API server does not serve this optional kind
        self.age: Callable[[], float] = _is_new  # seconds since it was last confirmed, as its watch says
        self._indexers = dict(indexes or {})
        self._rows: dict[Key, Row] = {}
        self._found: dict[str, dict[Hashable, _Keys]] = {name: {} for name in self._indexers}

    @property
    def is_stale(self) -> bool:
        """Whether what it has may long be otherwise: whoever deletes something waits."""
        return self.age() > STALE_SECONDS

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: Key) -> bool:
        return key in self._rows

    def __iter__(self) -> Iterator[Key]:
        return iter(self._rows)

    def get(self, key: Key) -> Row | None:
        """Return the row of a key."""
        return self._rows.get(key)

    def rows(self) -> Iterable[Row]:
        """Return all rows; not for use in a reconcile."""
        return self._rows.values()

    def by(self, index: str, value: Hashable) -> list[Row]:
        """Return the rows that an index has under a value, in the order of their keys."""
        keys = self._found[index].get(value)
        if keys is None:
            return []
        if isinstance(keys, Key):
            return [self._rows[keys]]
        return [self._rows[key] for key in sorted(keys)]

    def count(self, index: str, value: Hashable) -> int:
        """Return how many rows an index has under a value."""
        keys = self._found[index].get(value)
        if keys is None:
            return 0
        return 1 if isinstance(keys, Key) else len(keys)

    def put(self, key: Key, row: Row) -> Row | None:
        """Store a row and return the old one; an equal row keeps the old object.

        After a relist nearly all rows are unchanged. Replacing them would fragment the memory, and duplicate keys and
        strings that the store and its indexes already hold.
        """
        old = self._rows.get(key)
        if old is not None and old == row:
            return old
        self._rows[key] = row
        for name, values_of in self._indexers.items():
            before = set(values_of(old)) if old is not None else set()
            after = set(values_of(row))
            for value in before - after:
                self._forget(name, value, key)
            for value in after - before:
                self._note(name, value, key)
        return old

    def remove(self, key: Key) -> Row | None:
        """Remove a row and return it."""
        old = self._rows.pop(key, None)
        if old is not None:
            for name, values_of in self._indexers.items():
                for value in set(values_of(old)):
                    self._forget(name, value, key)
        return old

    def _note(self, name: str, value: Hashable, key: Key) -> None:
        keys = self._found[name]
        known = keys.get(value)
        if known is None:
            keys[value] = key
        elif isinstance(known, set):
            known.add(key)
        elif isinstance(known, Key):
            keys[value] = (known, key)
        else:
            keys[value] = (*known, key) if len(known) < _FEW else {*known, key}

    def _forget(self, name: str, value: Hashable, key: Key) -> None:
        keys = self._found[name]
        known = keys[value]
        if isinstance(known, Key):
            del keys[value]
            return
        if isinstance(known, set):
            known.discard(key)
        else:
            known = keys[value] = tuple(other for other in known if other != key)
        if len(known) == 1:
            (keys[value],) = known
