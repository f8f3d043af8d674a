"""Reads what coverage is judged from."""

import argparse
from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from foresail.api import nonadmin, velero
from foresail.api.apps import DAEMON_SET, DaemonSet, Deployment, server_words
from foresail.api.authorization import DiscoveredResource
from foresail.api.core import CLAIM, CONFIG_MAP, NAMESPACE, VOLUME, ConfigMap
from foresail.api.instants import instant
from foresail.api.marks import REQUEST_UID, SCHEDULE_UID
from foresail.api.metadata import Metadata
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_SCHEDULE
from foresail.api.pods import POD
from foresail.api.specs import BackupSpec, StoredBackupSpec
from foresail.cli.access.cluster import Cluster
from foresail.cli.coverage.tenant_schedules import allows_files, read_rules, spec_of, tenant_schedules
from foresail.cli.errors import CommandError, UnreachableError
from foresail.cli.output.messages import hint
from foresail.cli.output.words import short
from foresail.cli.schedule.hints import is_without_its_policy, nobody_runs, runner_unknown, velero_down
from foresail.cli.schedule.snapshot import (
    EvaluatedSchedule,
    NamespaceSnapshot,
    evaluate,
    read_namespace,
    read_policies,
    row_of,
)
from foresail.deletion import SKEW
from foresail.origin import Origin, origin_of
from foresail.plan import Key
from foresail.proof.view import BackupRow, ClaimRow, CoverageView, NamespaceRow, ScheduleRow
from foresail.reporting import Because
from foresail.safety.velero_pods import agents_problem
from foresail.schedules.expression import parse_expression
from foresail.schedules.observe import LocationRow, location_of
from foresail.schedules.rules import cannot_run, location_problem
from foresail.scope.discovery import BACKED_UP_VERBS, Discovery, ResourceKind
from foresail.scope.releases import Release, release_of, unknown_release
from foresail.scope.resource_policies import Policies, PolicyError, config_map_of, merged, policies_of
from foresail.scope.server import ServerFlags, server_flags
from foresail.scope.world import claims_of
from foresail.selfservice.access.discovery import CORE
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests.status import DATA_INCOMPLETE, TRUE
from foresail.slots.interval import expected_since
from foresail.slots.policy_timing import rpo_of

_AGGREGATED = "APIGroupDiscoveryList"


async def read_kinds(cluster: Cluster, specs: Iterable[BackupSpec], unknown: list[str]) -> Discovery | None:
    """Return the kinds that Velero can back up; None if no spec includes kinds by name, or discovery fails."""
    if not any(spec.included_resources or spec.included_namespace_scoped_resources for spec in specs):
        return None
    discovery = await cluster.discovered()
    if discovery is None or discovery.kind != _AGGREGATED:
        hint("the API server lists no kinds: not judged is whether a template includes cluster-scoped kinds only")
        unknown.append("whether a template includes cluster-scoped kinds only: the API server lists no kinds")
        return None
    kinds = {
        (group.metadata.name, resource.resource): _kind(group.metadata.name, resource)
        for group in discovery.items or ()
        for version in reversed(group.versions or ())  # the first version is the preferred one
        for resource in version.resources or ()
        if BACKED_UP_VERBS.issubset(resource.verbs or ())
    }
    return Discovery((*_CORE, *kinds.values()))


def _kind(group: str, resource: DiscoveredResource) -> ResourceKind:
    kind = resource.response_kind.kind if resource.response_kind is not None else ""
    return ResourceKind(
        group,
        resource.resource,
        kind,
        resource.scope == "Namespaced",
        resource.singular_resource or kind.lower(),
        resource.short_names or (),
    )


_CORE = tuple(
    ResourceKind("", kind.plural, kind.kind, kind.is_namespaced, kind.kind.lower(), kind.aliases)
    for kind in CORE
    if kind.plural != "bindings"  # Velero cannot list them
)


class UnreadError(PolicyError):
    """Why a resource policy could not be read."""


Found = Mapping[str, Policies | PolicyError | None]
"""By the name of the ConfigMap, empty for specs without: the policies, or why Velero refuses them or nobody read them.
"""


