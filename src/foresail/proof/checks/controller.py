"""The controller of RestoreChecks: what it watches, how events map to keys, and which `decide` it calls."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial

from foresail.api import core, mirrored, velero
from foresail.api.apps import DEPLOYMENT, Deployment
from foresail.api.marks import CHECK_LABEL
from foresail.api.metadata import Named
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_SCHEDULE
from foresail.api.pods import RESOURCE_QUOTA, ResourceQuota
from foresail.api.policy import SELF_SERVICE_POLICY, SelfServicePolicy
from foresail.api.restore_check import RESTORE_CHECK, RestoreCheck
from foresail.kube.background_reads import BackgroundReads
from foresail.kube.controller import Informer
from foresail.kube.execute import Outcome, Result
from foresail.kube.reflector import Change, WatchSpec
from foresail.plan import Key, Plan
from foresail.proof.checks import build, rows, rules, tenants
from foresail.proof.checks.decide import decide
from foresail.proof.checks.memory import has_place
from foresail.proof.checks.metrics import CheckMetrics
from foresail.proof.checks.observe import observe
from foresail.proof.checks.reads import ReadFiles, ReadPods
from foresail.proof.checks.rows import (
    BackupRow,
    CheckRow,
    LocationRow,
    OwnedObject,
    PodsFound,
    RequestRow,
    request_row,
    schedule_row,
)
from foresail.proof.checks.state import CheckState, is_running
from foresail.proof.checks.tenants import Turn
from foresail.proof.checks.turns import AT_ONCE, Turns
from foresail.proof.checks.view import CheckView, DataSettings, Files, Found, Query
from foresail.proof.checks.volumes import VolumeRow, decide_volume, volume_row
from foresail.tenancy.namespaces import NamespaceRow, namespace_row
from foresail.tenancy.policies import PolicyRow, policy_row
from foresail.tenancy.records import nacuuid


def _for_volume(change: Change[VolumeRow]) -> Iterator[Key]:
    """Return a volume of a sandbox that would outlive it."""
    if change.new is not None and change.new.version:
        yield change.key


class RestoreChecks:
    """Restores backups into fenced sandboxes and compares; those of tenants only if `never` is given.

    `never` are the namespaces that no SelfServicePolicy reaches, besides Velero's; `at_once` says how many checks of
    tenants run at a time.
    """

    name = "restore-checks"

    def __init__(
        self,
        velero_namespace: str,
        read_files: ReadFiles,
        never: Iterable[str] | None = None,
        read_pods: ReadPods | None = None,
        data: DataSettings | None = None,
        at_once: int = AT_ONCE,
    ) -> None:
        data = data if read_pods is not None else None
        self.state = CheckState(velero_namespace, never, data, at_once)
        self._read_files = read_files
        self._read_pods = read_pods
        self.background_reads = BackgroundReads[Query, Found](self._read)
        self.metrics = CheckMetrics(self.state.checks, self.state.sandboxes, self.state.pass_due)

    @property
    def informers(self) -> tuple[Informer, ...]:
        """RestoreChecks, Backups, locations, storage classes, Velero, tenants, and everything made for a check."""
        state = self.state
        here = state.velero_namespace
        ours = CHECK_LABEL
        row = partial(rows.check_row, velero_namespace=here)
        checks = WatchSpec(RESTORE_CHECK, RestoreCheck, row, "" if state.serves_tenants else here)
        backups = WatchSpec(velero.BACKUP, velero.Backup, rows.backup_row, here)
        locations = WatchSpec(velero.LOCATION, mirrored.Location, rows.location_row, here)
        classes = WatchSpec(core.STORAGE_CLASS, Named, rows.named_row)
        servers = WatchSpec(DEPLOYMENT, Deployment, rows.server_row, here)
        sandboxes = WatchSpec(core.NAMESPACE, Named, rows.owned_object_row, labels=ours)
        quotas = WatchSpec(RESOURCE_QUOTA, ResourceQuota, rows.quota_row, labels=ours)
        restores = WatchSpec(velero.RESTORE, velero.Restore, rows.restore_row, here, labels=ours)
        maps = WatchSpec(core.CONFIG_MAP, Named, rows.owned_object_row, here, labels=ours)
        downloads = WatchSpec(velero.DOWNLOAD_REQUEST, velero.Download, rows.download_row, here, labels=ours)
        volumes = WatchSpec(core.VOLUME, core.Volume, volume_row)
        return (
            Informer(checks, state.checks, self._for_check, self._learn_check),
            Informer(backups, state.backups, self._for_backup),
            Informer(locations, state.locations, self._for_location),
            Informer(classes, state.classes, lambda _: ()),
            Informer(servers, state.servers, lambda _: ()),
            Informer(sandboxes, state.sandboxes, self._for_sandbox),
            Informer(quotas, state.quotas, self._for_quota),
            Informer(restores, state.restores, self._for_owned_object),
            Informer(maps, state.config_maps, self._for_owned_object, self._learn_start),
            Informer(downloads, state.downloads, self._for_owned_object),
            *(self._tenant_informers() if state.serves_tenants else ()),
            *([Informer(volumes, state.volumes, _for_volume)] if state.data is not None else []),
        )

    def _tenant_informers(self) -> Iterator[Informer]:
        spaces = WatchSpec(core.NAMESPACE, core.Namespace, namespace_row)
        policies = WatchSpec(SELF_SERVICE_POLICY, SelfServicePolicy, policy_row)
        requests = WatchSpec(NON_ADMIN_BACKUP, Named, request_row)
        schedules = WatchSpec(NON_ADMIN_SCHEDULE, Named, schedule_row)
        yield Informer(spaces, self.state.namespaces, self._for_namespace)
        yield Informer(policies, self.state.policies, self._for_policy)
        yield Informer(requests, self.state.requests, self._for_request)
        yield Informer(schedules, self.state.schedules, self._for_schedule)

    def _learn_check(self, change: Change[CheckRow]) -> Iterator[Key]:
        """Note the age of a check; release the turn of one whose run the store has, or that is deleted."""
        self.state.ages.learn(change.key.namespace, change.old, change.new)
        if change.new is None or change.new.status.run is not None:
            self.state.turns.release(change.key)
        yield from ()

    def _learn_start(self, change: Change[OwnedObject]) -> Iterator[Key]:
        """Note that the store has a start, or whatever else a ConfigMap is."""
        self.state.starts.remove(change.key)
        yield from ()

    def _for_check(self, change: Change[CheckRow]) -> Iterator[Key]:
        """Return a check; with the end of a tenant's, those whose turn is next, and those that get its place."""
        yield change.key
        if change.key.namespace == self.state.velero_namespace:
            return
        if has_place(change.old) and not has_place(change.new):
            yield from self.state.served_keys(change.key.namespace)
        has_ended = is_running(change.old) and not is_running(change.new)
        if has_ended:
            yield from self.state.turns.next

    def _for_backup(self, change: Change[BackupRow]) -> Iterator[Key]:
        """Return the checks that select a Backup that was completed or is deleted."""
        changed = [row for row in (change.old, change.new) if row is not None and row.phase == velero.COMPLETED]
        if not changed or change.old == change.new:
            return
        for check in self.state.checks.by("namespace", self.state.velero_namespace):
            if any(self.state.selects(check, row) for row in changed):
                yield check.key
        for namespace in {row.owner.namespace for row in changed if row.owner is not None}:
            yield from self.state.served_keys(namespace)

    def _for_location(self, change: Change[LocationRow]) -> Iterator[Key]:
        """Return every check if a location came, went or changed; Velero writes to each of them every minute.

        No check reads a tenant's own one, and tenants create and delete them as they like.
        """
        changed = [row for row in (change.old, change.new) if row is not None]
        if change.old != change.new and any(row.is_default or not row.is_tenants for row in changed):
            yield from (row.key for row in self.state.checks.rows())

    def _for_owned_object(self, change: Change[OwnedObject]) -> Iterator[Key]:
        row = change.new or change.old
        if row is not None and row.check:
            yield Key(row.check_namespace or self.state.velero_namespace, row.check)

    def _for_sandbox(self, change: Change[OwnedObject]) -> Iterator[Key]:
        """Return the check of a sandbox; once it is deleted, those of the tenant's namespace that it blocked."""
        yield from self._for_owned_object(change)
        if change.new is None and change.old is not None and change.old.check_namespace:
            yield from self.state.served_keys(change.old.check_namespace)

    def _for_namespace(self, change: Change[NamespaceRow]) -> Iterator[Key]:
        if change.old != change.new:
            yield from (check.key for check in self.state.checks.by("namespace", change.key.name) if check.is_tenants)

    def _for_policy(self, change: Change[PolicyRow]) -> Iterator[Key]:
        """Return every tenant's check if a policy changed, and what was made for deleted ones."""
        if change.old != change.new:
            yield from (check.key for check in self.state.checks.rows() if check.is_tenants)
            yield from {
                Key(row.check_namespace, row.check) for row in self.state.config_maps.rows() if row.check_namespace
            }

    def _for_request(self, change: Change[RequestRow]) -> Iterator[Key]:
        """Return the served checks that select a NonAdminBackup, or did; without a Backup, none can check it."""
        changed = [row for row in (change.old, change.new) if row is not None and change.old != change.new]
        if not any(Key(self.state.velero_namespace, nacuuid(row)) in self.state.backups for row in changed):
            return
        for key in self.state.served_keys(change.key.namespace):
            check = self.state.checks.get(key)
            if check is not None and any(tenants.is_chosen(check, row, self.state.schedule(check)) for row in changed):
                yield key

    def _for_schedule(self, change: Change[RequestRow]) -> Iterator[Key]:
        """Return the served checks that name a NonAdminSchedule."""
        for key in self.state.served_keys(change.key.namespace) if change.old != change.new else ():
            check = self.state.checks.get(key)
            if check is not None and check.spec.backups.non_admin_schedule == change.key.name:
                yield key

    def _for_quota(self, change: Change[OwnedObject]) -> Iterator[Key]:
        """Return the check of a quota that came or began to count; Velero's every object changes its figures."""
        if change.old != change.new:
            yield from self._for_owned_object(change)

    def observe(self, key: Key, now: datetime) -> CheckView | VolumeRow | None:
        """Collect what is known about a check or a volume; None if it cannot be read."""
        if not key.namespace:
            return self.state.volumes.get(key)
        return observe(self.state, key, now, self.background_reads.result(key))

    async def _read(self, query: Query) -> Found:
        if isinstance(query, Files):
            return await self._read_files(query)
        return await self._read_pods(query) if self._read_pods is not None else PodsFound(problem="depth Data is off")

    def decide(self, view: CheckView | VolumeRow, now: datetime) -> Plan:
        """Return the Plan."""
        return decide_volume(view) if isinstance(view, VolumeRow) else decide(view, now)

    def begin(self, key: Key, view: CheckView | VolumeRow, plan: Plan, now: datetime) -> Iterable[Key]:
        """Reserve the turn of a tenant's check that starts, and count the start."""
        starting = plan.claim(build.Start)
        if starting is not None and isinstance(view, CheckView) and view.check is not None:
            self.state.turns.take(key)
            start = build.started(view.check, starting.run, now)
            if start.key not in self.state.config_maps:
                self.state.starts.add(start, now, now + tenants.interval(view.tenant))
        return ()

    def settled(
        self, key: Key, view: CheckView | VolumeRow | None, plan: Plan, result: Result, _now: datetime
    ) -> Iterable[Key]:
        """Note when the check must pass again and who waits, and forget what was read for a run that is over."""
        if isinstance(view, VolumeRow):
            return ()
        if view is None or view.check is None or view.tenant is not None:
            self.state.pass_due.pop(key, None)
        else:
            self.state.pass_due[key] = rules.pass_due(view.check, view.backups)
        if view is None or view.check is None or view.check.status.run is None:
            self.background_reads.forget(key)
        return self._settle_turn(key, plan, result) if key.namespace != self.state.velero_namespace else ()

    def crashed(self, key: Key) -> Iterable[Key]:
        """Release the turn of a check whose reconcile raised."""
        return self._give_way(key)

    def start_term(self) -> Iterable[Key]:
        """Forget who waits: everybody is reconciled."""
        self.state.turns = Turns(self.state.at_once)
        return ()

    def _settle_turn(self, key: Key, plan: Plan, result: Result) -> Iterable[Key]:
        """Note that a check waits for its turn; one that does not, or whose writes fail, blocks nobody."""
        if result.outcome is not Outcome.DONE:
            return self._give_way(key)
        if Turn.WAITS in plan.claims:
            self.state.turns.wait(key)
            return ()
        if Turn.TAKES in plan.claims:
            return ()
        if key in self.state.turns.next:
            return self._give_way(key)
        self.state.turns.leave(key)
        return ()

    def _give_way(self, key: Key) -> Iterable[Key]:
        """Let the next checks have the turn."""
        self.state.turns.release(key)
        self.state.turns.leave(key)
        return self.state.turns.next
