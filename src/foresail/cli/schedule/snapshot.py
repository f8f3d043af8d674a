"""Evaluates the operator's rules against a snapshot of the cluster; works without a running operator."""

import argparse
import sys
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.apps import DEPLOYMENT, Deployment, StartedPod
from foresail.api.marks import SCHEDULES_LEASE, SELF_SERVICE_LEASE
from foresail.api.pods import POD
from foresail.api.schedule_policy import SCHEDULE_POLICY, SchedulePolicy
from foresail.cli.access.cluster import Cluster, on_cluster
from foresail.cli.access.operators import OPERATORS, Lease, Operator, is_operator, leader, operator_of
from foresail.cli.access.refused_writes import RefusedWrite
from foresail.cli.access.together import all_of, together
from foresail.cli.errors import CommandError, UnreachableError
from foresail.cli.output.messages import hint
from foresail.cron import CronError, Dialect
from foresail.cron.zone_names import validate_zone_name
from foresail.kube.clock import now
from foresail.kube.lease import LEASE
from foresail.plan import Key, Kind, Level
from foresail.reporting import Because
from foresail.safety.velero_pods import (
    RUNS,
    VeleroState,
    last_validation,
    server_pods,
    validates_every,
    velero_state,
)
from foresail.schedules.groups import unfinished_of_groups, view_of
from foresail.schedules.observe import (
    BackupRow,
    DeletionRow,
    LocationRow,
    RestoreRow,
    ScheduleRow,
    ScheduleView,
    Unread,
    VeleroServer,
    backup_row,
    deletion_row,
    location_of,
    location_row,
    restore_row,
    schedule_row,
)
from foresail.schedules.policies import settings_under
from foresail.schedules.reasons import Reason
from foresail.schedules.retention import deletion_name, unusable_deletion
from foresail.schedules.rules import Verdict, judge, location_unavailable, velero_schedules
from foresail.schedules.settings import Settings
from foresail.schedules.status import last_observed
from foresail.schedules.velero_server import SERVER_PODS, deployment_row, identify_server, pod_row
from foresail.slots.policy_timing import PolicyRow, policy_for, policy_row

NOTED = "recorded by the operator"
"""Shown instead of a version of Velero that only the operator knows."""


_schedule = msgspec.json.Decoder(velero.Schedule)
_backup = msgspec.json.Decoder(velero.Backup)
_location = msgspec.json.Decoder(velero.Location)
_deployment = msgspec.json.Decoder(Deployment)
_policy = msgspec.json.Decoder(SchedulePolicy)
_deletion = msgspec.json.Decoder(velero.DeleteBackupRequest)
_restore = msgspec.json.Decoder(velero.Restore)
_any = msgspec.json.Decoder(dict[str, Any])


@dataclass(frozen=True, slots=True)
class NamespaceSnapshot:
    """Everything in one namespace that a decision depends on, except the Schedules."""

    server: VeleroServer
    backups: Mapping[str, tuple[BackupRow, ...]]  # by the name of their Schedule
    locations: tuple[LocationRow, ...]
    operator: str  # the replica that runs Schedules; empty if none does
    settings: Settings
    self_service: str = ""  # the replica that runs what tenants ask for; empty if none does
    policies: tuple[PolicyRow, ...] = ()
    deletions: tuple[DeletionRow, ...] = ()  # read only if a policy has retention
    unread_deletions: tuple[Unread, ...] = ()  # the same
    restores: tuple[RestoreRow, ...] = ()  # the same
    unfinished: Mapping[str, Sequence[str]] = field(default_factory=dict)  # by group, if a policy limits Backups
    velero: VeleroState = RUNS  # whether a Velero server runs
    deployments: tuple[Deployment, ...] = ()  # in Velero's namespace

    @property
    def is_run_by_velero(self) -> bool:
        """Whether Velero itself runs the Schedules: it knows no SchedulePolicy."""
        return not self.operator and bool(self.server.has_schedule_controller)


