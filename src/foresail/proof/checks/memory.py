"""What the controller of checks remembers beside its stores: the ages of checks, and starts."""

from bisect import bisect_left, insort
from collections.abc import Iterator
from datetime import datetime

from foresail.plan import Key
from foresail.proof.checks.rows import CheckRow, OwnedObject

_Age = tuple[datetime, str]


class Ages:
    """The checks of each namespace in the order of their ages, of equals by name, but those that are being deleted.

    A tenant may have thousands that are not served, so nothing walks through them.
    """

    def __init__(self) -> None:
        self._ordered: dict[str, list[_Age]] = {}

    def learn(self, namespace: str, old: CheckRow | None, new: CheckRow | None) -> None:
        """Note a check that came, changed or is deleted."""
        before = _counted(old)
        after = _counted(new)
        if before == after:
            return
        ordered = self._ordered.setdefault(namespace, [])
        if before is not None:
            del ordered[bisect_left(ordered, before)]
        if after is not None:
            insort(ordered, after)
        if not ordered:
            del self._ordered[namespace]

    def rank(self, check: CheckRow) -> int:
        """Return how many checks of the namespace are older."""
        return bisect_left(self._ordered.get(check.key.namespace, ()), _age(check))

    def oldest(self, namespace: str, most: int) -> list[Key]:
        """Return the oldest checks of a namespace."""
        return [Key(namespace, name) for _, name in self._ordered.get(namespace, ())[:most]]


def has_place(row: CheckRow | None) -> bool:
    """Whether a check counts among those of its namespace: it exists, and is not being deleted."""
    return row is not None and not row.is_terminating


def _age(row: CheckRow) -> _Age:
    return row.created, row.key.name


def _counted(row: CheckRow | None) -> _Age | None:
    return _age(row) if row is not None and has_place(row) else None


class Starts:
    """What counts as started already, each until the store has it or it counts no more."""

    def __init__(self) -> None:
        self._started: dict[Key, tuple[OwnedObject, datetime]] = {}

    def add(self, start: OwnedObject, now: datetime, until: datetime) -> None:
        """Count a start, and forget those that count no more."""
        self._started = {key: started for key, started in self._started.items() if started[1] > now}
        self._started[start.key] = start, until

    def remove(self, key: Key) -> None:
        """Forget a start that the store has."""
        self._started.pop(key, None)

    def of(self, namespace: str) -> Iterator[OwnedObject]:
        """Return the starts of the checks of a namespace."""
        return (start for start, _ in self._started.values() if start.check_namespace == namespace)
