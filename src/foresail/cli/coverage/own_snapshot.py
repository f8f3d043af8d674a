"""Reads what a tenant's own coverage is judged from: the objects of one namespace, and nothing of Velero's."""

from collections.abc import Container, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.apps import DEPLOYMENT
from foresail.api.core import CLAIM, NAMESPACE, VOLUME
from foresail.api.instants import instant
from foresail.api.marks import SCHEDULE_UID
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_SCHEDULE, Reference
from foresail.api.pods import POD
from foresail.api.policy import SELF_SERVICE_POLICY, BackupPolicy
from foresail.api.specs import BackupSpec, StoredBackupSpec
from foresail.cli.access.cluster import Cluster, may, may_all
from foresail.cli.coverage.facts import located, read_facts, unknown_locations, unknown_policies, with_facts
from foresail.cli.coverage.snapshot import BackupStatus, claim_rows, claims_not_in, clock_doubts, failure_of
from foresail.cli.coverage.tenant_schedules import allows_files, lists_of_kinds, read_rules, tenant_schedules
from foresail.cli.errors import CommandError
from foresail.cli.tenant.tenant_request import TenantRequest, decode_request
from foresail.kube.lease import LEASE
from foresail.plan import Key, Kind
from foresail.proof.facts import Facts
from foresail.proof.view import BackupRow, ClaimRow, CoverageView, NamespaceRow
from foresail.scope.server import ServerFlags
from foresail.selfservice.families import BACKUPS

_DEFAULTS = "which defaults SelfServicePolicies set for volumes: you may not list them"
_UNPROVEN = (
    "whether scheduled runs save its volumes: no run shows it yet, and only administrators may read what a volume is"
)
_ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)
_any = msgspec.json.Decoder(dict[str, Any])
_status = msgspec.json.Decoder(BackupStatus)
_spec = msgspec.json.Decoder(StoredBackupSpec)


async def is_administrator(cluster: Cluster, velero_namespace: str) -> bool:
    """Return whether the user may read what covers the whole cluster."""
    everywhere = [(kind, "") for kind in (NAMESPACE, CLAIM, VOLUME, POD, NON_ADMIN_SCHEDULE, NON_ADMIN_BACKUP)]
    kinds = (velero.BACKUP, velero.SCHEDULE, velero.LOCATION, DEPLOYMENT)
    in_velero = [(kind, velero_namespace) for kind in kinds]
    may_list = await may_all(cluster, "list", [*everywhere, *in_velero])
    return may_list and await may(cluster, "get", LEASE, velero_namespace)


def not_all_namespaces(velero_namespace: str) -> CommandError:
    """Return the error for -A by someone who is no administrator."""
    problem = f"-A: you may not list namespaces, or the objects of Velero in namespace {velero_namespace}"
    return CommandError(problem, "name your own namespace with -n")


async def read_own_view(
    cluster: Cluster, namespace: str, velero_namespace: str, objective: timedelta | None, now: datetime
) -> CoverageView:
    """Read the namespace, its claims, the tenant's own schedules and backups, and what the operator publishes."""
    row = await _read_namespace(cluster, namespace)
    schedules = await cluster.listed(NON_ADMIN_SCHEDULE, namespace)
    titles = {item.get("uid", ""): f"{namespace}/{item.get('name')}" for item in map(_metadata, schedules)}
    backups = [decode_request(BACKUPS, raw) for raw in await cluster.listed(BACKUPS.kind, namespace)]
    unread = clock_doubts(cluster)
    claims = await _read_claims(cluster, namespace, unread)
    shared = await read_facts(cluster, velero_namespace, now)
    unknown_volumes = list[str]()
    rules = await _read_rules(cluster, row, unknown_volumes)
    with_files = (namespace,) if allows_files(row.labels) else ()
    own = [with_facts(schedule, shared) for _, schedule in tenant_schedules(schedules, rules, with_files, now)]
    paused = {schedule.title for schedule in own if schedule.paused}
    last = _last_run(backups, {uid for uid, title in titles.items() if title not in paused})
    return CoverageView(
        (row,),
        claims,
        tuple(own),
        tuple(located(own_backup_row(backup, titles), shared) for backup in backups),
        objective,
        server=shared.facts.flags if shared.facts is not None else ServerFlags(),
        is_own=True,
        velero_down=shared.nobody_runs or (shared.facts.velero_problem if shared.facts is not None else ""),
        default_location_problem=shared.default_location_problem(),
        unknown=(*shared.unknown, *unknown_locations(own, shared), *unknown_policies(shared), *unread),
        agents_down=shared.facts.agents_problem if shared.facts is not None else "",
        unknown_volumes=(*unknown_volumes, *_unproven(last, claims, shared.facts)),
    )


