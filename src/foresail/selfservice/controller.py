"""Self-service: its controllers over shared stores, what they watch, and whom an event concerns.

Each controller is in its own package; a key says by its part which one it is for. They share one queue, because what
an event teaches the ledger and the queue of requests holds for all of them at once.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from foresail.api import core, mirrored, nonadmin, velero
from foresail.api.nonadmin import NON_ADMIN_LOCATION_REQUEST
from foresail.api.policy import SELF_SERVICE_POLICY, SelfServicePolicy
from foresail.api.protection import PROTECTION_CLASS, ProtectionClass
from foresail.api.schedule_policy import SCHEDULE_POLICY, SchedulePolicy
from foresail.kube.background_reads import BackgroundReads
from foresail.kube.controller import Informer, LowPriority, Reserves, Settles, no_keys
from foresail.kube.execute import Result
from foresail.kube.reflector import Change, WatchSpec
from foresail.kube.store import Store
from foresail.plan import Key, Kind, PartKey, Plan
from foresail.selfservice.access.reader import AccessReader
from foresail.selfservice.access.view import (
    Check,
    Checked,
    PodCheck,
    PodsChecked,
    Recheck,
    Rechecked,
    SecretsCheck,
    SecretsChecked,
)
from foresail.selfservice.adoption.controller import Adoption
from foresail.selfservice.downloads.controller import Downloads
from foresail.selfservice.downloads.view import download_row
from foresail.selfservice.garbage.controller import Dangling, Garbage
from foresail.selfservice.labels import NamespaceLabels
from foresail.selfservice.locations.controller import Locations
from foresail.selfservice.locations.reader import SecretReader
from foresail.selfservice.locations.view import CredentialsCheck, CredentialsChecked
from foresail.selfservice.metrics import SelfServiceMetrics, States
from foresail.selfservice.queue.window import UNLIMITED, Limits
from foresail.selfservice.requests import authorization
from foresail.selfservice.requests.controller import HandOvers, Requests
from foresail.selfservice.requests.memory import Memory
from foresail.selfservice.requests.state import ClusterState, FamilyState
from foresail.selfservice.results.controller import Fetch, Results, fetch
from foresail.selfservice.results.view import Found, Wanted
from foresail.selfservice.rows.locations import (
    ApprovalRow,
    LocationRow,
    TenantLocationRow,
    approval_row,
    location_row,
    tenant_location_row,
)
from foresail.selfservice.rows.requests import RequestRow, request_row
from foresail.selfservice.rows.schedules import ScheduleRow, schedule_row
from foresail.selfservice.rows.velero import (
    DeletionRow,
    DownloadRequestRow,
    VeleroRow,
    claim_row,
    deletion_row,
    download_request_row,
    movement_row,
    velero_row,
)
from foresail.selfservice.schedules.controller import TenantSchedules
from foresail.selfservice.signatures import SECRET, SECRET_NAME, KeySecret, keyring_row
from foresail.slots.policy_timing import policy_row as schedule_policy_row
from foresail.tenancy.namespaces import NamespaceRow, namespace_row
from foresail.tenancy.points import class_restores_row
from foresail.tenancy.policies import ChartLimits, PolicyRow, policy_row

_FILES = 4  # read from buckets at once
_QUESTIONS = 8  # to the API server at once: a consistent list waits up to 100 ms for the server's cache

Keys = Callable[[Change[Any]], Iterable[Key | LowPriority]]


View = Any
"""What one of the controllers observes."""


class Part(Protocol):
    """One of the controllers: as the runtime's, but over the stores and in the queue of all."""

    @property
    def view(self) -> type:
        """What it observes."""

    @property
    def parts(self) -> Iterable[str]:
        """The parts of the keys that are for it."""

    def observe(self, key: PartKey, now: datetime) -> View | None:
        """Collect what a decision about the key needs; None if there is nothing to decide."""

    def decide(self, view: View, now: datetime, /) -> Plan:
        """Return what to do; a pure function."""


