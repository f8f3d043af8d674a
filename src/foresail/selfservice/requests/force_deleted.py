"""Backups deleted by force: their data stays in the bucket, so they count until Velero has really lost them."""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush

import msgspec

from foresail.api import velero
from foresail.api.instants import instant, stamp
from foresail.plan import Key
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests.rules import has_nacuuid
from foresail.selfservice.requests.status import DELETING, IN_DELETION
from foresail.selfservice.rows.locations import LocationRow
from foresail.selfservice.rows.requests import RequestRow, Status
from foresail.selfservice.rows.velero import VeleroRow, glimpse

SYNC_MARGIN = timedelta(seconds=30)
"""A sync that ends this long after the deletion began after it; it also covers small differences of clocks."""

COLLECTION_MARGIN = timedelta(hours=1)
"""Velero's sync brings back what has expired, for Velero collects it once an hour."""

_MOST_STALE = 64  # instants of backups that are forgotten
_WITHOUT_DATA = velero.WAITING | {"ReadyToStart", velero.FAILED_VALIDATION}


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    storage_location: str = ""


_spec = msgspec.json.Decoder(_Spec)


def forced_at(status: Status) -> datetime | None:
    """Return when the Velero objects of a request were deleted by force; None if they were not."""
    condition = status.condition(IN_DELETION)
    if condition is None or condition.reason != Reason.FORCE_DELETED:
        return None
    return instant(condition.last_transition_time)


def is_busy(row: VeleroRow | None) -> bool:
    """Whether Velero works on a backup: deleted now, it would still write its data."""
    return row is not None and not row.is_terminal and row.phase not in _WITHOUT_DATA


def may_have_data(request: RequestRow, row: VeleroRow | None) -> bool:
    """Whether the bucket may still contain data of a backup, by Velero's last status."""
    phase = row.phase if row is not None else glimpse(request.status.velero.mirror).phase
    return has_nacuuid(request) and phase not in _WITHOUT_DATA


def location_of(status: Status, locations: Iterable[LocationRow]) -> tuple[str, LocationRow | None]:
    """Return the name of the storage location of a backup, and the location; None if it does not exist."""
    rows = {row.name: row for row in locations}
    try:
        named = _spec.decode(status.velero.spec).storage_location
    except msgspec.DecodeError:
        named = ""
    name = velero.resolve_location(named, (row.name for row in rows.values() if row.is_default))
    return name, rows.get(name)


def is_lost(status: Status, locations: Iterable[LocationRow], now: datetime | None = None) -> bool:
    """Whether Velero cannot sync a backup back: collected, its location deleted, or not found by a sync."""
    collected = collected_at(status)
    since = forced_at(status)
    _, location = location_of(status, locations)
    if location is None or not location.is_synced or (now is not None and collected is not None and collected <= now):
        return True
    return since is not None and location.last_synced is not None and location.last_synced >= since + SYNC_MARGIN


def collected_at(status: Status) -> datetime | None:
    """Return when Velero has collected a backup that it may bring back; None if it does not expire."""
    expires = glimpse(status.velero.mirror).expiration
    return None if expires is None else expires + COLLECTION_MARGIN


def message(request: RequestRow, locations: Iterable[LocationRow], *, is_back: bool) -> str:
    """Return what a tenant reads while a backup that was deleted by force still counts."""
    name, _ = location_of(request.status, locations)
    collected = collected_at(request.status)
    until = f" until {stamp(collected)}" if collected is not None else ""
    if is_back:
        return f"Data is still in storage location {name} and counts{until}; set spec.deleteBackup to true to delete it"
    return f"Force-deleted; counts as stored until Velero syncs storage location {name}"


class ForceDeletedBackups:
    """Backups deleted by force that Velero may still bring back, with their last known status."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Key, Status]] = {}
        self._here: dict[str, set[str]] = {}  # by namespace
        self._collecting: list[tuple[datetime, str]] = []  # a heap

    def take(self, name: str, row: RequestRow) -> None:
        """Record a request whose backup is deleted by force."""
        has_data = forced_at(row.status) is not None or may_have_data(row, None)
        if row.is_to_be_forced and row.status.phase == DELETING and has_data:
            collected = collected_at(row.status)
            if collected is not None and collected != self._collected(name):
                heappush(self._collecting, (collected, name))
            self._known[name] = row.key, row.status
            self._shorten()
            self._here.setdefault(row.key.namespace, set()).add(name)

    def names(self, namespace: str) -> Collection[str]:
        """Return the Velero Backups of a namespace that may come back."""
        return self._here.get(namespace, ())

    def forget(self, name: str) -> None:
        """Forget a backup that Velero no longer has."""
        key, _ = self._known.pop(name, (None, None))
        if key is not None:
            here = self._here[key.namespace]
            here.discard(name)
            if not here:
                del self._here[key.namespace]

    def leave(self, namespace: str) -> None:
        """Forget what was of a namespace that is deleted."""
        for name in list(self.names(namespace)):
            self.forget(name)

    def forget_collected(self, now: datetime) -> list[Key]:
        """Forget what Velero has collected, which no sync need say, and return the requests that it was of."""
        keys: list[Key] = []
        while self._collecting and self._collecting[0][0] <= now:
            collected, name = heappop(self._collecting)
            if collected == self._collected(name):
                keys.append(self._known[name][0])
                self.forget(name)
        return keys

    def _collected(self, name: str) -> datetime | None:
        _, status = self._known.get(name, (None, None))
        return None if status is None else collected_at(status)

    def _shorten(self) -> None:
        """Drop the instants of backups that are forgotten, once they are the most."""
        if len(self._collecting) > _MOST_STALE + 2 * len(self._known):
            collected = ((self._collected(name), name) for name in self._known)
            self._collecting = [(at, name) for at, name in collected if at is not None]
            heapify(self._collecting)

    def forget_if_lost(self, name: str, locations: Iterable[LocationRow]) -> Key | None:
        """Forget a backup if Velero has lost it, and return the request that it was of."""
        key, status = self._known.get(name, (None, None))
        if key is None or status is None or not is_lost(_timed(status), locations):
            return None
        self.forget(name)
        return key

    def forget_lost(self, locations: Iterable[LocationRow]) -> Iterable[Key]:
        """Forget what Velero has lost, and return the requests that it was of."""
        rows = tuple(locations)
        keys = (self.forget_if_lost(name, rows) for name in list(self._known))
        return [key for key in keys if key is not None]


def _timed(status: Status) -> Status:
    """Count a status as forced from the start of its deletion: its request may be deleted before that is reported."""
    condition = status.condition(IN_DELETION)
    if condition is None or condition.reason == Reason.FORCE_DELETED:
        return status
    forced = msgspec.structs.replace(condition, reason=Reason.FORCE_DELETED.value)
    return msgspec.structs.replace(status, conditions=(forced,))