@dataclass(frozen=True, slots=True)
class EvaluatedSchedule:
    """A Schedule with the verdict of the rules at an instant."""

    content: dict[str, Any]
    view: ScheduleView
    verdict: Verdict
    operator: str
    refused: RefusedWrite | None = None  # read by `explain` alone
    known: NamespaceSnapshot | None = None  # what it was evaluated against

    @property
    def schedule(self) -> ScheduleRow:
        """The Schedule itself."""
        return self.view.schedule

    @property
    def spec(self) -> dict[str, Any]:
        """The spec as it is in the cluster."""
        spec: dict[str, Any] = self.content.get("spec") or {}
        return spec

    @property
    def paused_since(self) -> str:
        """When the operator observed the pause; empty if it has not."""
        memory = last_observed(self.schedule)
        return memory.paused if memory else ""

    @property
    def blocked_by(self) -> Because | None:
        """Why it does not run, or will not when it is due."""
        if self.verdict.refused is not None:
            return self.verdict.refused
        if self.schedule.paused:
            since = f" since {self.paused_since}" if self.paused_since else ""
            text = f"it is paused{since}; to resume it: foresail schedule unpause {self.schedule.key.name}"
            return Because(Reason.PAUSED, text, Level.NORMAL)
        return None if self.verdict.is_settling else self.verdict.blocked_by

    @property
    def blocks_next_run(self) -> Because | None:
        """What would block the next run if it were due now; a Backup that runs has ended by then."""
        if self.blocked_by is not None or self.verdict.due is not None or self.verdict.starts is None:
            return None
        at = self.verdict.starts
        blockers = (velero_schedules, location_unavailable) if self.operator else (location_unavailable,)
        return next(filter(None, (blocker(self.view, at) for blocker in blockers)), None)


def settings_of(args: argparse.Namespace) -> Settings:
    """Return the settings under which Schedules are read."""
    return settings_in(getattr(args, "velero_time_zone", None) or "UTC")


def settings_in(zone: str) -> Settings:
    """Return the settings for a zone."""
    try:
        return Settings(zone=validate_zone_name(zone))
    except CronError as error:
        raise CommandError(f"--velero-time-zone: {error}") from error


async def read_namespace(
    cluster: Cluster,
    namespace: str,
    args: argparse.Namespace,
    instant: datetime,
    policies: tuple[PolicyRow, ...] = (),
) -> NamespaceSnapshot:
    """Read everything in a namespace that a decision about its Schedules depends on."""

    async def known() -> tuple[PolicyRow, ...]:
        return policies

    return await _read_under(cluster, namespace, args, instant, known())


async def _read_under(
    cluster: Cluster,
    namespace: str,
    args: argparse.Namespace,
    instant: datetime,
    under: Awaitable[tuple[PolicyRow, ...]],
) -> NamespaceSnapshot:
    """Read a namespace at the same time as the policies, which decide what else is read."""
    async with together() as tasks:
        listed = tasks.begin(cluster.listed(velero.BACKUP, namespace, velero.SCHEDULE_LABEL))
        locations = tasks.begin(cluster.listed(velero.LOCATION, namespace))
        controllers = tasks.begin(read_controllers(cluster, namespace, args, instant))
        policies = await under
        deletes = any(policy.spec.retention for policy in policies)
        limits = any(policy.spec.concurrency for policy in policies)
        deletions = tasks.begin(_listed_for(cluster, velero.DELETE_REQUEST, namespace, is_needed=deletes))
        restores = tasks.begin(_listed_for(cluster, velero.RESTORE, namespace, is_needed=deletes))
        schedules = tasks.begin(_listed_for(cluster, velero.SCHEDULE, namespace, is_needed=limits))
    run_by = controllers.result()
    zone = getattr(args, "velero_time_zone", None) or run_by.zone
    deletion_rows, unread = _deletion_rows(deletions.result())
    rows = [backup_row(_backup.decode(raw)) for raw in listed.result()]
    stores = [_location.decode(raw) for raw in locations.result()]
    validation = last_validation(stores, validates_every(run_by.deployments))
    server_time = instant - (cluster.client.skew or timedelta())
    return NamespaceSnapshot(
        server=run_by.server,
        backups=backups_by_schedule(rows),
        unfinished=unfinished_of_groups((row_of(raw) for raw in schedules.result()), rows, policies, instant),
        locations=tuple(map(location_row, stores)),
        operator=run_by.operator,
        self_service=run_by.self_service,
        settings=settings_in(zone),
        policies=policies,
        deletions=deletion_rows,
        unread_deletions=unread,
        restores=tuple(restore_row(_restore.decode(raw)) for raw in restores.result()),
        velero=velero_state(server_pods(run_by.deployments), validation, server_time),
        deployments=run_by.deployments,
    )


