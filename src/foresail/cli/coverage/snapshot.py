"""Reads what coverage is judged from."""

import argparse
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from foresail.api import nonadmin, velero
from foresail.api.core import CLAIM, NAMESPACE, VOLUME
from foresail.api.instants import instant
from foresail.api.marks import REQUEST_UID, SCHEDULE_UID
from foresail.api.metadata import Metadata
from foresail.api.pods import POD
from foresail.api.requests import NON_ADMIN_BACKUP, NON_ADMIN_SCHEDULE
from foresail.api.specs import BackupSpec
from foresail.cli.access.cluster import Cluster
from foresail.cli.coverage.kinds import read_kinds
from foresail.cli.errors import CommandError
from foresail.cli.output.messages import hint
from foresail.cli.schedule.snapshot import EvaluatedSchedule, evaluate, read_namespace, read_policies, row_of
from foresail.plan import Key, Kind
from foresail.proof.observe import BackupRow, ClaimRow, CoverageView, NamespaceRow, ScheduleRow
from foresail.schedules.policies import rpo_of
from foresail.schedules.rules import cannot_run
from foresail.scope.policies import Policies, PolicyError, policies_of
from foresail.scope.releases import Release, release_of
from foresail.scope.world import claims_of
from foresail.selfservice.requests.status import ACCEPTED, FALSE
from foresail.selfservice.specs.kinds import backed_up
from foresail.selfservice.specs.values import Refusal

_CONFIG_MAP = Kind("", "v1", "configmaps", "ConfigMap")
_any = msgspec.json.Decoder(dict[str, Any])
_tenant = msgspec.json.Decoder(nonadmin.Schedule)


class _Progress(msgspec.Struct, frozen=True, rename="camel"):
    items_backed_up: int | None = None


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    start_timestamp: datetime | None = None
    progress: _Progress | None = None
    errors: int = 0
    failure_reason: str = ""
    validation_errors: tuple[str, ...] | None = None


