"""The controller of RestoreChecks: what it watches, how events map to keys, and which `decide` it calls."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial

from msgspec.structs import replace

from foresail.api import core, mirrored, nonadmin, velero
from foresail.api.apps import DEPLOYMENT, Deployment
from foresail.api.marks import CHECK_LABEL
from foresail.api.metadata import Named
from foresail.api.pods import RESOURCE_QUOTA
from foresail.api.policy import SELF_SERVICE_POLICY, RestoreChecksPolicy, SelfServicePolicy
from foresail.api.requests import NON_ADMIN_BACKUP, NON_ADMIN_SCHEDULE
from foresail.api.restore_check import RESTORE_CHECK
from foresail.kube.background_reads import BackgroundReads
from foresail.kube.controller import Informer
from foresail.kube.execute import Outcome, Result
from foresail.kube.reflector import Change, WatchSpec
from foresail.kube.store import Store
from foresail.plan import Key, Keyed, Plan
from foresail.proof.checks import build, observe, rules, tenants
from foresail.proof.checks.ages import Ages, has_place
from foresail.proof.checks.decide import decide
from foresail.proof.checks.metrics import CheckMetrics
from foresail.proof.checks.observe import (
    BackupRow,
    CheckRow,
    CheckView,
    DownloadRow,
    Environment,
    Files,
    Found,
    LocationRow,
    NamedRow,
    OwnedObject,
    Query,
    QuotaRow,
    RestoreRow,
    ServerRow,
    Tenant,
)
from foresail.proof.checks.pod_rows import PodsFound
from foresail.proof.checks.reader import ReadFiles
from foresail.proof.checks.sandbox_reader import ReadPods
from foresail.proof.checks.settings import DataSettings
from foresail.proof.checks.starts import Starts
from foresail.proof.checks.tenant_rows import RequestRow, request_row, schedule_row
from foresail.proof.checks.tenants import Turn
from foresail.proof.checks.turns import Turns
from foresail.proof.checks.volumes import VolumeRow, VolumeWire, decide_volume, volume_row
from foresail.tenancy.namespaces import NamespaceRow, namespace_row
from foresail.tenancy.policies import PolicyRow, policy_for, policy_row
from foresail.tenancy.records import is_owned, nacuuid


def _for_volume(change: Change[VolumeRow]) -> Iterator[Key]:
    """Return a volume of a sandbox that would outlive it."""
    if change.new is not None and change.new.version:
        yield change.key


def _by_check(row: OwnedObject) -> list[Key]:
    return [Key(row.check_namespace, row.check)] if row.check else []


def _by_tenant(row: OwnedObject) -> list[str]:
    return [row.check_namespace] if row.check_namespace else []


def _completed_of(row: BackupRow) -> list[str]:
    return [row.owner.namespace] if row.owner is not None and row.phase == velero.COMPLETED else []


def _by_namespace(row: Keyed) -> list[str]:
    return [row.key.namespace]


class RestoreChecks:
    """Restores backups into fenced sandboxes and compares; those of tenants only if `never` is given.

    `never` are the namespaces that no SelfServicePolicy reaches, besides Velero's.
    """

    name = "restore-checks"

    def __init__(
        self,
        velero_namespace: str,
        read_files: ReadFiles,
        never: Iterable[str] | None = None,
        read_pods: ReadPods | None = None,
        data: DataSettings | None = None,
    ) -> None:
        self.velero_namespace = velero_namespace
        self.data = data if read_pods is not None else None
        self._read_files, self._read_pods = read_files, read_pods
        self.serves_tenants = never is not None
        self.never = frozenset((*(never or ()), velero_namespace))
        self.turns, self.ages, self.starts = Turns(), Ages(), Starts()
        self.namespaces = Store[NamespaceRow]()
        self.policies = Store[PolicyRow]()
        self.requests = Store[RequestRow]()
        self.schedules = Store[RequestRow]()
        self.checks = Store[CheckRow]({"namespace": _by_namespace, "running for": _running_for})
        self.backups = Store[BackupRow](
            {"phase": lambda row: [row.phase], "uid": lambda row: [row.uid], "completed of": _completed_of}
        )
        self.locations = Store[LocationRow]({"role": lambda row: ["default"] if row.is_default else []})
        self.classes = Store[NamedRow]()
        self.servers = Store[ServerRow]()
        self.sandboxes = Store[OwnedObject]({"check": _by_check, "tenant": _by_tenant})
        self.quotas = Store[QuotaRow]({"check": _by_check})
        self.restores = Store[RestoreRow]({"check": _by_check})
        self.config_maps = Store[OwnedObject]({"check": _by_check, "starts": _starts_in})
        self.downloads = Store[DownloadRow]({"check": _by_check})
        self.volumes = Store[VolumeRow](
            {
                "sandbox": lambda row: [row.taken_by] if row.taken_by else [],
                "free": lambda row: [] if row.free_class is None else [""],
            }
        )
        self.background_reads = BackgroundReads[Query, Found](self._read)
        self.pass_due: dict[Key, datetime | None] = {}
        self.metrics = CheckMetrics(self.checks, self.sandboxes, self.pass_due)

    @property
    def informers(self) -> tuple[Informer, ...]:
        """RestoreChecks, Backups, locations, storage classes, Velero, tenants, and everything made for a check."""
        here = self.velero_namespace
        ours = CHECK_LABEL
        row = partial(observe.check_row, velero_namespace=here)
        checks = WatchSpec(RESTORE_CHECK, observe.CheckWire, row, "" if self.serves_tenants else here)
        backups = WatchSpec(velero.BACKUP, velero.Backup, observe.backup_row, here)
        locations = WatchSpec(velero.LOCATION, mirrored.Location, _location_row, here)
        classes = WatchSpec(core.STORAGE_CLASS, Named, observe.named_row)
        servers = WatchSpec(DEPLOYMENT, Deployment, observe.server_row, here)
        sandboxes = WatchSpec(core.NAMESPACE, Named, observe.owned_object_row, labels=ours)
        quotas = WatchSpec(RESOURCE_QUOTA, observe.QuotaWire, observe.quota_row, labels=ours)
        restores = WatchSpec(velero.RESTORE, velero.Restore, observe.restore_row, here, labels=ours)
        maps = WatchSpec(core.CONFIG_MAP, Named, observe.owned_object_row, here, labels=ours)
        downloads = WatchSpec(velero.DOWNLOAD_REQUEST, velero.Download, observe.download_row, here, labels=ours)
        volumes = WatchSpec(core.VOLUME, VolumeWire, volume_row)
        return (
            Informer(checks, self.checks, self._for_check, self._learn_check),
            Informer(backups, self.backups, self._for_backup),
            Informer(locations, self.locations, self._for_location),
            Informer(classes, self.classes, lambda _: ()),
            Informer(servers, self.servers, lambda _: ()),
            Informer(sandboxes, self.sandboxes, self._for_sandbox),
            Informer(quotas, self.quotas, self._for_quota),
            Informer(restores, self.restores, self._for_owned_object),
            Informer(maps, self.config_maps, self._for_owned_object, self._learn_start),
            Informer(downloads, self.downloads, self._for_owned_object),
            *(self._tenant_informers() if self.serves_tenants else ()),
            *([Informer(volumes, self.volumes, _for_volume)] if self.data is not None else []),
        )

    def _tenant_informers(self) -> Iterator[Informer]:
        spaces = WatchSpec(core.NAMESPACE, core.Namespace, namespace_row)
        policies = WatchSpec(SELF_SERVICE_POLICY, SelfServicePolicy, policy_row)
        requests = WatchSpec(NON_ADMIN_BACKUP, Named, request_row)
        schedules = WatchSpec(NON_ADMIN_SCHEDULE, Named, schedule_row)
        yield Informer(spaces, self.namespaces, self._for_namespace)
        yield Informer(policies, self.policies, self._for_policy)
        yield Informer(requests, self.requests, self._for_request)
        yield Informer(schedules, self.schedules, self._for_schedule)

    def _learn_check(self, change: Change[CheckRow]) -> Iterator[Key]:
        """Note the age of a check; release the turn of one whose run the store has, or that is deleted."""
        self.ages.learn(change.key.namespace, change.old, change.new)
        if change.new is None or change.new.status.run is not None:
            self.turns.release(change.key)
        yield from ()

    def _learn_start(self, change: Change[OwnedObject]) -> Iterator[Key]:
        """Note that the store has a start, or whatever else a ConfigMap is."""
        self.starts.remove(change.key)
        yield from ()

    def _for_check(self, change: Change[CheckRow]) -> Iterator[Key]:
        """Return a check; with the end of a tenant's, the next whose turn it is, and those that get its place."""
        yield change.key
        if change.key.namespace == self.velero_namespace:
            return
        if has_place(change.old) and not has_place(change.new):
            yield from self._served_keys(change.key.namespace)
        has_ended = _is_running(change.old) and not _is_running(change.new)
        if has_ended and self.turns.first is not None:
            yield self.turns.first

    def _for_backup(self, change: Change[BackupRow]) -> Iterator[Key]:
        """Return the checks that select a Backup that was completed or is deleted."""
        rows = [each for each in (change.old, change.new) if each is not None and each.phase == velero.COMPLETED]
        if not rows or change.old == change.new:
            return
        for check in self.checks.by("namespace", self.velero_namespace):
            if any(self._selects(check, row) for row in rows):
                yield check.key
        for namespace in {row.owner.namespace for row in rows if row.owner is not None}:
            yield from self._served_keys(namespace)

    def _for_location(self, change: Change[LocationRow]) -> Iterator[Key]:
        """Return every check if a location came, went or changed; Velero writes to each of them every minute.

        No check reads a tenant's own one, and tenants create and delete them as they like.
        """
        rows = [each for each in (change.old, change.new) if each is not None]
        if change.old != change.new and any(row.is_default or not row.is_tenants for row in rows):
            yield from (row.key for row in self.checks.rows())

    def _for_owned_object(self, change: Change[OwnedObject]) -> Iterator[Key]:
        row = change.new or change.old
        if row is not None and row.check:
            yield Key(row.check_namespace or self.velero_namespace, row.check)

    def _for_sandbox(self, change: Change[OwnedObject]) -> Iterator[Key]:
        """Return the check of a sandbox; once it is deleted, those of the tenant's namespace that it blocked."""
        yield from self._for_owned_object(change)
        if change.new is None and change.old is not None and change.old.check_namespace:
            yield from self._served_keys(change.old.check_namespace)

    def _for_namespace(self, change: Change[NamespaceRow]) -> Iterator[Key]:
        if change.old != change.new:
            yield from (check.key for check in self.checks.by("namespace", change.key.name) if check.is_tenants)

    def _for_policy(self, change: Change[PolicyRow]) -> Iterator[Key]:
        """Return every tenant's check if a policy changed, and what was made for deleted ones."""
        if change.old != change.new:
            yield from (check.key for check in self.checks.rows() if check.is_tenants)
            yield from {Key(row.check_namespace, row.check) for row in self.config_maps.rows() if row.check_namespace}

    def _for_request(self, change: Change[RequestRow]) -> Iterator[Key]:
        """Return the served checks that select a NonAdminBackup, or did; without a Backup, none can check it."""
        rows = [each for each in (change.old, change.new) if each is not None and change.old != change.new]
        if not any(Key(self.velero_namespace, nacuuid(row)) in self.backups for row in rows):
            return
        for key in self._served_keys(change.key.namespace):
            check = self.checks.get(key)
            if check is not None and any(tenants.is_chosen(check, row, self._schedule(check)) for row in rows):
                yield key

    def _for_schedule(self, change: Change[RequestRow]) -> Iterator[Key]:
        """Return the served checks that name a NonAdminSchedule."""
        for key in self._served_keys(change.key.namespace) if change.old != change.new else ():
            check = self.checks.get(key)
            if check is not None and check.spec.backups.non_admin_schedule == change.key.name:
                yield key

    def _served_keys(self, namespace: str) -> Iterable[Key]:
        """Return the checks of a tenant's namespace that the policy serves, the oldest ones."""
        policy = self._policy(namespace)
        return self.ages.oldest(namespace, policy.maximum) if policy is not None else ()

    def _for_quota(self, change: Change[OwnedObject]) -> Iterator[Key]:
        """Return the check of a quota that came or began to count; Velero's every object changes its figures."""
        if change.old != change.new:
            yield from self._for_owned_object(change)

    def observe(self, key: Key, now: datetime) -> CheckView | VolumeRow | None:
        """Collect what is known about a check or a volume; None if it cannot be read."""
        return self._observe_check(key, now) if key.namespace else self.volumes.get(key)

    def _observe_check(self, key: Key, now: datetime) -> CheckView | None:
        """Collect what is known about a check; None if it cannot be read, because its sandbox may be in use.

        A tenant's check that cannot be read, or is being deleted, counts as deleted: it keeps no sandbox.
        """
        is_tenants = key.namespace != self.velero_namespace
        if key in self.checks.unread and not is_tenants:
            return None
        check = self.checks.get(key)
        if check is not None and check.is_tenants and check.is_terminating:
            check = None
        owner = Key(key.namespace if is_tenants else "", key.name)
        view = CheckView(
            key=key,
            check=check,
            tenant=self._tenant(key, check, now) if is_tenants else None,
            sandboxes=tuple(self.sandboxes.by("check", owner)),
            quotas=tuple(self.quotas.by("check", owner)),
            restores=tuple(self.restores.by("check", owner)),
            config_maps=tuple(self.config_maps.by("check", owner)),
            downloads=tuple(self.downloads.by("check", owner)),
        )
        if check is None:
            return view if view.sandboxes or view.restores or view.config_maps or view.downloads else None
        if view.tenant is not None and tenants.refusal(check, view.tenant) is not None:
            return view
        return self._with_backups(view, check)

    def _with_backups(self, view: CheckView, check: CheckRow) -> CheckView:
        """Add what a check that may run depends on: Backups, volumes, and what was read in the background."""
        is_tenants = view.tenant is not None
        backup = self._backup_in_check(check)
        location = self._location(backup) if backup is not None else None
        return replace(
            view,
            backups=tuple(self._own_backups(check) if is_tenants else self._selected_backups(check)),
            authority=location.authority if location is not None else "",
            environment=self._environment(backup, location),
            classes=tuple(sorted(row.name for row in self.classes)),
            taken_volumes=tuple(self._taken_volumes(view)),
            free_volumes={row.free_class or "": row.key.name for row in self.volumes.by("free", "")},
            data=None if is_tenants else self.data,  # a tenant starts no pods
            read_result=self.background_reads.result(view.key),
        )

    def _backup_in_check(self, check: CheckRow) -> BackupRow | None:
        run = check.status.run
        return next(iter(self.backups.by("uid", run.backup_uid)), None) if run is not None else None

    def _taken_volumes(self, view: CheckView) -> Iterator[str]:
        for sandbox in view.sandboxes:
            for row in self.volumes.by("sandbox", sandbox.key.name):
                yield row.key.name

    def _selected_backups(self, check: CheckRow) -> Iterator[BackupRow]:
        """Return the Backups that the check of an administrator selects."""
        completed = self.backups.by("phase", velero.COMPLETED)
        return (backup for backup in completed if self._selects(check, backup))

    def _own_backups(self, check: CheckRow) -> Iterator[BackupRow]:
        """Return the Backups that a tenant's check selects: of its own NonAdminBackups, by their records."""
        here = check.key.namespace
        namespace = self.namespaces.get(Key("", here))
        schedule = self._schedule(check)
        for backup in self.backups.by("completed of", here) if namespace is not None else ():
            request = self.requests.get(backup.owner) if backup.owner is not None else None
            if request is None or namespace is None or not is_owned(request, namespace, backup):
                continue
            if tenants.is_chosen(check, request, schedule) and rules.is_of_administrator(self._location(backup)):
                yield backup

    def _schedule(self, check: CheckRow) -> RequestRow | None:
        """Return the NonAdminSchedule that a tenant's check names."""
        name = check.spec.backups.non_admin_schedule
        return self.schedules.get(Key(check.key.namespace, name)) if name is not None else None

    def _tenant(self, key: Key, check: CheckRow | None, now: datetime) -> Tenant:
        """Return what holds for a check in the namespace of a tenant."""
        others = (row for row in self.checks.by("running for", "tenants") if row.key != key)
        ends = [until for row in others if (until := tenants.busy_until(row)) is not None and until > now]
        return Tenant(
            namespace=self.namespaces.get(Key("", key.namespace)),
            policy=self._policy(key.namespace),
            rank=self.ages.rank(check) if check is not None else 0,
            starts=(*self.config_maps.by("starts", key.namespace), *self.starts.of(key.namespace)),
            is_free=self.turns.is_free(key, is_busy=bool(ends)),
            busy_until=max(ends, default=None),
            sandboxes=tuple(self.sandboxes.by("tenant", key.namespace)),
        )

    def _policy(self, namespace: str) -> RestoreChecksPolicy | None:
        row = self.namespaces.get(Key("", namespace))
        policy = policy_for(namespace, row.labels, self.policies.rows(), self.never) if row is not None else None
        return policy.spec.restore_checks if policy is not None else None

    async def _read(self, query: Query) -> Found:
        if isinstance(query, Files):
            return await self._read_files(query)
        return await self._read_pods(query) if self._read_pods is not None else PodsFound(problem="depth Data is off")

    def decide(self, view: CheckView | VolumeRow, now: datetime) -> Plan:
        """Return the Plan."""
        return decide_volume(view) if isinstance(view, VolumeRow) else decide(view, now)

    def begin(self, key: Key, view: CheckView | VolumeRow, plan: Plan, now: datetime) -> Iterable[Key]:
        """Reserve the turn of a tenant's check that starts, and count the start."""
        if plan.verdict is Turn.TAKES and isinstance(view, CheckView) and view.check is not None:
            self.turns.take(key)
            start = build.started(view.check, plan.actions, now)
            if start.key not in self.config_maps:
                self.starts.add(start, now, now + tenants.interval(view.tenant))
        return ()

    def settled(
        self, key: Key, view: CheckView | VolumeRow | None, plan: Plan, result: Result, _now: datetime
    ) -> Iterable[Key]:
        """Note when the check must pass again and who waits, and forget what was read for a run that is over."""
        if isinstance(view, VolumeRow):
            return ()
        if view is None or view.check is None or view.tenant is not None:
            self.pass_due.pop(key, None)
        else:
            self.pass_due[key] = rules.pass_due(view.check, view.backups)
        if view is None or view.check is None or view.check.status.run is None:
            self.background_reads.forget(key)
        return self._settle_turn(key, plan, result) if key.namespace != self.velero_namespace else ()

    def crashed(self, key: Key) -> Iterable[Key]:
        """Release the turn of a check whose reconcile raised."""
        return self._give_way(key)

    def start_term(self) -> Iterable[Key]:
        """Forget who waits: everybody is reconciled."""
        self.turns = Turns()
        return ()

    def _settle_turn(self, key: Key, plan: Plan, result: Result) -> Iterable[Key]:
        """Note that a check waits for its turn; one that does not, or whose writes fail, blocks nobody."""
        if result.outcome is not Outcome.DONE:
            return self._give_way(key)
        if plan.verdict is Turn.WAITS:
            self.turns.wait(key)
            return ()
        if plan.verdict is Turn.TAKES:
            return ()
        if key == self.turns.first:
            return self._give_way(key)
        self.turns.leave(key)
        return ()

    def _give_way(self, key: Key) -> Iterable[Key]:
        """Let the next check have the turn."""
        self.turns.release(key)
        self.turns.leave(key)
        first = self.turns.first
        return () if first is None else (first,)

    def _environment(self, backup: BackupRow | None, location: LocationRow | None) -> Environment:
        """Return what the evidence says about Velero and the bucket; credentials are not read."""
        return Environment(
            velero_image=next((row.image for row in self.servers.rows() if row.image), ""),
            backup_kubernetes=backup.kubernetes if backup is not None else "",
            location=location.key.name if location is not None else "",
            bucket=location.bucket if location is not None else "",
            prefix=location.prefix if location is not None else "",
        )

    def _selects(self, check: CheckRow, backup: BackupRow) -> bool:
        return rules.is_selected(check, backup) and rules.is_of_administrator(self._location(backup))

    def _location(self, backup: BackupRow) -> LocationRow | None:
        defaults = (location.key.name for location in self.locations.by("role", "default"))
        name = velero.resolve_location(backup.location, defaults)
        return self.locations.get(Key(self.velero_namespace, name))


def _is_running(row: CheckRow | None) -> bool:
    return row is not None and tenants.busy_until(row) is not None


def _running_for(row: CheckRow) -> list[str]:
    return ["tenants"] if row.is_tenants and _is_running(row) else []


def _starts_in(row: OwnedObject) -> list[str]:
    return [row.check_namespace] if row.check_namespace and build.is_start(row) else []


def _location_row(wire: mirrored.Location) -> LocationRow:
    storage = wire.spec.object_storage
    authority = storage.ca_cert if storage is not None else None
    return LocationRow(
        key=Key(wire.metadata.namespace, wire.metadata.name),
        authority=authority.decode(errors="replace") if authority else "",
        is_default=bool(wire.spec.default),
        is_tenants=nonadmin.LOCATION_ORIGIN in (wire.metadata.annotations or {}),
        bucket=storage.bucket if storage is not None else "",
        prefix=storage.prefix if storage is not None else "",
    )
