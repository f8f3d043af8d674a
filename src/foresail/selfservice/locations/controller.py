"""The controller of tenants' own locations: which events concern them, and what a decision about one sees."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from foresail.api.nonadmin import NON_ADMIN_LOCATION
from foresail.kube.background_reads import BackgroundReads
from foresail.kube.execute import Result
from foresail.kube.reflector import Change
from foresail.plan import Key, PartKey, Plan
from foresail.selfservice.locations import rules
from foresail.selfservice.locations.decide import decide
from foresail.selfservice.locations.status import STATES, state_of
from foresail.selfservice.locations.view import LocationView
from foresail.selfservice.policy.quota_ledger import QuotaQueue
from foresail.selfservice.requests.state import ClusterState
from foresail.selfservice.rows.locations import ApprovalRow, LocationRow, TenantLocationRow
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.velero import VeleroRow, location_of


class Locations:
    """The NonAdminBackupStorageLocations of all namespaces."""

    view = LocationView
    decide = staticmethod(decide)
    kind = NON_ADMIN_LOCATION
    parts = (kind.plural,)

    def __init__(self, cluster: ClusterState, background_reads: BackgroundReads[Any, Any]) -> None:
        self._cluster = cluster
        self._background_reads = background_reads
        self._by_age = QuotaQueue()
        self.counts: Counter[str] = Counter()

    def key(self, key: Key) -> PartKey:
        """Return the key under which a location is reconciled."""
        return PartKey(key.namespace, key.name, self.kind.plural)

    # What is learned from an event

    def location_changed(self, change: Change[TenantLocationRow]) -> Iterable[Key]:
        """Keep the locations of a namespace in order, and count them by state."""
        old = change.old
        new = change.new
        self._count(old, new)
        if old is None or new is None or old.created != new.created:
            self._by_age.leave(change.key)
            if new is not None:
                self._by_age.enter(change.key, new.created)
        return ()

    def _count(self, old: TenantLocationRow | None, new: TenantLocationRow | None) -> None:
        if not self.counts:
            self.counts.update(dict.fromkeys(STATES, 0))
        for row, step in ((old, -1), (new, 1)):
            if row is not None:
                self.counts[state_of(row)] += step

    # Events to keys

    def keys_for_location(self, change: Change[TenantLocationRow]) -> Iterator[Key]:
        """Return the key of a location that has changed; if one is deleted, the one that is within the limit now."""
        yield self.key(change.key)
        policy = self._cluster.policy(change.key.namespace) if change.new is None else None
        if policy is not None:
            most = policy.spec.locations.maximum
            yield from (self.key(key) for key in self._by_age.first(change.key.namespace, most)[most - 1 :])

    def keys_for_approval(self, change: Change[ApprovalRow]) -> Iterator[Key]:
        """Return the location that a request for approval is about."""
        row = change.new or change.old
        if row is not None and row.owner is not None:
            yield self.key(row.owner)

    def keys_for_velero(self, change: Change[LocationRow]) -> Iterator[Key]:
        """Return the location that a Velero location was made for, and those of the name of an administrator's.

        The time of a check alone concerns nobody.
        """
        if _is_administrators(change.old) != _is_administrators(change.new):
            yield from (
                self.key(location.key) for location in self._cluster.tenant_locations.by("name", change.key.name)
            )
        row = change.new or change.old
        if row is not None and row.owner is not None and change.old != change.new:
            yield self.key(row.owner)

    def keys_for_backup(self, change: Change[VeleroRow]) -> Iterator[Key]:
        """Return the location of a Velero Backup that is deleted: it may have been the last one there."""
        if change.new is not None or change.old is None:
            return
        row = self._cluster.location(location_of(change.old))
        if row is not None and row.owner is not None:
            yield self.key(row.owner)

    def keys_in(self, namespace: str) -> Iterator[Key]:
        """Return the locations of a namespace."""
        return (self.key(row.key) for row in self._cluster.tenant_locations.by("namespace", namespace))

    def all_keys(self) -> Iterator[Key]:
        """Return all locations."""
        return (self.key(row.key) for row in self._cluster.tenant_locations.rows())

    # What a decision sees

    def observe(self, part_key: PartKey, _: datetime) -> LocationView | None:
        """Collect what is known about a location."""
        cluster = self._cluster
        key = part_key.object
        location = cluster.tenant_locations.get(key)
        if location is None:
            return None
        name = rules.nacuuid(location)
        namespace = cluster.namespace(key.namespace)
        is_leaving = location.is_terminating or namespace is None or namespace.is_terminating
        held = self._held(name, namespace.uid) if is_leaving and namespace is not None else []
        return LocationView(
            location=location,
            velero_namespace=cluster.velero_namespace,
            namespace=namespace,
            policy=cluster.policy(key.namespace),
            approval=cluster.approvals.get(Key(cluster.velero_namespace, name)),
            velero=cluster.location(name),
            has_namesake=self._has_namesake(key.name),
            earlier=self._by_age.earlier(key),
            holds_backups=bool(held),
            backups=tuple(self._requests(held)),
            reserved=cluster.reserved,
            read_result=self._background_reads.result(part_key),
        )

    def settled(
        self, key: PartKey, view: LocationView | None, _plan: Plan, _result: Result, _now: datetime
    ) -> Iterable[Key]:
        """Forget what was read about a location that is deleted."""
        if view is None:
            self._background_reads.forget(key)
        return ()

    def _has_namesake(self, name: str) -> bool:
        """Whether the administrator has a location of a name; one that cannot be read may be the administrator's."""
        row = self._cluster.location(name)
        is_unread = Key(self._cluster.velero_namespace, name) in self._cluster.locations.unread
        return is_unread or _is_administrators(row)

    def _held(self, name: str, namespace_uid: str) -> list[VeleroRow]:
        rows = self._cluster.backups.velero.by("namespace uid", namespace_uid)
        return [row for row in rows if location_of(row) == name]

    def _requests(self, held: list[VeleroRow]) -> Iterator[RequestRow]:
        for row in held:
            request = self._cluster.backups.requests.get(row.owner) if row.owner is not None else None
            if request is not None and request.uid == row.request_uid:
                yield request


def _is_administrators(row: LocationRow | None) -> bool:
    return row is not None and row.owner is None
