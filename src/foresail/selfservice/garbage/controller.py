"""The controllers of objects without an owner or a namespace: which events concern them, and what is known of them."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import TypeVar

from foresail.api import velero
from foresail.api.nonadmin import NON_ADMIN_LOCATION_REQUEST
from foresail.kube.execute import Outcome, Result
from foresail.kube.reflector import Change
from foresail.plan import Key, Kind, PartKey, Plan
from foresail.selfservice.access.view import PREFIXES
from foresail.selfservice.garbage import dangling
from foresail.selfservice.garbage import decide as garbage
from foresail.selfservice.garbage.dangling import DanglingView
from foresail.selfservice.garbage.decide import GarbageView
from foresail.selfservice.requests.file_requests import file_name
from foresail.selfservice.requests.state import ClusterState, FamilyState
from foresail.selfservice.rows.locations import ApprovalRow, LocationRow, TenantLocationRow
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.velero import DeletionRow, DownloadRequestRow, VeleroRow, location_of
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.records import nacuuid, nacuuid_of

Row = TypeVar("Row")


class Garbage:
    """Finds objects of ours in Velero's namespace that have lost their owner."""

    view = GarbageView
    decide = staticmethod(garbage.decide)

    def __init__(
        self,
        cluster: ClusterState,
        *,
        watches_locations: bool = False,
        removed: Callable[[Kind], None] = lambda _: None,
    ) -> None:
        self._cluster = cluster
        self._watches_locations = watches_locations  # else nobody knows which of them have an owner
        self._removed = removed
        self._find = {
            _part(cluster.restores.family.velero.plural): self._restore,
            _part(_DELETIONS): self._deletion,
            _part(_FILES): self._file,
            _part(_LOCATIONS): self._location,
            _part(_APPROVALS): self._approval,
        }

    @property
    def parts(self) -> Iterable[str]:
        """The kinds of objects, each under its own name."""
        return self._find

    # Events to keys

    def keys_for_request(self, family: FamilyState, change: Change[RequestRow]) -> Iterator[Key]:
        """Return what was made for a request that is deleted."""
        if change.new is None and change.old is not None:
            name = nacuuid(change.old)
            is_restore = family is self._cluster.restores
            yield _key(change.key.namespace, family.family.velero.plural if is_restore else _DELETIONS, name)

    def keys_for_velero(self, family: FamilyState, change: Change[VeleroRow]) -> Iterator[Key]:
        """Return a Restore that is new to us, finished or deleted, and the files about a Backup that is deleted."""
        old = change.old
        new = change.new
        if family is self._cluster.restores:
            row = new or old
            is_news = old is None or new is None or (new.is_terminal and not old.is_terminal)
            if is_news and row is not None and row.owner is not None and row.request_uid:
                yield _key(row.owner.namespace, family.family.velero.plural, row.key.name)
        elif new is None and old is not None:
            for prefix in PREFIXES.values():
                yield _key("", _FILES, file_name(prefix, old.uid))
            yield _key("", _LOCATIONS, location_of(old))

    def keys_for_deletion(self, change: Change[DeletionRow]) -> Iterator[Key]:
        """Return a DeleteBackupRequest that is new to us, in another phase or deleted."""
        old = change.old
        new = change.new
        row = new or old
        is_news = old is None or new is None or old.phase != new.phase
        if is_news and row is not None and row.owner is not None and row.request_uid:
            yield _key(row.owner.namespace, _DELETIONS, row.key.name)

    def keys_for_download_request(self, change: Change[DownloadRequestRow]) -> Iterator[Key]:
        """Return a DownloadRequest about a Backup that is new to us or deleted."""
        row = _come_or_gone(change)
        if row is not None and row.backup_uid:
            yield _key("", _FILES, row.key.name)

    def keys_for_tenant_location(self, change: Change[TenantLocationRow]) -> Iterator[Key]:
        """Return what was made for a tenant's location that is deleted."""
        if change.new is None and change.old is not None:
            name = nacuuid_of(change.key.namespace, change.key.name, change.old.uid)
            yield _key("", _LOCATIONS, name)
            yield _key("", _APPROVALS, name)

    def keys_for_location(self, change: Change[LocationRow]) -> Iterator[Key]:
        """Return a Velero location of a tenant that is new to us or deleted; then its request for approval too."""
        row = _come_or_gone(change)
        if row is not None and row.owner is not None:
            yield _key("", _LOCATIONS, row.name)
            if change.new is None:
                yield _key("", _APPROVALS, row.name)

    def keys_for_approval(self, change: Change[ApprovalRow]) -> Iterator[Key]:
        """Return a request for approval that is new to us or deleted."""
        row = _come_or_gone(change)
        if row is not None and row.owner is not None:
            yield _key("", _APPROVALS, row.key.name)

    # What a decision sees

    def observe(self, key: PartKey, _: datetime) -> GarbageView | None:
        """Return an object of ours whose owner does not exist; None for any other."""
        return self._find[key.part](Key(self._cluster.velero_namespace, key.name))

    def settled(
        self, _: PartKey, view: GarbageView | None, plan: Plan, result: Result, _now: datetime
    ) -> Iterable[Key]:
        """Count an object that was removed."""
        if view is not None and result.outcome is Outcome.DONE and garbage.is_deleted(view, plan):
            self._removed(view.kind)
        return ()

    def _location(self, at: Key) -> GarbageView | None:
        row = self._cluster.locations.get(at)
        if row is None or not self._has_no_owner(row):
            return None
        return garbage.location_view(row, at.namespace, holds_backups=self._holds_backups(row.name))

    def _approval(self, at: Key) -> GarbageView | None:
        row = self._cluster.approvals.get(at)
        locations = self._cluster.locations
        if row is None or at in locations or at in locations.unread or not self._has_no_owner(row):
            return None
        return garbage.approval_view(row)

    def _has_no_owner(self, row: LocationRow | ApprovalRow) -> bool:
        known = self._cluster.tenant_locations
        owner = row.owner
        if not self._watches_locations or not known.is_served or owner is None or owner in known.unread:
            return False
        location = known.get(owner)
        return location is None or location.uid != row.request_uid

    def _holds_backups(self, name: str) -> bool:
        """Whether any Backup of Velero is in a location; one that cannot be read may be."""
        backups = self._cluster.backups.velero
        return bool(backups.unread) or any(location_of(row) == name for row in backups.rows())

    def _restore(self, at: Key) -> GarbageView | None:
        family = self._cluster.restores
        row = family.velero.get(at)
        return garbage.restore_view(row) if row is not None and _is_absent(family, row) else None

    def _deletion(self, at: Key) -> GarbageView | None:
        row = self._cluster.deletions.get(at)
        is_garbage = row is not None and _is_absent(self._cluster.backups, row)
        return garbage.deletion_view(row) if row is not None and is_garbage else None

    def _file(self, at: Key) -> GarbageView | None:
        row = self._cluster.download_requests.get(at)
        backups = self._cluster.backups.velero
        prefix = PREFIXES.get(row.target.kind) if row is not None else None
        if row is None or prefix is None:
            return None
        about = Key(at.namespace, row.target.name)
        backup = backups.get(about)
        if about in backups.unread or (backup is not None and backup.uid == row.backup_uid):
            return None
        return garbage.file_view(row, prefix)


