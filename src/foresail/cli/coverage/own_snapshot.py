"""Reads what a tenant's own coverage is judged from: the objects of one namespace, and nothing of Velero's."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.apps import DEPLOYMENT
from foresail.api.core import CLAIM, NAMESPACE, VOLUME
from foresail.api.instants import instant
from foresail.api.marks import SCHEDULE_UID
from foresail.api.pods import POD
from foresail.api.requests import NON_ADMIN_BACKUP, NON_ADMIN_SCHEDULE
from foresail.api.specs import BackupSpec
from foresail.cli.access.cluster import Cluster
from foresail.cli.access.own_rights import may, may_all
from foresail.cli.coverage.snapshot import claim_rows, claims_not_in, failure_of
from foresail.cli.coverage.tenant_schedules import allows_files, lists_of_kinds, tenant_schedules
from foresail.cli.errors import CommandError
from foresail.cli.tenant.tenant_request import TenantRequest, decode_request
from foresail.kube.lease import LEASE
from foresail.plan import Key, Kind
from foresail.proof.view import BackupRow, CoverageView, NamespaceRow
from foresail.selfservice.families import BACKUPS

_UNSEEN = "whether Velero and its storage location work now, which only administrators may see"
_ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)
_any = msgspec.json.Decoder(dict[str, Any])


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


async def read_own_view(cluster: Cluster, namespace: str, objective: timedelta | None, now: datetime) -> CoverageView:
    """Read the namespace, its claims, and the tenant's own schedules and backups."""
    created = _ALWAYS
    labels = dict[str, str]()
    if await may(cluster, "get", NAMESPACE, namespace):
        document = await cluster.read(NAMESPACE, Key("", namespace), dict[str, Any])
        created = datetime.fromisoformat(document["metadata"]["creationTimestamp"])
        labels = document["metadata"].get("labels") or {}
    schedules = await cluster.listed(NON_ADMIN_SCHEDULE, namespace)
    titles = {item.get("uid", ""): f"{namespace}/{item.get('name')}" for item in map(_metadata, schedules)}
    backups = [decode_request(BACKUPS, raw) for raw in await cluster.listed(BACKUPS.kind, namespace)]
    with_files = (namespace,) if allows_files(labels) else ()
    unread = list[str]()
    claims, pods = [await _listed_if_allowed(cluster, kind, namespace, unread) for kind in (CLAIM, POD)]
    # A tenant may not read PersistentVolumes: a claim that names one has it.
    names = {(claim.get("spec") or {}).get("volumeName") for claim in claims} - {None, ""}
    return CoverageView(
        (NamespaceRow(namespace, created),),
        claim_rows(claims, [{"metadata": {"name": name}} for name in names], pods),
        tuple(row for _, row in tenant_schedules(schedules, {}, with_files, now)),
        tuple(own_backup_row(backup, titles) for backup in backups),
        objective,
        is_own=True,
        unknown=(_UNSEEN, *unread),
    )


def own_backup_row(request: TenantRequest, titles: Mapping[str, str]) -> BackupRow:
    """Return a NonAdminBackup as coverage sees it, under its own name."""
    annotations = request.request.metadata.annotations or {}
    made = request.velero
    try:
        spec = msgspec.convert(request.spec, BackupSpec)
    except msgspec.ValidationError:  # the operator has refused it, so that it is no good backup in any case
        spec = BackupSpec()
    return BackupRow(
        request.key.name,
        made.phase,
        msgspec.structs.replace(
            spec,
            included_namespaces=(request.key.namespace,),
            excluded_namespaces=None,
            resource_policy=None,  # a tenant may not read it
            **lists_of_kinds(spec),
        ),
        instant(made.start_timestamp) if made.start_timestamp else None,
        made.progress.items_backed_up or 0 if made.progress else None,
        titles.get(annotations.get(SCHEDULE_UID, ""), ""),
        failure_of(made.failure_reason, made.validation_errors, made.errors),
        left_out=claims_not_in(request.request.status.conditions, request.request.status.volumes_left_out),
    )


async def _listed_if_allowed(cluster: Cluster, kind: Kind, namespace: str, unread: list[str]) -> list[dict[str, Any]]:
    if not await may(cluster, "list", kind, namespace):
        unread.append(f"which volumes it has: you may not list {kind.plural}")
        return []
    return [_any.decode(raw) for raw in await cluster.listed(kind, namespace)]


def _metadata(raw: msgspec.Raw) -> Mapping[str, Any]:
    item: Mapping[str, Any] = _any.decode(raw).get("metadata") or {}
    return item
