"""Objects without an owner: which events concern them, and whether the owner is really absent."""

from collections.abc import Iterator

from foresail.api import velero
from foresail.api.requests import NON_ADMIN_LOCATION_REQUEST
from foresail.kube.reflector import Change
from foresail.plan import Key
from foresail.selfservice.access.view import PREFIXES
from foresail.selfservice.requests import garbage
from foresail.selfservice.requests.file_requests import file_name
from foresail.selfservice.requests.garbage import WORD, GarbageView
from foresail.selfservice.rows.locations import ApprovalRow, LocationRow, TenantLocationRow
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.velero import DeletionRow, DownloadRequestRow, VeleroRow, location_of
from foresail.selfservice.state.cluster import ClusterState
from foresail.selfservice.state.family import FamilyState
from foresail.tenancy.records import nacuuid, nacuuid_of


class Garbage:
    """Finds objects of ours in Velero's namespace that have lost their owner."""

    def __init__(self, cluster: ClusterState, *, watches_locations: bool = False) -> None:
        self._cluster = cluster
        self._watches_locations = watches_locations  # else nobody knows which of them have an owner

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
        row = change.new if change.old is None else change.old if change.new is None else None
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
        row = change.new if change.old is None else change.old if change.new is None else None
        if row is not None and row.owner is not None:
            yield _key("", _LOCATIONS, row.name)
            if change.new is None:
                yield _key("", _APPROVALS, row.name)

    def keys_for_approval(self, change: Change[ApprovalRow]) -> Iterator[Key]:
        """Return a request for approval that is new to us or deleted."""
        row = change.new if change.old is None else change.old if change.new is None else None
        if row is not None and row.owner is not None:
            yield _key("", _APPROVALS, row.key.name)

    # What a decision sees

    def observe(self, path: str) -> GarbageView | None:
        """Return an object of ours whose owner does not exist; None for any other."""
        plural, _, name = path.partition("/")
        at = Key(self._cluster.velero_namespace, name)
        find = {
            _DELETIONS: self._deletion,
            _FILES: self._file,
            _LOCATIONS: self._location,
            _APPROVALS: self._approval,
        }
        return find.get(plural, self._restore)(at)

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


def _is_absent(family: FamilyState, row: VeleroRow | DeletionRow) -> bool:
    """Whether the request that an object was made for does not exist; one that cannot be read exists."""
    owner = row.owner
    if owner is None or owner in family.requests.unread:
        return False
    request = family.requests.get(owner)
    return request is None or request.uid != row.request_uid


def _key(namespace: str, plural: str, name: str) -> Key:
    return Key(namespace, f"{WORD}/{plural}/{name}")


_DELETIONS = velero.DELETE_REQUEST.plural
_FILES = velero.DOWNLOAD_REQUEST.plural
_LOCATIONS = velero.LOCATION.plural
_APPROVALS = NON_ADMIN_LOCATION_REQUEST.plural