async def _listed_for(cluster: Cluster, kind: Kind, namespace: str, *, is_needed: bool) -> list[msgspec.Raw]:
    return await cluster.listed(kind, namespace) if is_needed else []


def _deletion_rows(raws: Iterable[msgspec.Raw]) -> tuple[tuple[DeletionRow, ...], tuple[Unread, ...]]:
    """Return the rows of DeleteBackupRequests, and those that cannot be read."""
    rows: list[DeletionRow] = []
    unread: list[Unread] = []
    for raw in raws:
        try:
            rows.append(deletion_row(_deletion.decode(raw)))
        except msgspec.ValidationError as error:
            metadata = _any.decode(raw)["metadata"]
            unread.append(Unread(Key(metadata["namespace"], metadata["name"]), str(error)))
    return tuple(rows), tuple(unread)


async def read_policies(cluster: Cluster, unread: list[str] | None = None) -> tuple[PolicyRow, ...]:
    """Read the SchedulePolicies; say which are left out, and add to `unread` what is unknown without them."""
    missing = unread if unread is not None else []
    try:
        items = await cluster.listed_if_known(SCHEDULE_POLICY)
    except UnreachableError:
        raise
    except CommandError as error:
        hint(f"SchedulePolicies are not considered: {error.problem}")
        missing.append(f"the objective that a SchedulePolicy may set: {error.problem}")
        return ()
    rows: list[PolicyRow] = []
    for raw in items:
        try:
            rows.append(policy_row(_policy.decode(raw)))
        except msgspec.ValidationError as error:
            name = _any.decode(raw)["metadata"]["name"]
            hint(f"SchedulePolicy {name} is not considered, because it cannot be read: {error}")
            missing.append(f"the objective that SchedulePolicy {name} may set: it cannot be read")
    return tuple(rows)


@dataclass(frozen=True, slots=True)
class Controllers:
    """Which Velero and which replicas of the operator run."""

    server: VeleroServer
    operator: str  # the replica that runs Schedules; empty if none does
    self_service: str  # the replica that runs what tenants ask for; empty if none does
    zone: str  # in which the operator reads expressions
    deployments: tuple[Deployment, ...] = ()  # in the namespace


async def read_controllers(
    cluster: Cluster, namespace: str, args: argparse.Namespace, instant: datetime
) -> Controllers:
    """Read which Velero runs in a namespace, and which replicas of the operator hold their leases."""
    async with together() as tasks:
        deployed = tasks.begin(_read_deployed(cluster, namespace, args))
        lease = tasks.begin(cluster.if_there(LEASE, Key(namespace, SCHEDULES_LEASE), Lease))
        lease_for_tenants = tasks.begin(_lease_if_allowed(cluster, Key(namespace, SELF_SERVICE_LEASE)))
    known, operators, deployments = deployed.result()
    vouches = any(one.velero_schedules_off for one in operators)
    server_time = instant - (cluster.client.skew or timedelta())
    holder = leader(lease.result(), server_time)
    of_tenants = leader(lease_for_tenants.result(), server_time)
    # Deployments that may not be listed may run either.
    runs = [one for one in operators if one.lease == SCHEDULES_LEASE]
    runs_schedules = not runs or any(one.schedules for one in runs)
    serves_tenants = not operators or any(one.self_service for one in runs)
    return Controllers(
        msgspec.structs.replace(known, is_recognised=known.is_recognised or vouches),
        holder if runs_schedules else "",
        of_tenants or (holder if serves_tenants else ""),
        next((one.zone for one in operators if one.zone), "UTC"),
        deployments,
    )


