"""Starts of tenants' checks that the store does not have yet: a check may be gone before the watch shows its start."""

from collections.abc import Iterator
from datetime import datetime

from foresail.plan import Key
from foresail.proof.checks.observe import OwnedObject


class Starts:
    """What counts as started already, each until the store has it or it counts no more."""

    def __init__(self) -> None:
        self._started: dict[Key, tuple[OwnedObject, datetime]] = {}

    def add(self, start: OwnedObject, now: datetime, until: datetime) -> None:
        """Count a start, and forget those that count no more."""
        self._started = {key: each for key, each in self._started.items() if each[1] > now}
        self._started[start.key] = start, until

    def remove(self, key: Key) -> None:
        """Forget a start that the store has."""
        self._started.pop(key, None)

    def of(self, namespace: str) -> Iterator[OwnedObject]:
        """Return the starts of the checks of a namespace."""
        return (start for start, _ in self._started.values() if start.check_namespace == namespace)