async def read_resource_policies(
    cluster: Cluster, namespace: str, specs: Iterable[BackupSpec], release: Release, global_policies: str
) -> Found:
    """Return the policies of these specs, with those of the server for all backups; name those that may not be read."""
    names = dict.fromkeys(map(config_map_of, specs))
    own = {name: await _read_or_refused(cluster, Key(namespace, name), release) if name else None for name in names}
    if not global_policies:
        return own
    for_all = await _read_or_refused(cluster, Key(namespace, global_policies), release)
    return {name: _with_global(policy, for_all) for name, policy in own.items()}


def _with_global(
    own: Policies | PolicyError | None, for_all: Policies | PolicyError | None
) -> Policies | PolicyError | None:
    if isinstance(own, PolicyError) or for_all is None:
        return own
    if isinstance(for_all, UnreadError):
        return for_all
    if isinstance(for_all, PolicyError):
        return PolicyError(f"the global volume policies: {for_all}")
    return merged(own, for_all)


async def _read_or_refused(cluster: Cluster, key: Key, release: Release) -> Policies | PolicyError | None:
    """Return the policies of a ConfigMap, or why Velero refuses them or they may not be read."""
    try:
        return await _read(cluster, key, release)
    except PolicyError as error:
        return error
    except UnreachableError:
        raise
    except CommandError as error:
        return UnreadError(f"the policies in ConfigMap {key.name} cannot be read: {error.problem}")


async def _read(cluster: Cluster, key: Key, release: Release) -> Policies:
    config_map = await cluster.if_there(CONFIG_MAP, key, ConfigMap)
    if config_map is None:
        raise PolicyError(f"ConfigMap {key.name} does not exist")
    return policies_of(config_map.data, release)


def with_policies(row: ScheduleRow, policies: Found) -> ScheduleRow:
    """Return a schedule with its resource policy, or why Velero refuses that."""
    policy = policies.get(config_map_of(row.spec))
    if isinstance(policy, UnreadError):
        return replace(row, policy_unread=str(policy))
    if isinstance(policy, PolicyError):
        return replace(row, policy_problem=str(policy))
    return replace(row, policies=policy)


_any = msgspec.json.Decoder(dict[str, Any])
_Row = TypeVar("_Row", ScheduleRow, BackupRow)


class _Progress(msgspec.Struct, frozen=True, rename="camel"):
    items_backed_up: int | None = None


class BackupStatus(msgspec.Struct, frozen=True, rename="camel"):
    """What the status of a Velero Backup tells of its data."""

    phase: str = ""
    start_timestamp: datetime | None = None
    completion_timestamp: datetime | None = None
    progress: _Progress | None = None
    errors: int = 0
    failure_reason: str = ""
    validation_errors: tuple[str, ...] | None = None
    volume_snapshots_completed: int = 0
    csi_volume_snapshots_completed: int = 0
    backup_item_operations_completed: int = 0

    @property
    def has_snapshots(self) -> bool:
        """Whether it has snapshots; the data of those that are moved is counted by operations only."""
        made = self.volume_snapshots_completed + self.csi_volume_snapshots_completed
        return made + self.backup_item_operations_completed > 0


