"""`foresail backup delete` and `foresail restore delete`.

A backup is not deleted as an object: its spec decides what happens to the data, and the operator does the rest.
"""

import argparse
import sys
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from foresail.api.marks import PINNED
from foresail.cli.access.cluster import Cluster
from foresail.cli.options.values import deadline
from foresail.cli.output.messages import interruptible
from foresail.cli.output.objects import Request
from foresail.cli.tenant.new_request import stamped
from foresail.cli.tenant.selection import in_namespace, selected_requests
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.cli.tenant.wait import wait_until_deleted
from foresail.cli.verbs import are_shown, check_selected, confirm, outcome, report
from foresail.selfservice.families import BACKUPS, Family

WARNING = (
    "warning: --force deletes the backup and leaves its data in the bucket until someone removes it there. "
    "Velero may sync the backup back; it then counts against the quota of the namespace."
)


def delete(args: argparse.Namespace) -> int:
    """Delete the selected requests, after asking."""
    return interruptible(lambda: in_namespace(args, lambda cluster, family: _delete(cluster, family, args)))


async def _delete(cluster: Cluster, family: Family, args: argparse.Namespace) -> int:
    check_selected(args, family.kind.name)
    until = deadline(args.timeout)
    requests = await selected_requests(cluster, family, args)
    if requests and args.force:
        print(WARNING, file=sys.stderr)
    if are_shown(args, [request_for(request, force=args.force) for request in requests]):
        return 0
    confirm(args, (f"{family.kind.name} {request.key}" for request in requests))
    for request in requests:
        await _send(cluster, request_for(request, force=args.force), request, dry_run=bool(args.dry_run))
        _report(request, args)
    if args.wait and not args.dry_run:
        await _wait_for_all(cluster, requests, until)
    return 0


async def _wait_for_all(cluster: Cluster, requests: Iterable[TenantRequest], until: datetime | None) -> None:
    for request in requests:
        await wait_until_deleted(cluster, request, until)
        print(f"{request.family.kind.name} {request.key} is deleted.", file=sys.stderr)


def request_for(request: TenantRequest, *, force: bool) -> Request:
    """Return the one write that starts a deletion, of this very object and not of a later one of its name."""
    if request.family is not BACKUPS:
        return Request("DELETE", request.family.kind, request.key)
    flag = "forceDeleteBackup" if force else "deleteBackup"
    metadata: dict[str, Any] = {"uid": request.request.metadata.uid}
    if request.mark.is_kept:  # else the deletion would wait for `foresail backup keep --undo`
        metadata["annotations"] = {PINNED: None}
    body: dict[str, Any] = {"metadata": metadata, "spec": {flag: True}}
    return Request("PATCH", request.family.kind, request.key, body)


async def _send(cluster: Cluster, request: Request, tenant_request: TenantRequest, *, dry_run: bool) -> None:
    if request.body is None:
        await cluster.delete(request.kind, request.key, tenant_request.request.metadata.uid, dry_run=dry_run)
    else:
        await cluster.merge(request.kind, request.key, await stamped(cluster, request.body), dry_run=dry_run)


def _report(request: TenantRequest, args: argparse.Namespace) -> None:
    text = outcome(args, "deleted", f"deletion started{what_happens(request, force=args.force)}")
    report(args, request.content, f"{request.family.kind.name} {request.key}: {text}")


def what_happens(request: TenantRequest, *, force: bool) -> str:
    """Return what a deletion does to the data, and that it does not stop what Velero has begun."""
    if request.family is not BACKUPS:
        goes_on = "; Velero goes on restoring and cannot be stopped, and" if request.is_running else ";"
        return f"{goes_on} restored objects stay"
    when = ", when it has finished: Velero cannot stop it" if request.is_running else ""
    if is_in_own_bucket(request.content):
        return f"; its data stays in your bucket{when}"
    return f"; its data stays in the bucket{when}" if force else f", including its data{when}"


def is_in_own_bucket(content: dict[str, Any]) -> bool:
    """Whether a backup is in a storage location of its tenant: Velero's location has another name then."""
    asked = (content.get("spec", {}).get("backupSpec") or {}).get("storageLocation")
    made = (content.get("status", {}).get("veleroBackup") or {}).get("spec") or {}
    return bool(asked) and made.get("storageLocation", asked) != asked
