"""The controller of self-service: what it watches, and which part answers for which key.

A key's name says what is reconciled: a request (`nonadminbackups/x`), a download, the results of a failed request, a
waiting Velero object whose namespace may be deleted, a Velero Backup to adopt, the labels of a namespace, or the
window of a family.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

from foresail.api import core, mirrored, nonadmin, velero
from foresail.api.policy import SELF_SERVICE_POLICY, SelfServicePolicy
from foresail.api.requests import NON_ADMIN_LOCATION_REQUEST
from foresail.api.schedule_policy import SCHEDULE_POLICY, SchedulePolicy
from foresail.kube.background_reads import BackgroundReads
from foresail.kube.controller import Informer, LowPriority
from foresail.kube.execute import Outcome, Result
from foresail.kube.reflector import Change, WatchSpec
from foresail.kube.store import Store
from foresail.plan import Key, Kind, Plan
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
from foresail.selfservice.adoption import decide as adoption
from foresail.selfservice.adoption.controller import Adoption
from foresail.selfservice.adoption.view import WORD as ADOPTION
from foresail.selfservice.adoption.view import AdoptionView
from foresail.selfservice.downloads import decide as downloads
from foresail.selfservice.downloads.controller import Downloads
from foresail.selfservice.downloads.view import DownloadView, download_row
from foresail.selfservice.locations import decide as locations
from foresail.selfservice.locations.controller import Locations
from foresail.selfservice.locations.reader import SecretReader
from foresail.selfservice.locations.view import CredentialsCheck, CredentialsChecked, LocationView
from foresail.selfservice.metrics import SelfServiceMetrics
from foresail.selfservice.policy import admission
from foresail.selfservice.policy.admission import AdmissionView
from foresail.selfservice.queue import window
from foresail.selfservice.queue.window import UNLIMITED, Limits, WindowView
from foresail.selfservice.records import SECRET, SECRET_NAME, KeySecret, keyring_row
from foresail.selfservice.requests import authorization, dangling, garbage, rules
from foresail.selfservice.requests.dangling import DanglingView
from foresail.selfservice.requests.decide import decide
from foresail.selfservice.requests.garbage import GarbageView, is_deleted
from foresail.selfservice.requests.plan_effects import creates
from foresail.selfservice.requests.view import RequestView
from foresail.selfservice.results import decide as results
from foresail.selfservice.results.controller import WORD, Fetch, Results, fetch
from foresail.selfservice.results.view import Found, ResultsView, Wanted
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
from foresail.selfservice.schedules.decide import decide as decide_schedule
from foresail.selfservice.schedules.rules import Verdict
from foresail.selfservice.schedules.view import ScheduleView
from foresail.selfservice.state.admission import NamespaceLabels
from foresail.selfservice.state.bookkeeping import Bookkeeping
from foresail.selfservice.state.cluster import ClusterState
from foresail.selfservice.state.event_keys import EventKeys
from foresail.selfservice.state.family import WINDOW, FamilyState
from foresail.selfservice.state.garbage import Garbage
from foresail.selfservice.state.observer import Observer
from foresail.selfservice.state.reservations import Reservations
from foresail.slots.policies import policy_row as schedule_policy_row
from foresail.tenancy.namespaces import NamespaceRow, namespace_row
from foresail.tenancy.policies import ChartLimits, PolicyRow, policy_row

_FILES = 4  # read from buckets at once
_QUESTIONS = 8  # to the API server at once: a consistent list waits up to 100 ms for the server's cache

Observed = (
    RequestView
    | DownloadView
    | ResultsView
    | DanglingView
    | GarbageView
    | WindowView
    | ScheduleView
    | LocationView
    | AdoptionView
    | AdmissionView
)
Keys = Callable[[Change[Any]], Iterable[Key | LowPriority]]


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
        chart = chart or ChartLimits()
        self.cluster = ClusterState(velero_namespace, never, limits, chart)
        self.access = access or AccessReader(None)
        self.background_reads = BackgroundReads[Any, Any](
            self._read, concurrency=_FILES, is_quick=_is_quick, quick=_QUESTIONS
        )
        self.downloads = Downloads(self.cluster, self.background_reads)
        self.schedules = TenantSchedules(self.cluster)
        self.locations = Locations(self.cluster, self.background_reads)
        self._secrets = secrets  # None: tenants have no locations of their own
        self.adoption = Adoption(self.cluster)
        self.results = Results(self.cluster, self.background_reads)
        ledger = self.cluster.backups.ledger
        self.metrics = SelfServiceMetrics(
            self.cluster.namespaces, ledger, self.cluster.policy, self.cluster.expirations, self.adoption.counts
        )
        self.metrics.schedules = self.schedules.counts
        self.metrics.locations = self.locations.counts
        self.garbage = Garbage(self.cluster, watches_locations=secrets is not None)
        self.labels = NamespaceLabels(self.cluster)
        self._fetch = fetch
        self._keys = EventKeys(self.cluster)
        self._bookkeeping = Bookkeeping(self.cluster, self._now)
        self._reservations = Reservations(self.cluster, self._bookkeeping.update_weight)
        self._observer = Observer(self.cluster, self.access, self.background_reads)

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
            yield self._velero(kind, mirrored.Movement, to_row, store)(partial(self._keys.for_movement, known))

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
        return self._bookkeeping.request_changed(family, change)

    def _schedule_changed(self, change: Change[ScheduleRow]) -> Iterable[Key]:
        return list(self.schedules.schedule_changed(change))

    def _velero_changed(self, family: FamilyState, change: Change[VeleroRow]) -> Iterable[Key | LowPriority]:
        self.metrics.waited(family.family, change)
        if family is self.cluster.backups:
            self.adoption.velero_changed(change)
        if change.new is None and change.old is not None:
            self.access.discard(change.old.uid)
        return self._bookkeeping.velero_changed(family, change)

    def _namespace_changed(self, change: Change[NamespaceRow]) -> Iterable[Key]:
        if change.new is None:
            self.metrics.gone(change.key.name)
            self.labels.namespace_deleted(change.key.name)
        self._bookkeeping.namespace_changed(change.key.name, is_deleted=change.new is None)
        return ()

    def _policy_changed(self, _: Change[PolicyRow]) -> Iterable[Key]:
        self.metrics.policies_changed()
        self._bookkeeping.policies_changed()
        return ()

    def _location_changed(self, _: Change[LocationRow]) -> Iterable[Key]:
        return self._bookkeeping.locations_changed()

    # Events to keys

    def _keys_for_request(self, family: FamilyState, change: Change[RequestRow]) -> Iterator[Key | LowPriority]:
        yield from self._keys.for_request(family, change)
        if family is self.cluster.backups:
            yield from self.adoption.keys_for_request(change)
        yield from self.downloads.keys_about(family.family, change.key)
        yield from self.results.keys_for_request(family.key(change.key), change)
        yield from self.schedules.keys_for_run(change)
        yield from self.garbage.keys_for_request(family, change)

    def _keys_for_velero(self, family: FamilyState, change: Change[VeleroRow]) -> Iterator[Key | LowPriority]:
        yield from self._keys.for_velero(family, change)
        if family is self.cluster.backups:
            yield from self.adoption.keys_for_velero(change)
        row = change.new or change.old
        if row is not None and row.owner is not None:
            yield from self.downloads.keys_about(family.family, row.owner)
        if family is self.cluster.backups:
            yield from self.locations.keys_for_backup(change)
        yield from self.garbage.keys_for_velero(family, change)

    def _keys_for_location(self, change: Change[LocationRow]) -> Iterator[Key | LowPriority]:
        yield from self._keys.for_location(change)
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
        yield from self._keys.for_deletion(change)
        yield from self.garbage.keys_for_deletion(change)

    def _keys_for_download_request(self, change: Change[DownloadRequestRow]) -> Iterator[Key]:
        yield from self.downloads.keys_for_answer(change)
        yield from self.results.keys_for_answer(change)
        yield from self._keys.for_download_request(change)
        yield from self.garbage.keys_for_download_request(change)

    def _keys_for_namespace(self, change: Change[NamespaceRow]) -> Iterator[Key | LowPriority]:
        yield from self.labels.keys_for_namespace(change)
        yield from self.adoption.keys_for_namespace(change)
        yield from self.downloads.open_keys_in(change.key.name)
        yield from self.schedules.keys_in(change.key.name)
        yield from self.locations.keys_in(change.key.name)
        yield from self._keys.for_namespace(change)

    def _keys_for_policy(self, change: Change[PolicyRow]) -> Iterator[Key | LowPriority]:
        yield from self.labels.keys_for_policy(change)
        yield from self._keys.for_policy(change)
        yield from self.locations.all_keys()
        yield from self.adoption.keys_for_policy(change)
        yield from self.downloads.open_keys()
        yield from self.schedules.all_keys()

    # One reconcile

    def observe(self, key: Key, now: datetime) -> Observed | None:  # noqa: PLR0911 - one per kind of key
        """Collect what is known about what a key names."""
        word, _, name = key.name.partition("/")
        at = Key(key.namespace, name)
        if word == WINDOW:
            return self._observer.window(name, now)
        if word in (ADOPTION, dangling.WORD):
            is_adoption = word == ADOPTION
            return self.adoption.observe(name) if is_adoption else self._observer.dangling(key.namespace, name)
        if word == garbage.WORD:
            return self.garbage.observe(name)
        if word == admission.WORD:
            return self.labels.observe(key.namespace)
        if word == WORD:
            return self.results.observe(key, at)
        if word == self.downloads.kind.plural:
            return self.downloads.observe(at, now)
        for part in (self.schedules, self.locations):
            if word == part.kind.plural:
                return part.observe(at)
        return self._observer.request(self.cluster.of_plural(word), at, now)

    def decide(self, view: Observed, now: datetime) -> Plan:
        """Return the Plan."""
        match view:
            case WindowView():
                plan = window.decide(view)
            case AdoptionView():
                plan = adoption.decide(view, now)
            case DanglingView():
                plan = dangling.decide(view, now)
            case AdmissionView():
                plan = admission.decide(view, now)
            case GarbageView():
                plan = garbage.decide(view, now)
            case ResultsView():
                plan = results.decide(view, now)
            case LocationView():
                plan = locations.decide(view, now)
            case DownloadView():
                plan = downloads.decide(view, now)
            case ScheduleView():
                plan = decide_schedule(view, now)
            case _:
                plan = decide(view, now)
        return plan

    def begin(self, _key: Key, view: Observed, plan: Plan, now: datetime) -> Iterable[Key]:
        """Reserve the quota and the turn that a Plan takes."""
        if isinstance(view, WindowView):
            return self._reservations.expire(view.plural, now)
        if isinstance(view, AdoptionView):
            self.adoption.begin(view, plan)
        if isinstance(view, DownloadView):
            self.downloads.begin(view, plan, now)
        return self._reservations.reserve(view, plan, now) if isinstance(view, RequestView) else ()

    def settled(self, key: Key, view: Observed | None, plan: Plan, result: Result, now: datetime) -> Iterable[Key]:
        """Release a turn that was not used, and forget the background reads that no decision needs any more."""
        if view is None or (not plan.reads and _needs_no_read(view, plan)):
            self.background_reads.forget(key)
        is_done = result.outcome is Outcome.DONE
        if isinstance(view, AdmissionView) and is_done:
            self.labels.settled(view, plan, now)
        if key.name.startswith(self.schedules.kind.plural):
            verdict = plan.verdict if isinstance(plan.verdict, Verdict) else None
            self.schedules.settled(key, verdict)
        if isinstance(view, GarbageView) and is_done and is_deleted(view, plan):
            self.metrics.removed(view.kind)
        if key.name.startswith(self.downloads.kind.plural):
            self.downloads.forget_seen(key.namespace, now)
        woken = self._bookkeeping.forget_collected(now)
        if isinstance(view, DownloadView) and not is_done:
            return [*woken, *self.downloads.release(view, plan)]
        return woken + self._reservations.release(view, result) if isinstance(view, RequestView) else woken

    def start_term(self) -> Iterable[Key]:
        """Forget since when Velero objects are missing: another leader may have created them since."""
        self.cluster.unobserved.clear()
        return ()


def _is_quick(wish: object) -> bool:
    return isinstance(wish, CredentialsCheck) or authorization.is_quick(wish)


def _needs_no_read(view: Observed, plan: Plan) -> bool:
    """Whether what was read in the background is of no use any more."""
    if isinstance(view, RequestView):
        return creates(plan, view) or view.access is None or not rules.has_nacuuid(view.request)
    if isinstance(view, DownloadView):
        return downloads.is_over(view)
    return isinstance(view, ResultsView) and results.is_over(view)


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
