"""`foresail restore retry`: ask again for restores that were refused or have expired."""

import argparse
import sys
from datetime import datetime
from typing import Any

from foresail.api.instants import stamp
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.options.parser import CLIENT
from foresail.cli.options.shared import is_table
from foresail.cli.options.values import deadline
from foresail.cli.output.messages import interruptible
from foresail.cli.output.objects import Request, as_text, shown
from foresail.cli.tenant.requester import stamped
from foresail.cli.tenant.selection import in_namespace, read_request
from foresail.cli.tenant.tenant_request import TenantRequest, decode_request
from foresail.cli.tenant.wait import wait_for
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.selfservice.families import Family
from foresail.selfservice.requests.status import CREATED


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
    if args.dry_run == CLIENT:
        print(shown(requests, args.output))
        return 0
    for restore, request in zip(tenant_requests, requests, strict=True):
        body = await stamped(cluster, request.body or {})
        made = await cluster.merge(family.kind, restore.key, body, dry_run=bool(args.dry_run))
        changed = decode_request(family, made)
        if changed.request.metadata.generation == restore.request.metadata.generation:
            problem = f"{family.kind.name} {restore.key} has not changed: the API server does not know spec.retriedAt"
            raise CommandError(problem, "ask a cluster administrator to update Foresail's CRDs")
        done = "would be retried (server dry run)" if args.dry_run else "retried"
        if is_table(args.output):
            print(f"{family.kind.name} {restore.key} {done}.", file=sys.stderr)
        else:
            print(as_text([changed.content], args.output), flush=True)
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
        source = restore.spec.get("backupName", "BACKUP")
        again = f"foresail restore create --from-backup {source} -n {key.namespace}"
        raise CommandError(f"{name} has been handed to Velero, which runs a restore once", f"create another: {again}")
    if not restore.is_refused:
        hint = f"see what it waits for with foresail restore explain {key.name} -n {key.namespace}"
        raise CommandError(f"{name} was not refused and has not expired", hint)


def retry_body(restore: TenantRequest, at: datetime) -> dict[str, Any]:
    """Return the edit of the spec that asks again for the restore that was read."""
    metadata = {"uid": restore.request.metadata.uid, "resourceVersion": restore.request.metadata.resource_version}
    return {"metadata": metadata, "spec": {"retriedAt": stamp(at)}}