async def _read_namespace(cluster: Cluster, name: str) -> NamespaceRow:
    """Read the namespace; one that a team may not read has always been there."""
    if not await may(cluster, "get", NAMESPACE, name):
        return NamespaceRow(name, _ALWAYS)
    metadata = (await cluster.read(NAMESPACE, Key("", name), dict[str, Any]))["metadata"]
    return NamespaceRow(name, datetime.fromisoformat(metadata["creationTimestamp"]), metadata.get("labels") or {})


async def _read_claims(cluster: Cluster, namespace: str, unread: list[str]) -> tuple[ClaimRow, ...]:
    """Read the claims; a tenant may not read PersistentVolumes, and a claim that names one has it."""
    claims, pods = [await _listed_if_allowed(cluster, kind, namespace, unread) for kind in (CLAIM, POD)]
    names = {(claim.get("spec") or {}).get("volumeName") for claim in claims} - {None, ""}
    return claim_rows(claims, [{"metadata": {"name": name}} for name in names], pods)


async def _read_rules(cluster: Cluster, namespace: NamespaceRow, unknown: list[str]) -> Mapping[str, BackupPolicy]:
    """Read what the policy has for the backups of a namespace; none where a team may not read policies."""
    if await may(cluster, "list", SELF_SERVICE_POLICY):
        return await read_rules(cluster, [namespace], unknown)
    unknown.append(_DEFAULTS)
    return {}


def _unproven(last: TenantRequest | None, claims: Sequence[ClaimRow], facts: Facts | None) -> list[str]:
    """Return what the last complete run does not show about volumes, whose types a team may not read."""
    created = [claim.created for claim in claims if claim.volume is not None and claim.created is not None]
    if last is None or any(_started(last) < moment for moment in created):
        return [_UNPROVEN]
    if facts is None or not facts.is_recognised:
        return ["how Velero saves volumes, which its flags decide"]
    made = _status_of(last)
    is_native = made.volume_snapshots_completed
    is_csi = made.csi_volume_snapshots_completed
    is_off = (is_native and not facts.snapshot_providers) or (is_csi and not facts.has_csi)
    return ["whether Velero can still make the snapshots of the last run: it is not set up for them"] if is_off else []


def _last_run(requests: Sequence[TenantRequest], titles: Container[str]) -> TenantRequest | None:
    """Return the last complete run of schedules with these UIDs."""
    runs = [
        request
        for request in requests
        if (request.request.metadata.annotations or {}).get(SCHEDULE_UID, "") in titles
        and request.velero.phase == velero.COMPLETED
    ]
    return max(runs, key=_started, default=None)


def _started(request: TenantRequest) -> datetime:
    return instant(request.velero.start_timestamp or "") or _ALWAYS


def _status_of(request: TenantRequest) -> BackupStatus:
    return _status.decode((request.request.status.velero_backup or Reference()).status)


def own_backup_row(request: TenantRequest, titles: Mapping[str, str]) -> BackupRow:
    """Return a NonAdminBackup as coverage sees it, under its own name."""
    annotations = request.request.metadata.annotations or {}
    made = request.velero
    copy = request.request.status.velero_backup or Reference()
    made_spec = _spec.decode(copy.spec)
    return BackupRow(
        request.key.name,
        made.phase,
        made_spec if made_spec.included_namespaces else _asked_for(request),
        instant(made.start_timestamp) if made.start_timestamp else None,
        made.progress.items_backed_up or 0 if made.progress else None,
        titles.get(annotations.get(SCHEDULE_UID, ""), ""),
        failure_of(made.failure_reason, made.validation_errors, made.errors),
        has_snapshots=_status_of(request).has_snapshots,
        left_out=claims_not_in(request.request.status.conditions, request.request.status.volumes_left_out),
        created=request.request.metadata.creation_timestamp,
    )


def _asked_for(request: TenantRequest) -> BackupSpec:
    """Return the spec of a request for which nothing is made yet."""
    try:
        spec = msgspec.convert(request.spec, BackupSpec)
    except msgspec.ValidationError:  # the operator has refused it, so that it is no good backup in any case
        spec = BackupSpec()
    own = (request.key.namespace,)
    kinds = lists_of_kinds(spec)
    return msgspec.structs.replace(
        spec, included_namespaces=own, excluded_namespaces=None, resource_policy=None, **kinds
    )


async def _listed_if_allowed(cluster: Cluster, kind: Kind, namespace: str, unread: list[str]) -> list[dict[str, Any]]:
    if not await may(cluster, "list", kind, namespace):
        unread.append(f"which volumes it has: you may not list {kind.plural}")
        return []
    return [_any.decode(raw) for raw in await cluster.listed(kind, namespace)]


def _metadata(raw: msgspec.Raw) -> Mapping[str, Any]:
    item: Mapping[str, Any] = _any.decode(raw).get("metadata") or {}
    return item