class _Backup(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: StoredBackupSpec = StoredBackupSpec()
    status: BackupStatus = BackupStatus()


class _RequestStatus(msgspec.Struct, frozen=True, rename="camel"):
    conditions: list[nonadmin.Condition] | None = None
    volumes_left_out: nonadmin.VolumesLeftOut | None = None


class _Request(msgspec.Struct, frozen=True):
    metadata: Metadata
    status: _RequestStatus = _RequestStatus()


class _NamespaceMetadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    creation_timestamp: datetime
    labels: dict[str, str] | None = None


class _Namespace(msgspec.Struct, frozen=True):
    metadata: _NamespaceMetadata


_backup = msgspec.json.Decoder(_Backup)
_request = msgspec.json.Decoder(_Request)
_namespace = msgspec.json.Decoder(_Namespace)


def clock_doubts(cluster: Cluster) -> list[str]:
    """Return that ages are unknown, if our clock, by which they are counted, is not that of the API server."""
    skew = cluster.client.skew or timedelta()
    if abs(skew) <= SKEW:
        return []
    word = "ahead of" if skew > timedelta() else "behind"
    return [f"how old backups are: the clock of this machine is {short(abs(skew))} {word} the API server's"]


async def read_view(
    cluster: Cluster, velero_namespace: str, objective: timedelta | None, now: datetime
) -> CoverageView:
    """Read the cluster's namespaces, claims, schedules and backups."""
    return (await read_view_and_schedules(cluster, velero_namespace, objective, now))[0]


async def read_view_and_schedules(
    cluster: Cluster, velero_namespace: str, objective: timedelta | None, now: datetime
) -> tuple[CoverageView, list[EvaluatedSchedule]]:
    """Read the same, and return the evaluated Schedules of Velero with it."""
    namespaces = await cluster.listed(NAMESPACE, "")
    backups = [_backup.decode(raw) for raw in await cluster.listed(velero.BACKUP, velero_namespace)]
    schedules = await cluster.listed(velero.SCHEDULE, velero_namespace)
    unknown = clock_doubts(cluster)
    unknown_volumes = list[str]()
    schedule_policies = await read_policies(cluster, unknown if objective is None else None)
    known = await read_namespace(cluster, velero_namespace, argparse.Namespace(), now, schedule_policies)
    unknown += filter(None, [known.velero.unknown, unknown_release(known.server.version)])
    evaluated = [evaluate(row_of(schedule), _any.decode(schedule), known, now) for schedule in schedules]
    rows = tuple(map(_namespace_row, namespaces))
    tenants = await _read_tenants(cluster, rows, backups, unknown_volumes, now)
    release = release_of(known.server.version)
    judged = [
        *(schedule_row(evaluated_schedule, now) for evaluated_schedule in evaluated),
        *_tenant_rows(tenants, known),
    ]
    flags = replace(
        _flags(known.deployments, velero_namespace, unknown_volumes),
        snapshot_providers=await _snapshot_providers(cluster, velero_namespace, unknown_volumes),
    )
    specs = [row.spec for row in judged]
    policies = await read_resource_policies(cluster, velero_namespace, specs, release, flags.global_policies)
    locations = {location.key.name: location for location in known.locations}
    agents_down, agents_unknown = await _read_agents(cluster, velero_namespace)
    view = CoverageView(
        rows,
        claim_rows(*[map(_any.decode, await cluster.listed(kind, "")) for kind in (CLAIM, VOLUME, POD)]),
        tuple(
            _with_bucket(with_policies(row, policies), locations, is_of_tenant=row.kind != "Schedule") for row in judged
        ),
        tuple(
            _with_bucket(row, locations, is_of_tenant=True)
            for row in _backup_rows(
                backups, tenants, (evaluated_schedule.schedule.uid for evaluated_schedule in evaluated)
            )
        ),
        objective,
        release,
        await read_kinds(cluster, [*specs, *(backup.spec for backup in backups)], unknown),
        flags,
        velero_down=known.velero.problem,
        default_location_problem=location_problem("", location_of("", known.locations)),
        unknown=tuple(unknown),
        unknown_volumes=tuple(unknown_volumes),
        agents_down=agents_down,
        agents_unknown=agents_unknown,
    )
    return view, evaluated


async def _read_agents(cluster: Cluster, namespace: str) -> tuple[str, str]:
    """Return why no node agent works, and why that is unknown."""
    try:
        listed = await cluster.listed(DAEMON_SET, namespace)
    except UnreachableError:
        raise
    except CommandError as error:
        return "", f"whether Velero's node agents run: {error.problem}"
    return agents_problem(msgspec.json.decode(raw, type=DaemonSet) for raw in listed), ""


@dataclass(frozen=True, slots=True)
class _Tenants:
    """The NonAdminSchedules with their rows, and the NonAdminBackups."""

    schedules: list[tuple[nonadmin.Schedule, ScheduleRow]]
    requests: list[_Request]


async def _read_tenants(
    cluster: Cluster, rows: Collection[NamespaceRow], backups: Iterable[_Backup], unknown: list[str], now: datetime
) -> _Tenants:
    """Read the schedules of tenants, and their requests if there are any."""
    listed = await cluster.listed_if_known(NON_ADMIN_SCHEDULE)
    rules = await read_rules(cluster, rows, unknown) if listed else {}
    with_files = {row.name for row in rows if allows_files(row.labels)}
    schedules = list(tenant_schedules(listed, rules, with_files, now))
    has_requests = bool(schedules) or any(REQUEST_UID in (backup.metadata.annotations or {}) for backup in backups)
    requests = await cluster.listed_if_known(NON_ADMIN_BACKUP) if has_requests else []
    return _Tenants(schedules, [_request.decode(request) for request in requests])


def _tenant_rows(tenants: _Tenants, known: NamespaceSnapshot) -> Iterator[ScheduleRow]:
    """Yield the schedules of tenants with what keeps all of them from running."""
    nobody = "" if known.self_service else "no replica of Foresail's operator runs"
    default = location_problem("", location_of("", known.locations))
    for _, row in tenants.schedules:
        problem = "" if row.spec.storage_location else default
        yield replace(row, nobody_runs=nobody, velero_down=known.velero.problem, location_problem=problem)


def _backup_rows(backups: Iterable[_Backup], tenants: _Tenants, schedules: Iterable[str]) -> Iterator[BackupRow]:
    """Yield the Backups as coverage sees them; `schedules` are the UIDs of the Schedules."""
    requests = tenants.requests
    uids = {*schedules, *(request.metadata.uid for request in requests)}
    runs = tenant_runs([schedule for schedule, _ in tenants.schedules], requests)
    left_out = {
        request.metadata.uid: claims_not_in(request.status.conditions, request.status.volumes_left_out)
        for request in requests
    }
    return (backup_row(backup, runs, uids, left_out) for backup in backups)


def _with_bucket(row: _Row, locations: Mapping[str, LocationRow], *, is_of_tenant: bool = False) -> _Row:
    """Return a row with whether its location is a tenant's; `is_of_tenant` is for one that is not among the locations.

    A tenant's schedule has the tenant's own name of it. A Backup whose location is gone cannot be restored.
    """
    name = row.spec.storage_location
    if not name:
        return row
    location = locations.get(name)
    row = replace(row, is_in_tenants_bucket=location.is_tenants if location is not None else is_of_tenant)
    if isinstance(row, BackupRow):
        return replace(row, location_problem=location_problem(name, location, is_for_restore=True))
    return row


async def _snapshot_providers(cluster: Cluster, namespace: str, unknown: list[str]) -> frozenset[str] | None:
    """Return the providers of the VolumeSnapshotLocations; None if they may not be listed."""
    try:
        items = await cluster.listed_if_known(velero.VOLUME_SNAPSHOT_LOCATION, namespace)
    except UnreachableError:
        raise
    except CommandError as error:
        hint(f"whether Velero's plugins can snapshot the volumes is not judged: {error.problem}")
        unknown.append(f"whether Velero's plugins can snapshot the volumes: {error.problem}")
        return None
    return frozenset(str((_any.decode(raw).get("spec") or {}).get("provider", "")) for raw in items)


def _flags(deployments: Iterable[Deployment], namespace: str, unknown: list[str]) -> ServerFlags:
    containers = (container for deployment in deployments for container in deployment.spec.template.spec.containers)
    words = next(filter(None, map(server_words, containers)), None)
    if words is None:
        problem = f"no Deployment in namespace {namespace} runs Velero"
        hint(f"{problem}: the defaults of its flags are assumed")
        unknown.append(f"how Velero saves volumes, which its flags decide: {problem}")
        return ServerFlags()
    return server_flags(words)


def _namespace_row(raw: msgspec.Raw) -> NamespaceRow:
    metadata = _namespace.decode(raw).metadata
    return NamespaceRow(metadata.name, metadata.creation_timestamp, metadata.labels or {})


def claim_rows(
    claims: Iterable[Mapping[str, Any]], volumes: Iterable[Mapping[str, Any]], pods: Iterable[Mapping[str, Any]]
) -> tuple[ClaimRow, ...]:
    """Return the claims, each with its volume and the pods that mount it."""
    by_name = {item["metadata"]["name"]: item for item in volumes}
    mounting: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for pod in pods:
        for name in claims_of(pod):
            mounting[pod["metadata"]["namespace"], name].append(pod)
    rows = []
    for claim in claims:
        namespace = claim["metadata"]["namespace"]
        name = claim["metadata"]["name"]
        volume = by_name.get((claim.get("spec") or {}).get("volumeName", ""))
        created = instant(claim["metadata"]["creationTimestamp"])
        rows.append(ClaimRow(namespace, name, claim, volume, tuple(mounting[namespace, name]), created))
    return tuple(rows)


def schedule_row(schedule: EvaluatedSchedule, now: datetime) -> ScheduleRow:
    """Return a Schedule as coverage sees it: its next run and its objective are those of its SchedulePolicy."""
    key = schedule.schedule.key
    blocked = cannot_run(schedule.view, schedule.verdict)
    nobody = nobody_runs(schedule, now)
    unknown = runner_unknown(schedule)
    return ScheduleRow(
        "Schedule",
        key.namespace,
        key.name,
        _template(schedule),
        schedule.schedule.paused,
        None if nobody or unknown else schedule.verdict.next_run,
        objective=rpo_of(schedule.view.policy),
        not_running=blocked.message if blocked is not None else "",
        nobody_runs=nobody,
        runner_unknown=unknown,
        velero_down=velero_down(schedule),
        location_problem=location_problem(schedule.schedule.location, schedule.view.location),
        expected=_expected(schedule, now),
    )


def _expected(evaluated_schedule: EvaluatedSchedule, now: datetime) -> datetime | None:
    """Return since when a good backup should have started; None if windows leave runs out, or it is younger."""
    view = evaluated_schedule.view
    schedule = evaluated_schedule.schedule
    if is_without_its_policy(evaluated_schedule) or (view.policy is not None and view.policy.spec.windows is not None):
        return None
    cron = parse_expression(schedule.text, view.settings.zone, view.server.dialect, now)
    if isinstance(cron, Because):
        return None
    return expected_since(cron, max(filter(None, (schedule.created, schedule.last_skipped))), now)


def _template(schedule: EvaluatedSchedule) -> BackupSpec:
    raw = msgspec.json.encode(schedule.spec.get("template") or {})
    return spec_of(msgspec.Raw(raw), f"Schedule {schedule.schedule.key.name}", StoredBackupSpec)


def tenant_runs(schedules: Iterable[nonadmin.Schedule], requests: Iterable[_Request]) -> dict[str, str]:
    """Return the titles of NonAdminSchedules by the uid of the NonAdminBackups that they made."""
    titles = {
        (schedule.metadata.namespace, schedule.metadata.uid): f"{schedule.metadata.namespace}/{schedule.metadata.name}"
        for schedule in schedules
    }
    marked = ((request.metadata, (request.metadata.annotations or {}).get(SCHEDULE_UID, "")) for request in requests)
    # A tenant may write any uid: only a schedule of the same namespace counts.
    names = {about.uid: titles.get((about.namespace, schedule), "") for about, schedule in marked}
    return {uid: title for uid, title in names.items() if title}


def claims_not_in(
    conditions: Iterable[nonadmin.Condition] | None, left_out: nonadmin.VolumesLeftOut | None
) -> frozenset[str] | None:
    """Return the claims whose data a backup has not, by the status of its request; None if they are not all named."""
    if left_out is not None:
        return left_out.all_claims
    incomplete = next((condition for condition in conditions or () if condition.type == DATA_INCOMPLETE), None)
    is_lacking = incomplete is not None and incomplete.status == TRUE and incomplete.reason == Reason.VOLUMES_LEFT_OUT
    return None if is_lacking else frozenset()  # an older definition of the kind does not keep the field


def backup_row(
    backup: _Backup,
    tenant_runs: Mapping[str, str],
    uids: Container[str],
    left_out: Mapping[str, frozenset[str] | None],
) -> BackupRow:
    """Return a Backup as coverage sees it; `uids` are those of the Schedules and requests of this cluster."""
    labels = backup.metadata.labels or {}
    annotations = backup.metadata.annotations or {}
    progress = backup.status.progress
    made_for = annotations.get(SCHEDULE_UID, "") or annotations.get(REQUEST_UID, "")
    created = backup.metadata.creation_timestamp
    started = backup.status.start_timestamp
    origin = (
        origin_of(created, started, backup.status.completion_timestamp, made_for, uids) if created else Origin.UNKNOWN
    )
    return BackupRow(
        backup.metadata.name,
        backup.status.phase,
        backup.spec,
        started,
        progress.items_backed_up or 0 if progress else None,
        labels.get(velero.SCHEDULE_LABEL, "") or tenant_runs.get(annotations.get(REQUEST_UID, ""), ""),
        failure_of(backup.status.failure_reason, backup.status.validation_errors, backup.status.errors),
        has_snapshots=backup.status.has_snapshots,
        left_out=left_out.get(annotations.get(REQUEST_UID, ""), frozenset()),
        origin=origin,
        created=created,
    )


def failure_of(reason: str, validation_errors: Iterable[str] | None, errors: int) -> str:
    """Return why a run failed, from its status; empty if the status has no reason."""
    refused = "; ".join(validation_errors or ())
    return reason or refused or (f"{errors} {'error' if errors == 1 else 'errors'}" if errors else "")
