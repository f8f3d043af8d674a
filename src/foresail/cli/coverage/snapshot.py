"""Reads what coverage is judged from."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from foresail.api import nonadmin, velero
from foresail.api.core import CLAIM, NAMESPACE, VOLUME
from foresail.api.metadata import Metadata
from foresail.api.pods import POD
from foresail.api.requests import NON_ADMIN_SCHEDULE
from foresail.api.specs import BackupSpec
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.output.messages import hint
from foresail.cron import CronError, parse
from foresail.plan import Key, Kind
from foresail.proof.observe import BackupRow, ClaimRow, CoverageView, NamespaceRow, ScheduleRow
from foresail.scope.policies import Policies, PolicyError, policies_of
from foresail.scope.world import claims_of

_CONFIG_MAP = Kind("", "v1", "configmaps", "ConfigMap")
_any = msgspec.json.Decoder(dict[str, Any])
_schedule = msgspec.json.Decoder(velero.Schedule)
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


_backup = msgspec.json.Decoder(_Backup)


async def read_view(
    cluster: Cluster, velero_namespace: str, objective: timedelta | None, now: datetime
) -> CoverageView:
    """Read the cluster's namespaces, claims, schedules and backups."""
    namespaces = await cluster.listed(NAMESPACE, "")
    backups = [_backup.decode(each) for each in await cluster.listed(velero.BACKUP, velero_namespace)]
    schedules = [_schedule.decode(each) for each in await cluster.listed(velero.SCHEDULE, velero_namespace)]
    tenants = await cluster.listed_if_known(NON_ADMIN_SCHEDULE)
    policies = await _read_policies(cluster, velero_namespace, schedules)
    return CoverageView(
        tuple(_namespace_row(_any.decode(each)["metadata"]) for each in namespaces),
        claim_rows(*[map(_any.decode, await cluster.listed(kind, "")) for kind in (CLAIM, VOLUME, POD)]),
        (
            *(schedule_row(each, policies, now) for each in schedules),
            *tenant_rows(tenants, now),
        ),
        tuple(map(backup_row, backups)),
        objective,
    )


def _namespace_row(metadata: Mapping[str, Any]) -> NamespaceRow:
    created = datetime.fromisoformat(metadata["creationTimestamp"])
    return NamespaceRow(metadata["name"], created, metadata.get("labels") or {})


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


def schedule_row(each: velero.Schedule, policies: Mapping[str, Policies], now: datetime) -> ScheduleRow:
    """Return a Schedule as coverage sees it."""
    spec = spec_of(each.spec.template, f"Schedule {each.metadata.name}")
    reference = spec.resource_policy
    return ScheduleRow(
        "Schedule",
        each.metadata.namespace,
        each.metadata.name,
        spec,
        bool(each.spec.paused),
        next_run(each.spec.schedule, now),
        policies.get(reference.name) if reference else None,
    )


def tenant_rows(found: Iterable[msgspec.Raw], now: datetime) -> Iterator[ScheduleRow]:
    """Yield the NonAdminSchedules; one that cannot be decoded covers nothing, and hides no other."""
    for each in found:
        try:
            yield tenant_row(_tenant.decode(each), now)
        except (msgspec.DecodeError, CommandError) as error:
            metadata = _any.decode(each).get("metadata") or {}
            name = f"{metadata.get('namespace')}/{metadata.get('name')}"
            hint(f"NonAdminSchedule {name} cannot be decoded and is not considered: {error}")


def tenant_row(each: nonadmin.Schedule, now: datetime) -> ScheduleRow:
    """Return a NonAdminSchedule as coverage sees it: its backups are of its own namespace, whatever its spec has."""
    namespace = each.metadata.namespace
    spec = spec_of(each.spec.template.backup_spec, f"NonAdminSchedule {namespace}/{each.metadata.name}")
    own = msgspec.structs.replace(spec, included_namespaces=(namespace,), excluded_namespaces=None)
    upcoming = next_run(each.spec.schedule, now)
    return ScheduleRow("NonAdminSchedule", namespace, each.metadata.name, own, bool(each.spec.paused), upcoming)


def backup_row(each: _Backup) -> BackupRow:
    """Return a Backup as coverage sees it."""
    labels, progress = each.metadata.labels or {}, each.status.progress
    return BackupRow(
        each.metadata.name,
        each.status.phase,
        each.spec,
        each.status.start_timestamp,
        progress.items_backed_up or 0 if progress else None,
        labels.get(velero.SCHEDULE_LABEL, ""),
        failure_of(each.status.failure_reason, each.status.validation_errors, each.status.errors),
    )


def failure_of(reason: str, validation_errors: Iterable[str] | None, errors: int) -> str:
    """Return why a run failed, from its status; empty if the status has no reason."""
    refused = "; ".join(validation_errors or ())
    return reason or refused or (f"{errors} {'error' if errors == 1 else 'errors'}" if errors else "")


def next_run(text: str, now: datetime) -> datetime | None:
    """Return when an expression fires next; None if it does not or is invalid."""
    try:
        return parse(text).next(now)
    except CronError:
        return None


def spec_of(raw: msgspec.Raw, owner: str) -> BackupSpec:
    """Return the spec of a template; report one that cannot be decoded."""
    try:
        return msgspec.json.decode(raw, type=BackupSpec)
    except msgspec.DecodeError as error:
        raise CommandError(f"{owner}: the template cannot be decoded: {error}", "correct the template") from error


async def _read_policies(cluster: Cluster, namespace: str, schedules: Iterable[velero.Schedule]) -> dict[str, Policies]:
    found: dict[str, Policies] = {}
    for each in schedules:
        reference = spec_of(each.spec.template, f"Schedule {each.metadata.name}").resource_policy
        if reference is None or reference.name in found:
            continue
        config_map = await cluster.if_there(_CONFIG_MAP, Key(namespace, reference.name), _ConfigMap)
        try:
            found[reference.name] = policies_of(config_map.data if config_map else None)
        except PolicyError as error:
            hint(f"the resource policy {reference.name} is not considered: {error}")
    return found
