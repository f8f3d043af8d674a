"""What is known of the objects of one kind: flat rows of only what decisions need, found by declared indexes."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from foresail.plan import Key

Row = TypeVar("Row")
Indexer = Callable[[Row], Iterable[Hashable]]
"""Says under which values a row is found."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object that is not of the shape that its kind should have."""

    key: Key
    uid: str
    problem: str
    labels: Mapping[str, str] = field(default_factory=dict)


class Store(Generic[Row]):
    """Rows by key, and by the values of the declared indexes; no look-up goes through all rows.

    An object that cannot be read has no row, not even the one from when it could be: a decision would take the old
    row for the present, and go on with what the edit was to end. It is in `unread` instead, so that whoever acts on
    an absence, such as by deleting what belonged to it, can tell that the object is not gone.
    """

    __slots__ = ("_found", "_indexers", "_rows", "is_served", "unread")

    def __init__(self, indexes: Mapping[str, Indexer[Row]] | None = None) -> None:
        self.unread: dict[Key, Unreadable] = {}  # what is there now and could not be read
        self.is_served = True  # False once the API server was found not to serve the kind, which only some need not be
        self._indexers = dict(indexes or {})
        self._rows: dict[Key, Row] = {}
        # Most values lead to one row: that one is kept bare, and only several of them in a set.
        self._found: dict[str, dict[Hashable, Key | set[Key]]] = {name: {} for name in self._indexers}

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
        """Return all rows; not for a look at one key of many."""
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
        return 0 if keys is None else 1 if isinstance(keys, Key) else len(keys)

    def put(self, key: Key, row: Row) -> Row | None:
        """Take a row in, and return the one that was there; an equal one stays in its place.

        When everything is read again, nearly all rows are as they were. Exchanged one by one, each would move to
        another place in memory, and bring a key and texts beside those that the store and its indexes hold already.
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
        """Let a row go, and return it."""
        old = self._rows.pop(key, None)
        if old is not None:
            for name, values_of in self._indexers.items():
                for value in set(values_of(old)):
                    self._forget(name, value, key)
        return old

    def _note(self, name: str, value: Hashable, key: Key) -> None:
        found = self._found[name]
        known = found.get(value)
        if known is None:
            found[value] = key
        elif isinstance(known, set):
            known.add(key)
        else:
            found[value] = {known, key}

    def _forget(self, name: str, value: Hashable, key: Key) -> None:
        found = self._found[name]
        known = found[value]
        if isinstance(known, set):
            known.discard(key)
            if len(known) == 1:
                found[value] = known.pop()
        else:
            del found[value]