class _Backup(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: BackupSpec = BackupSpec()
    status: _Status = _Status()


class _ConfigMap(msgspec.Struct, frozen=True):
    data: dict[str, str] | None = None


class _Request(msgspec.Struct, frozen=True):
    metadata: Metadata


class _NamespaceMetadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    creation_timestamp: datetime
    labels: dict[str, str] | None = None


class _Namespace(msgspec.Struct, frozen=True):
    metadata: _NamespaceMetadata


_backup = msgspec.json.Decoder(_Backup)
_request = msgspec.json.Decoder(_Request)
_namespace = msgspec.json.Decoder(_Namespace)


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
    backups = [_backup.decode(each) for each in await cluster.listed(velero.BACKUP, velero_namespace)]
    schedules = await cluster.listed(velero.SCHEDULE, velero_namespace)
    known = await read_namespace(cluster, velero_namespace, argparse.Namespace(), now, await read_policies(cluster))
    evaluated = [evaluate(row_of(each), _any.decode(each), known, now) for each in schedules]
    tenants = list(decoded_tenants(await cluster.listed_if_known(NON_ADMIN_SCHEDULE)))
    requests = [_request.decode(each) for each in await cluster.listed_if_known(NON_ADMIN_BACKUP)] if tenants else []
    release = release_of(known.server.version)
    policies = await _read_policies(cluster, velero_namespace, evaluated, release)
    runs = tenant_runs([schedule for schedule, _ in tenants], requests)
    view = CoverageView(
        tuple(map(_namespace_row, namespaces)),
        claim_rows(*[map(_any.decode, await cluster.listed(kind, "")) for kind in (CLAIM, VOLUME, POD)]),
        (*(schedule_row(each, policies) for each in evaluated), *(row for _, row in tenants)),
        tuple(backup_row(each, runs) for each in backups),
        objective,
        release,
        await read_kinds(cluster, (*(_template(each) for each in evaluated), *(each.spec for each in backups))),
    )
    return view, evaluated


def _namespace_row(raw: msgspec.Raw) -> NamespaceRow:
    metadata = _namespace.decode(raw).metadata
    return NamespaceRow(metadata.name, metadata.creation_timestamp, metadata.labels or {})


def claim_rows(
    claims: Iterable[Mapping[str, Any]], volumes: Iterable[Mapping[str, Any]], pods: Iterable[Mapping[str, Any]]
) -> tuple[ClaimRow, ...]:
    """Return the claims, each with its volume and the pods that mount it."""
    by_name = {each["metadata"]["name"]: each for each in volumes}
    mounting: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for pod in pods:
        for name in claims_of(pod):
            mounting[pod["metadata"]["namespace"], name].append(pod)
    rows = []
    for each in claims:
        namespace, name = each["metadata"]["namespace"], each["metadata"]["name"]
        volume = by_name.get((each.get("spec") or {}).get("volumeName", ""))
        rows.append(ClaimRow(namespace, name, each, volume, tuple(mounting[namespace, name])))
    return tuple(rows)


def schedule_row(each: EvaluatedSchedule, policies: Mapping[str, Policies | PolicyError]) -> ScheduleRow:
    """Return a Schedule as coverage sees it: its next run and its objective are those of its SchedulePolicy."""
    key = each.schedule.key
    spec = _template(each)
    reference = spec.resource_policy
    policy = policies.get(reference.name) if reference else None
    blocked = cannot_run(each.view, each.verdict)
    return ScheduleRow(
        "Schedule",
        key.namespace,
        key.name,
        spec,
        each.schedule.paused,
        each.verdict.next_run,
        policy if isinstance(policy, Policies) else None,
        str(policy) if isinstance(policy, PolicyError) else "",
        rpo_of(each.view.policy),
        blocked.message if blocked is not None else "",
    )


def _template(each: EvaluatedSchedule) -> BackupSpec:
    raw = msgspec.json.encode(each.spec.get("template") or {})
    return spec_of(msgspec.Raw(raw), f"Schedule {each.schedule.key.name}")


def tenant_rows(found: Iterable[msgspec.Raw]) -> Iterator[ScheduleRow]:
    """Yield the NonAdminSchedules as coverage sees them."""
    return (row for _, row in decoded_tenants(found))


def decoded_tenants(found: Iterable[msgspec.Raw]) -> Iterator[tuple[nonadmin.Schedule, ScheduleRow]]:
    """Yield the NonAdminSchedules with their rows; one that cannot be decoded covers nothing, and hides no other."""
    for each in found:
        try:
            schedule = _tenant.decode(each)
            yield schedule, tenant_row(schedule)
        except (msgspec.DecodeError, CommandError) as error:
            metadata = _any.decode(each).get("metadata") or {}
            name = f"{metadata.get('namespace')}/{metadata.get('name')}"
            hint(f"NonAdminSchedule {name} cannot be decoded and is not considered: {error}")


def tenant_row(each: nonadmin.Schedule) -> ScheduleRow:
    """Return a NonAdminSchedule as coverage sees it: its backups are of its own namespace, whatever its spec has."""
    namespace = each.metadata.namespace
    spec = spec_of(each.spec.template.backup_spec, f"NonAdminSchedule {namespace}/{each.metadata.name}")
    own = msgspec.structs.replace(spec, included_namespaces=(namespace,), excluded_namespaces=None, **_lists(spec))
    upcoming = instant(each.status.next_run) if each.status.next_run else None
    return ScheduleRow(
        "NonAdminSchedule",
        namespace,
        each.metadata.name,
        own,
        bool(each.spec.paused),
        upcoming,
        not_running=_not_running(each.status),
    )


def _lists(spec: BackupSpec) -> dict[str, Any]:
    """Return the lists of kinds as the operator writes them into a tenant's Backup; none if it refuses them."""
    try:
        found = backed_up(spec, "spec.template.backupSpec")
    except Refusal:
        return {}
    return {
        "included_resources": None,
        "excluded_resources": None,
        "include_cluster_resources": None,
        "included_namespace_scoped_resources": found.included,
        "excluded_namespace_scoped_resources": found.excluded,
        "excluded_cluster_scoped_resources": found.cluster_scoped_excluded,
    }


def _not_running(status: nonadmin.ScheduleStatus) -> str:
    """Return why the operator plans no run of a NonAdminSchedule; empty if it does."""
    accepted = next((each for each in status.conditions or () if each.type == ACCEPTED), None)
    if accepted is None:
        return "" if status.next_run else "the operator has not processed it"
    return accepted.message if accepted.status == FALSE else ""


def tenant_runs(schedules: Iterable[nonadmin.Schedule], requests: Iterable[_Request]) -> dict[str, str]:
    """Return the titles of NonAdminSchedules by the uid of the NonAdminBackups that they made."""
    titles = {
        (each.metadata.namespace, each.metadata.uid): f"{each.metadata.namespace}/{each.metadata.name}"
        for each in schedules
    }
    marked = ((each.metadata, (each.metadata.annotations or {}).get(SCHEDULE_UID, "")) for each in requests)
    # A tenant may write any uid: only a schedule of the same namespace counts.
    found = {about.uid: titles.get((about.namespace, schedule), "") for about, schedule in marked}
    return {uid: title for uid, title in found.items() if title}


def backup_row(each: _Backup, tenant_runs: Mapping[str, str]) -> BackupRow:
    """Return a Backup as coverage sees it."""
    labels, annotations, progress = each.metadata.labels or {}, each.metadata.annotations or {}, each.status.progress
    return BackupRow(
        each.metadata.name,
        each.status.phase,
        each.spec,
        each.status.start_timestamp,
        progress.items_backed_up or 0 if progress else None,
        labels.get(velero.SCHEDULE_LABEL, "") or tenant_runs.get(annotations.get(REQUEST_UID, ""), ""),
        failure_of(each.status.failure_reason, each.status.validation_errors, each.status.errors),
    )


def failure_of(reason: str, validation_errors: Iterable[str] | None, errors: int) -> str:
    """Return why a run failed, from its status; empty if the status has no reason."""
    refused = "; ".join(validation_errors or ())
    return reason or refused or (f"{errors} {'error' if errors == 1 else 'errors'}" if errors else "")


def spec_of(raw: msgspec.Raw, owner: str) -> BackupSpec:
    """Return the spec of a template; report one that cannot be decoded."""
    try:
        return msgspec.json.decode(raw, type=BackupSpec)
    except msgspec.DecodeError as error:
        raise CommandError(f"{owner}: the template cannot be decoded: {error}", "correct the template") from error


async def _read_policies(
    cluster: Cluster, namespace: str, schedules: Iterable[EvaluatedSchedule], release: Release
) -> dict[str, Policies | PolicyError]:
    found: dict[str, Policies | PolicyError] = {}
    for each in schedules:
        reference = _template(each).resource_policy
        if reference is None or reference.name in found:
            continue
        config_map = await cluster.if_there(_CONFIG_MAP, Key(namespace, reference.name), _ConfigMap)
        try:
            if config_map is None:
                raise PolicyError(f"ConfigMap {reference.name} does not exist")  # noqa: TRY301 - refused like an invalid one
            found[reference.name] = policies_of(config_map.data, release)
        except PolicyError as error:
            found[reference.name] = error
    return found