class SelfService:
    """Lets tenants back up and restore their own namespaces, through one Velero."""

    name = "selfservice"

    def __init__(
        self,
        velero_namespace: str,
        never: Iterable[str] = (),
        fetch: Fetch = fetch,
        limits: Limits = UNLIMITED,
        access: AccessReader | None = None,
        secrets: SecretReader | None = None,
        chart: ChartLimits | None = None,
    ) -> None:
        cluster = ClusterState(velero_namespace, never, limits, chart or ChartLimits())
        self.cluster = cluster
        self.access = access or AccessReader(None)
        self.background_reads = BackgroundReads[Any, Any](
            self._read, concurrency=_FILES, is_quick=_is_quick, quick=_QUESTIONS
        )
        self._fetch = fetch
        self._secrets = secrets  # None: tenants have no locations of their own
        self._memory = Memory(cluster, self._now)
        self.requests = Requests(cluster, self.access, self.background_reads, self._memory)
        self.downloads = Downloads(cluster, self.background_reads)
        self.schedules = TenantSchedules(cluster)
        self.locations = Locations(cluster, self.background_reads)
        self.adoption = Adoption(cluster)
        self.results = Results(cluster, self.background_reads)
        self.labels = NamespaceLabels(cluster)
        self.dangling = Dangling(cluster)
        self.metrics = SelfServiceMetrics(
            cluster.namespaces,
            cluster.backups.ledger,
            cluster.policy,
            cluster.expirations,
            self.adoption.counts,
            States(self.schedules.counts, self.locations.counts),
        )
        self.garbage = Garbage(cluster, watches_locations=secrets is not None, removed=self.metrics.removed)
        controllers: tuple[Part, ...] = (
            self.requests,
            HandOvers(cluster, self._memory),
            self.downloads,
            self.schedules,
            self.locations,
            self.adoption,
            self.results,
            self.labels,
            self.dangling,
            self.garbage,
        )
        self._controllers = {part: controller for controller in controllers for part in controller.parts}
        self._decide = {controller.view: controller.decide for controller in controllers}
        self._begin = {
            part: controller.begin for part, controller in self._controllers.items() if isinstance(controller, Reserves)
        }
        self._settled = {
            part: controller.settled
            for part, controller in self._controllers.items()
            if isinstance(controller, Settles)
        }

    def _now(self) -> datetime | None:
        return self.background_reads.clock() if self.background_reads.clock is not None else None

    async def _read(
        self, query: Wanted | Check | PodCheck | Recheck | SecretsCheck | CredentialsCheck
    ) -> Found | Checked | PodsChecked | Rechecked | SecretsChecked | CredentialsChecked:
        """Do one background read."""
        if isinstance(query, CredentialsCheck):
            return await (self._secrets or SecretReader(None)).run(query)
        return await (self._fetch(query) if isinstance(query, Wanted) else self.access.run(query))

    # What is watched

    @property
    def informers(self) -> tuple[Informer, ...]:
        """Requests, namespaces, claims and policies everywhere; Velero's objects in Velero's namespace."""
        known = self.cluster
        return (
            _watch(self.downloads.kind, nonadmin.Download, download_row, self.downloads.requests)(
                self.downloads.keys_for_request
            ),
            _watch(self.schedules.kind, nonadmin.Schedule, schedule_row, self.schedules.schedules, optional=True)(
                self.schedules.keys_for_schedule, self._schedule_changed
            ),
            _watch(SCHEDULE_POLICY, SchedulePolicy, schedule_policy_row, known.schedule_policies, optional=True)(
                self.schedules.keys_for_schedule_policy
            ),
            _watch(PROTECTION_CLASS, ProtectionClass, class_restores_row, known.protection_classes, optional=True)(
                self.requests.keys_for_class
            ),
            self._velero(velero.DOWNLOAD_REQUEST, mirrored.Download, download_request_row, known.download_requests)(
                self._keys_for_download_request
            ),
            _watch(core.NAMESPACE, core.Namespace, namespace_row, known.namespaces, metadata_only=True)(
                self._keys_for_namespace, self._namespace_changed
            ),
            _watch(core.CLAIM, core.Claim, claim_row, known.claims, metadata_only=True)(_no_keys),
            _watch(SELF_SERVICE_POLICY, SelfServicePolicy, partial(policy_row, chart=known.chart), known.policies)(
                self._keys_for_policy, self._policy_changed
            ),
            self._velero(velero.DELETE_REQUEST, mirrored.MirroredDeletion, deletion_row, known.deletions)(
                self._keys_for_deletion
            ),
            self._velero(velero.LOCATION, mirrored.Location, location_row, known.locations)(
                self._keys_for_location, self._location_changed
            ),
            self._keys_of_records(),
            *self._watched_of_locations(),
            *self._watched_of(known.backups),
            *self._watched_of(known.restores),
        )

    def _watched_of_locations(self) -> Iterator[Informer]:
        if self._secrets is None:
            return
        known = self.cluster
        own = self.locations
        yield _watch(own.kind, nonadmin.Location, tenant_location_row, known.tenant_locations)(
            self._keys_for_tenant_location, own.location_changed
        )
        kind = NON_ADMIN_LOCATION_REQUEST
        yield self._velero(kind, nonadmin.Approval, approval_row, known.approvals)(self._keys_for_approval)

    def _watched_of(self, known: FamilyState) -> Iterator[Informer]:
        family = known.family
        yield _watch(family.kind, nonadmin.Request, partial(request_row, family=family), known.requests)(
            partial(self._keys_for_request, known), partial(self._request_changed, known)
        )
        yield self._velero(family.velero, mirrored.Mirrored, partial(velero_row, family=family), known.velero)(
            partial(self._keys_for_velero, known), partial(self._velero_changed, known)
        )
        to_row = partial(movement_row, label=family.movement_label)
        for kind, store in known.movements.items():
            yield self._velero(kind, mirrored.Movement, to_row, store)(partial(self.requests.keys_for_movement, known))

    def _keys_of_records(self) -> Informer:
        """Watch one Secret by its name: the ServiceAccount may read no other."""
        where = self.cluster.velero_namespace
        name = SECRET_NAME
        spec = WatchSpec(SECRET, KeySecret, keyring_row, where, fields=f"metadata.name={name}")
        return Informer(spec, self.cluster.keyrings, self.adoption.keys_for_keyring)

    def _velero(
        self, kind: Kind, wire: type[Any], row: Callable[[Any], Any], store: Store[Any]
    ) -> Callable[..., Informer]:
        return _watch(kind, wire, row, store, self.cluster.velero_namespace)

    # What is learned from an event

    def _request_changed(self, family: FamilyState, change: Change[RequestRow]) -> Iterable[Key | LowPriority]:
        self.metrics.changed(family.family, change)
        self.schedules.run_changed(change)
        return self._memory.request_changed(family, change)

    def _schedule_changed(self, change: Change[ScheduleRow]) -> Iterable[Key]:
        return list(self.schedules.schedule_changed(change))

    def _velero_changed(self, family: FamilyState, change: Change[VeleroRow]) -> Iterable[Key | LowPriority]:
        self.metrics.waited(family.family, change)
        if family is self.cluster.backups:
            self.adoption.velero_changed(change)
        if change.new is None and change.old is not None:
            self.access.discard(change.old.uid)
        return self._memory.velero_changed(family, change)

    def _namespace_changed(self, change: Change[NamespaceRow]) -> Iterable[Key]:
        if change.new is None:
            self.metrics.gone(change.key.name)
            self.labels.namespace_deleted(change.key.name)
        self._memory.namespace_changed(change.key.name, is_deleted=change.new is None)
        return ()

    def _policy_changed(self, _: Change[PolicyRow]) -> Iterable[Key]:
        self.metrics.policies_changed()
        self._memory.policies_changed()
        return ()

    def _location_changed(self, _: Change[LocationRow]) -> Iterable[Key]:
        return self._memory.locations_changed()

    # Events to keys

    def _keys_for_request(self, family: FamilyState, change: Change[RequestRow]) -> Iterator[Key | LowPriority]:
        yield from self.requests.keys_for_request(family, change)
        if family is self.cluster.backups:
            yield from self.adoption.keys_for_request(change)
        yield from self.downloads.keys_about(family.family, change.key)
        yield from self.results.keys_for_request(family, change)
        yield from self.schedules.keys_for_run(change)
        yield from self.garbage.keys_for_request(family, change)

    def _keys_for_velero(self, family: FamilyState, change: Change[VeleroRow]) -> Iterator[Key | LowPriority]:
        yield from self.dangling.keys_for_velero(family, change)
        yield from self.requests.keys_for_velero(family, change)
        if family is self.cluster.backups:
            yield from self.adoption.keys_for_velero(change)
        row = change.new or change.old
        if row is not None and row.owner is not None:
            yield from self.downloads.keys_about(family.family, row.owner)
        if family is self.cluster.backups:
            yield from self.locations.keys_for_backup(change)
        yield from self.garbage.keys_for_velero(family, change)

    def _keys_for_location(self, change: Change[LocationRow]) -> Iterator[Key | LowPriority]:
        yield from self.requests.keys_for_location(change)
        yield from self.locations.keys_for_velero(change)
        yield from self.adoption.keys_for_location(change)
        yield from self.garbage.keys_for_location(change)

    def _keys_for_tenant_location(self, change: Change[TenantLocationRow]) -> Iterator[Key]:
        yield from self.locations.keys_for_location(change)
        yield from self.garbage.keys_for_tenant_location(change)

    def _keys_for_approval(self, change: Change[ApprovalRow]) -> Iterator[Key]:
        yield from self.locations.keys_for_approval(change)
        yield from self.garbage.keys_for_approval(change)

    def _keys_for_deletion(self, change: Change[DeletionRow]) -> Iterator[Key]:
        yield from self.requests.keys_for_deletion(change)
        yield from self.garbage.keys_for_deletion(change)

    def _keys_for_download_request(self, change: Change[DownloadRequestRow]) -> Iterator[Key]:
        yield from self.downloads.keys_for_answer(change)
        yield from self.results.keys_for_answer(change)
        yield from self.requests.keys_for_download_request(change)
        yield from self.garbage.keys_for_download_request(change)

    def _keys_for_namespace(self, change: Change[NamespaceRow]) -> Iterator[Key | LowPriority]:
        yield from self.labels.keys_for_namespace(change)
        yield from self.adoption.keys_for_namespace(change)
        yield from self.downloads.open_keys_in(change.key.name)
        yield from self.schedules.keys_in(change.key.name)
        yield from self.locations.keys_in(change.key.name)
        yield from self.requests.keys_for_namespace(change)
        yield from self.dangling.keys_for_namespace(change)

    def _keys_for_policy(self, change: Change[PolicyRow]) -> Iterator[Key | LowPriority]:
        yield from self.labels.keys_for_policy(change)
        yield from self.requests.keys_for_policy(change)
        yield from self.locations.all_keys()
        yield from self.adoption.keys_for_policy(change)
        yield from self.downloads.open_keys()
        yield from self.schedules.all_keys()

    # One reconcile

    def observe(self, key: Key, now: datetime) -> View | None:
        """Collect what is known about what a key names."""
        at = _part_key(key)
        return self._controllers[at.part].observe(at, now)

    def decide(self, view: View, now: datetime) -> Plan:
        """Return the Plan."""
        return self._decide[type(view)](view, now)

    def begin(self, key: Key, view: View, plan: Plan, now: datetime) -> Iterable[Key]:
        """Reserve what a Plan takes: a quota, a turn, a file."""
        return self._begin.get(_part_key(key).part, no_keys)(key, view, plan, now)

    def settled(self, key: Key, view: View | None, plan: Plan, result: Result, now: datetime) -> Iterable[Key]:
        """Release what was not used, and forget what no decision needs any more."""
        woken = self._memory.forget_collected(now)
        return [*woken, *self._settled.get(_part_key(key).part, no_keys)(key, view, plan, result, now)]

    def start_term(self) -> Iterable[Key]:
        """Forget since when Velero objects are missing: another leader may have created them since."""
        self.cluster.unobserved.clear()
        return ()


def _part_key(key: Key) -> PartKey:
    if not isinstance(key, PartKey):
        raise TypeError(f"{key} is for none of the controllers")
    return key


def _is_quick(wish: object) -> bool:
    return isinstance(wish, CredentialsCheck) or authorization.is_quick(wish)


def _no_keys(*_: Any) -> Iterator[Key]:  # noqa: ANN401 - whatever has changed
    return iter(())


def _watch(
    kind: Kind,
    wire: type[Any],
    row: Callable[[Any], Any],
    store: Store[Any],
    namespace: str = "",
    *,
    metadata_only: bool = False,
    optional: bool = False,
) -> Callable[..., Informer]:
    """Return a function that completes an informer with its mapping of changes to keys, and its `learn`."""
    spec = WatchSpec(kind, wire, row, namespace, metadata_only=metadata_only, optional=optional)

    def watch(keys: Keys, learn: Keys = _no_keys) -> Informer:
        return Informer(spec, store, keys, learn)

    return watch
