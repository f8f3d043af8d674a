"""Which checks of a tenant's namespace are the oldest: those that its policy serves."""

from bisect import bisect_left, insort
from datetime import datetime

from foresail.plan import Key
from foresail.proof.checks.observe import CheckRow

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