def _come_or_gone(change: Change[Row]) -> Row | None:
    """Return the object of a change that is new to us or deleted; None for one that only differs."""
    if change.old is None:
        return change.new
    return change.old if change.new is None else None


def _is_absent(family: FamilyState, row: VeleroRow | DeletionRow) -> bool:
    """Whether the request that an object was made for does not exist; one that cannot be read exists."""
    owner = row.owner
    if owner is None or owner in family.requests.unread:
        return False
    request = family.requests.get(owner)
    return request is None or request.uid != row.request_uid


def _part(plural: str) -> str:
    return f"garbage/{plural}"


def _key(namespace: str, plural: str, name: str) -> PartKey:
    return PartKey(namespace, name, _part(plural))


class Dangling:
    """Waiting objects of Velero whose namespace may be deleted."""

    view = DanglingView
    decide = staticmethod(dangling.decide)

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._families = {_dangling(family): family for family in cluster.families}

    @property
    def parts(self) -> Iterable[str]:
        """Velero's kinds, each under its own name."""
        return self._families

    def keys_for_velero(self, family: FamilyState, change: Change[VeleroRow]) -> Iterator[Key]:
        """Return a waiting object that is new to us, or one that is deleted, so that nothing of it stays in memory."""
        row = change.new or change.old
        if row is not None and (change.new is None or (change.old is None and row.is_waiting)):
            yield from self.keys(family, (row,))

    def keys_for_namespace(self, change: Change[NamespaceRow]) -> Iterator[Key]:
        """Return the waiting objects of a namespace that is created, being deleted or deleted."""
        new = change.new
        if new is None or new.is_terminating or change.old is None:
            for family in self._cluster.families:
                yield from self.keys(family, family.velero.by("waits in", change.key.name))

    def keys(self, family: FamilyState, rows: Iterable[VeleroRow]) -> Iterator[PartKey]:
        """Return the keys of those that have our complete record."""
        for row in rows:
            if row.owner is not None and row.is_recorded:
                yield PartKey(row.owner.namespace, row.key.name, _dangling(family))

    def observe(self, key: PartKey, _: datetime) -> DanglingView | None:
        """Collect what is known about a waiting Velero object and its namespace."""
        family = self._families[key.part]
        row = family.velero.get(family.velero_key(key.name))
        at = Key("", key.namespace)
        if row is None:
            return None
        target = Key("", row.target) if row.target else at
        if {at, target} & self._cluster.namespaces.unread.keys():
            return None
        get = self._cluster.namespaces.get
        return DanglingView(family.family, row, get(at), get(target) if row.target else None)


def _dangling(family: FamilyState) -> str:
    return f"dangling/{family.family.velero.plural}"


_DELETIONS = velero.DELETE_REQUEST.plural
_FILES = velero.DOWNLOAD_REQUEST.plural
_LOCATIONS = velero.LOCATION.plural
_APPROVALS = NON_ADMIN_LOCATION_REQUEST.plural
