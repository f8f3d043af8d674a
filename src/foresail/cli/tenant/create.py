"""`foresail backup create` and `foresail restore create`: a request, and the wait for what becomes of it."""

import argparse
import sys
from datetime import datetime
from typing import Any

import msgspec

from foresail.api.instants import stamp
from foresail.api.protection import PROTECTION, PROTECTION_NAME
from foresail.cli.access.cluster import Cluster, settle_namespace
from foresail.cli.access.self_service import require
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.options.values import deadline
from foresail.cli.output.messages import interruptible
from foresail.cli.output.objects import Request
from foresail.cli.tenant.new_request import check_kinds, settle_name, stamped
from foresail.cli.tenant.selection import family_of, in_namespace, read_request
from foresail.cli.tenant.spec import request_object
from foresail.cli.tenant.tenant_request import TenantRequest, decode_request
from foresail.cli.tenant.wait import wait_for
from foresail.cli.verbs import are_shown, create_object, is_printed, outcome, print_object, report
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.reporting import some
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from foresail.selfservice.requests.status import CREATED

_any = msgspec.json.Decoder(dict[str, Any])


async def check_backup(cluster: Cluster, family: Family, body: dict[str, Any], namespace: str) -> None:
    """Refuse a restore from a backup that does not exist."""
    if family is not RESTORES:
        return
    if "fromProtection" in body["spec"]:
        await _check_point(cluster, body["spec"]["fromProtection"]["backup"], namespace)
        return
    await check_exists(cluster, Key(namespace, body["spec"]["restoreSpec"]["backupName"]))


async def check_exists(cluster: Cluster, backup: Key) -> None:
    """Refuse a backup that does not exist, and name those that do."""
    namespace = backup.namespace
    name = backup.name
    try:
        if await cluster.if_there(BACKUPS.kind, backup, msgspec.Raw) is not None:
            return
        listed = await cluster.listed(BACKUPS.kind, namespace)
    except CommandError:  # without the right to read backups, the operator alone checks it
        return
    metadata = [_any.decode(raw)["metadata"] for raw in listed]
    newest = sorted(metadata, key=lambda item: str(item.get("creationTimestamp") or ""), reverse=True)
    problem = f"{BACKUPS.kind.name} {name} does not exist in namespace {namespace}"
    raise CommandError(problem, _what_exists([str(item["name"]) for item in newest], namespace))


async def _check_point(cluster: Cluster, backup: str, namespace: str) -> None:
    """Refuse a restore from what is no point in time of the namespace, and name those that are."""
    try:
        raw = await cluster.if_there(PROTECTION, Key(namespace, PROTECTION_NAME), msgspec.Raw)
    except CommandError:  # without the right to read Protections, the operator alone checks it
        return
    status = (_any.decode(raw).get("status") or {}) if raw is not None else {}
    points = [str(point["backup"]) for point in status.get("points") or ()]
    if backup in points:
        return
    hint = f"restore from one of {', '.join(points)}" if points else f"see foresail protection describe -n {namespace}"
    raise CommandError(f"{backup} is no point in time that the Protection of namespace {namespace} lists", hint)


def _what_exists(names: list[str], namespace: str) -> str:
    if not names:
        create = "name another with -n, or create one with foresail backup create NAME"
        return f"namespace {namespace} has no backups; {create}"
    return f"namespace {namespace} has {some(names)}; foresail backup get -n {namespace} shows them"


def create(args: argparse.Namespace) -> int:
    """Create a request, or print the manifest, which needs no cluster."""
    family = family_of(args)
    for option in ("only", "to"):
        if getattr(args, "from_protection", None) and getattr(args, option):
            problem = f"--{option} cannot be combined with --from-protection, which restores the whole namespace"
            raise UsageError(problem, f"leave --{option} out")
    if getattr(args, "only", None):
        from foresail.cli.tenant.only import check_options  # noqa: PLC0415 - only for --only

        check_options(args)
    settle_name(family, args, now())
    until = deadline(args.timeout)
    if is_printed(args):
        settle_namespace_if_known(args)
        body = request_object(family, args)
        print_object(args, body)
        return 0
    return interruptible(lambda: in_namespace(args, lambda cluster, family: _create(cluster, family, args, until)))