async def _read_deployed(
    cluster: Cluster, namespace: str, args: argparse.Namespace
) -> tuple[VeleroServer, list[Operator], tuple[Deployment, ...]]:
    """Read Velero's server and the operators; pods only where no Deployment runs Velero."""
    deployments = [_deployment.decode(raw) for raw in await cluster.listed(DEPLOYMENT, namespace)]
    rows = [row for row in map(deployment_row, deployments) if row is not None]
    flag = Dialect(args.velero_dialect) if getattr(args, "velero_dialect", None) else None
    pods = await _listed_if_allowed(cluster, POD, namespace, SERVER_PODS) if not rows else []
    operators = await _read_operators(cluster, deployments)
    known = identify_server(rows, "", flag, pods=[pod_row(msgspec.json.decode(pod, type=StartedPod)) for pod in pods])
    return known, operators, tuple(deployments)


async def _read_operators(cluster: Cluster, deployments: Iterable[Deployment]) -> list[Operator]:
    """Return the operators in Velero's namespace, or in any other; none if these may not be listed."""
    ours = list(filter(is_operator, deployments))
    if not ours:
        elsewhere = await _listed_if_allowed(cluster, DEPLOYMENT, "", OPERATORS)
        ours = list(filter(is_operator, map(_deployment.decode, elsewhere)))
    return list(map(operator_of, ours))


async def _lease_if_allowed(cluster: Cluster, key: Key) -> Lease | None:
    """Return a Lease that most commands do not need; None if there is none, or it may not be read."""
    try:
        return await cluster.if_there(LEASE, key, Lease)
    except UnreachableError:
        raise
    except CommandError:
        return None


async def _listed_if_allowed(cluster: Cluster, kind: Kind, namespace: str, selector: str) -> list[msgspec.Raw]:
    try:
        return await cluster.listed(kind, namespace, selector)
    except UnreachableError:
        raise
    except CommandError:
        return []


async def selected_schedules(cluster: Cluster, args: argparse.Namespace) -> list[msgspec.Raw]:
    """Read the Schedules that are named or selected, or all of them."""
    names: Sequence[str] = args.names
    if names and (args.selector or args.all_namespaces or getattr(args, "all", False)):
        problem = f"Schedule {names[0]}: names cannot be combined with -l, -A or --all"
        raise CommandError(problem, "specify either names or a selection")
    if names:
        return await all_of(cluster.read(velero.SCHEDULE, Key(args.namespace, name), msgspec.Raw) for name in names)
    namespace = "" if args.all_namespaces else args.namespace
    return await cluster.listed(velero.SCHEDULE, namespace, args.selector or "")


def read_selected(args: argparse.Namespace) -> tuple[list[EvaluatedSchedule], datetime]:
    """Return the selected Schedules, evaluated now, and that instant; report if there are none."""
    instant = now()
    evaluated = on_cluster(args, lambda cluster: evaluate_selected(cluster, args, instant))
    if not evaluated:
        _report_none(args)
    return evaluated, instant