def settle_namespace_if_known(args: argparse.Namespace) -> None:
    """Use the namespace of the kube context; a manifest without one goes where it is applied."""
    try:
        settle_namespace(args)
    except CommandError:
        args.namespace = None


async def _create(cluster: Cluster, family: Family, args: argparse.Namespace, until: datetime | None) -> int:
    await require(cluster, family.kind, args.namespace)
    body = request_object(family, args)
    await check_kinds(cluster, family, body)
    await check_backup(cluster, family, body, args.namespace)
    if getattr(args, "only", None):
        from foresail.cli.tenant.only import restore_only  # noqa: PLC0415

        kinds = await restore_only(cluster, args)
        if not kinds:
            return 0
        body["spec"]["restoreSpec"]["includedResources"] = list(kinds)
    key = Key(args.namespace, args.name)
    made = await create_object(cluster, args, family.kind, await stamped(cluster, body))
    if args.dry_run:
        print_object(args, made)
        return 0
    print(f"{family.kind.name} {key} created.", file=sys.stderr)
    if args.wait:
        return await wait_for(cluster, family, key, until, args.fail_on)
    print(f"Follow it with foresail {family.word} wait {key.name} -n {key.namespace}", file=sys.stderr)
    return 0


def retry(args: argparse.Namespace) -> int:
    """Ask again for each of the named restores."""
    until = deadline(args.timeout)
    return interruptible(lambda: in_namespace(args, lambda cluster, family: _retry(cluster, family, args, until)))


async def _retry(cluster: Cluster, family: Family, args: argparse.Namespace, until: datetime | None) -> int:
    tenant_requests = [
        await read_request(cluster, family, Key(args.namespace, name)) for name in dict.fromkeys(args.names)
    ]
    for restore in tenant_requests:  # all can be retried, or none is changed
        check_retry(restore)
    requests = [Request("PATCH", family.kind, restore.key, retry_body(restore, now())) for restore in tenant_requests]
    if are_shown(args, requests):
        return 0
    for restore, request in zip(tenant_requests, requests, strict=True):
        body = await stamped(cluster, request.body or {})
        made = await cluster.merge(family.kind, restore.key, body, dry_run=bool(args.dry_run))
        changed = decode_request(family, made)
        if changed.request.metadata.generation == restore.request.metadata.generation:
            problem = f"{family.kind.name} {restore.key} has not changed: the API server does not know spec.retriedAt"
            raise CommandError(problem, "ask a cluster administrator to update Foresail's CRDs")
        report(args, changed.content, f"{family.kind.name} {restore.key} {outcome(args, 'retried')}.")
    if not args.wait or args.dry_run:
        return 0
    for restore in tenant_requests:
        await wait_for(cluster, family, restore.key, until)
    return 0


def check_retry(restore: TenantRequest) -> None:
    """Raise why a restore cannot be retried."""
    name = f"{restore.family.kind.name} {restore.key}"
    key = restore.key
    if restore.is_terminating:
        raise CommandError(f"{name} is being deleted", "create another restore")
    if restore.phase == CREATED:
        option = "--from-protection" if restore.point else "--from-backup"
        again = f"foresail restore create {option} {restore.source or 'BACKUP'} -n {key.namespace}"
        raise CommandError(f"{name} has been handed to Velero, which runs a restore once", f"create another: {again}")
    if not restore.is_refused:
        hint = f"see what it waits for with foresail restore explain {key.name} -n {key.namespace}"
        raise CommandError(f"{name} was not refused and has not expired", hint)


def retry_body(restore: TenantRequest, at: datetime) -> dict[str, Any]:
    """Return the edit of the spec that asks again for the restore that was read."""
    metadata = {"uid": restore.request.metadata.uid, "resourceVersion": restore.request.metadata.resource_version}
    return {"metadata": metadata, "spec": {"retriedAt": stamp(at)}}