def read_contents(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the selected Schedules as they are in the cluster; report if there are none."""
    pairs = [(row_of(raw).key, _any.decode(raw)) for raw in on_cluster(args, lambda to: selected_schedules(to, args))]
    if not pairs:
        _report_none(args)
    rows = pairs if args.names else sorted(pairs, key=lambda pair: pair[0])
    return [_with_kind(content) for _, content in rows]


def _report_none(args: argparse.Namespace) -> None:
    where = "any namespace" if args.all_namespaces else f"namespace {args.namespace}"
    print(f"No schedules found in {where}", file=sys.stderr)


async def evaluate_selected(cluster: Cluster, args: argparse.Namespace, instant: datetime) -> list[EvaluatedSchedule]:
    """Read the selected Schedules and evaluate each of them."""
    async with together() as tasks:
        policies = tasks.begin(read_policies(cluster))
        namespace = "" if args.all_namespaces else args.namespace
        # The namespace is known before its Schedules are.
        early = [namespace] if namespace else []
        begun = {
            namespace: tasks.begin(_read_under(cluster, namespace, args, instant, policies)) for namespace in early
        }
        pairs = [(row_of(schedule), _any.decode(schedule)) for schedule in await selected_schedules(cluster, args)]
        if not pairs:
            await tasks.cancel()
            return []
        namespaces = sorted({row.key.namespace for row, _ in pairs} - begun.keys())
        begun |= {
            namespace: tasks.begin(_read_under(cluster, namespace, args, instant, policies)) for namespace in namespaces
        }
    known = {namespace: task.result() for namespace, task in begun.items()}
    rows = pairs if args.names else sorted(pairs, key=lambda pair: pair[0].key)
    return [evaluate(row, content, known[row.key.namespace], instant) for row, content in rows]


def evaluate(
    schedule: ScheduleRow, content: dict[str, Any], known: NamespaceSnapshot, instant: datetime
) -> EvaluatedSchedule:
    """Evaluate one Schedule in its namespace."""
    policy = policy_for(schedule.key.name, schedule.labels, known.policies)
    backups = known.backups.get(schedule.key.name, ())
    names = {backup.key.name for backup in backups}
    read = {restore.backup for restore in known.restores}
    from_schedule = any(restore.schedule == schedule.key.name for restore in known.restores)
    unusable = _unusable_deletions(names, known)
    requested = {*(deletion.backup for deletion in known.deletions), *unusable}
    view = ScheduleView(
        schedule=schedule,
        backups=backups,
        location=location_of(schedule.location, known.locations),
        server=_velero_server(known.server, schedule),
        settings=settings_under(policy, known.settings),
        policy=policy,
        group=view_of(policy, known.policies, known.unfinished),
        locations=known.locations,
        deletions=tuple(deletion for deletion in known.deletions if deletion.backup in names),
        open_deletions=sum(deletion.is_ours and deletion.is_pending(instant) for deletion in known.deletions),
        unusable=unusable,
        unrequested={
            backup.key.name: backup.created
            for backup in backups
            if backup.phase == velero.DELETING and backup.key.name not in requested
        },
        restored=frozenset(names if from_schedule else names & read),
        skew=timedelta(),  # the operator's clock is not known here
    )
    ruled = msgspec.structs.replace(view, policy=None, group=None, settings=known.settings)
    verdict = judge(ruled if known.is_run_by_velero else view, instant)
    return EvaluatedSchedule(_with_kind(content), view, verdict, known.operator, known=known)


def _with_kind(content: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": velero.SCHEDULE.api_version, "kind": velero.SCHEDULE.name, **content}


def _unusable_deletions(backups: Iterable[str], known: NamespaceSnapshot) -> dict[str, Unread]:
    rows = {deletion.key.name: deletion for deletion in known.deletions}
    unread = {deletion.key.name: deletion for deletion in known.unread_deletions}
    requests = ((name, deletion_name(name)) for name in backups)
    problems = ((name, unusable_deletion(name, rows.get(of), unread.get(of))) for name, of in requests)
    return {name: problem for name, problem in problems if problem is not None}


def _velero_server(known: VeleroServer, schedule: ScheduleRow) -> VeleroServer:
    """Return what is known of Velero; without a version, the dialect that the operator recorded counts."""
    memory = last_observed(schedule)
    if known.dialect is not None or memory is None or memory.read_by is None:
        return known
    return msgspec.structs.replace(known, dialect=memory.read_by, version=NOTED)


def backups_by_schedule(backups: Iterable[BackupRow]) -> dict[str, tuple[BackupRow, ...]]:
    """Return Backups under the names of their Schedules."""
    grouped: dict[str, list[BackupRow]] = {}
    for backup in backups:
        grouped.setdefault(backup.schedule, []).append(backup)
    return {name: tuple(rows) for name, rows in grouped.items()}


def row_of(raw: msgspec.Raw) -> ScheduleRow:
    """Return a Schedule as the rules see it."""
    try:
        return schedule_row(_schedule.decode(raw))
    except (msgspec.DecodeError, ValueError) as error:
        metadata = _any.decode(raw).get("metadata") or {}
        name = f"{metadata.get('namespace')}/{metadata.get('name')}"
        raise CommandError(f"Schedule {name} cannot be decoded: {error}", "correct it") from error
