"""`foresail backup keep`: a tenant takes back the announced deletion of backups; `keepLast` never deletes them then."""

import argparse
import sys

from foresail.api import velero
from foresail.api.marks import KEPT, PINNED
from foresail.cli.access.cluster import Cluster, on_cluster
from foresail.cli.output.messages import hint
from foresail.cli.output.objects import Request
from foresail.cli.tenant.selection import in_namespace, read_request
from foresail.cli.verbs import are_shown, outcome, report
from foresail.plan import Key
from foresail.selfservice.families import Family
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests.status import IN_DELETION


def keep(args: argparse.Namespace) -> int:
    """Keep the named backups, or with --undo let `keepLast` delete them again."""
    return in_namespace(args, lambda cluster, family: _keep(cluster, family, args))


async def _keep(cluster: Cluster, family: Family, args: argparse.Namespace) -> int:
    keys = [Key(args.namespace, name) for name in dict.fromkeys(args.names)]
    backups = [await read_request(cluster, family, key) for key in keys]  # all exist, or none is changed
    annotations: dict[str, str | None] = {PINNED: None} if args.undo else KEPT
    requests = []
    for key, backup in zip(keys, backups, strict=True):
        held = backup.condition(IN_DELETION)
        if held is not None and held.reason == Reason.DELETION_PROTECTED:
            hint(f"the deletion of {family.kind.name} {key.name} was requested already; it waits until --undo")
        elif backup.is_terminating:
            hint(f"{family.kind.name} {key.name} is being deleted already; this does not stop it")
        body = {"metadata": {"uid": backup.request.metadata.uid, "annotations": annotations}}
        requests.append(Request("PATCH", family.kind, key, body))
    if are_shown(args, requests):
        return 0
    word = "no longer kept from keepLast" if args.undo else "kept"
    done = outcome(args, word)
    for request in requests:
        made = await cluster.merge(request.kind, request.key, request.body or {}, dry_run=bool(args.dry_run))
        report(args, made, f"{family.kind.name} {request.key.name} {done}")
    return 0


_TRUE = "true"


def pin(args: argparse.Namespace) -> int:
    """Pin the named Velero Backups."""
    return on_cluster(args, lambda cluster: _set_pinned(cluster, args, value=_TRUE))


def unpin(args: argparse.Namespace) -> int:
    """Unpin the named Velero Backups."""
    return on_cluster(args, lambda cluster: _set_pinned(cluster, args, value=None))


async def _set_pinned(cluster: Cluster, args: argparse.Namespace, value: str | None) -> int:
    word = "unpinned" if value is None else "pinned"
    keys = [Key(args.namespace, fromkey) for fromkey in dict.fromkeys(args.names)]
    backups = [await cluster.read(velero.BACKUP, key, velero.Backup) for key in keys]  # all exist, or none is changed
    requests = []
    for key, backup in zip(keys, backups, strict=True):
        if (backup.metadata.annotations or {}).get(PINNED) == value:
            print(f"Backup {key.name} is already {word}, skip", file=sys.stderr)
            continue
        annotations: dict[str, str | None] = KEPT if value is not None else {PINNED: None}
        requests.append(Request("PATCH", velero.BACKUP, key, {"metadata": {"annotations": annotations}}))
        if value is not None and backup.status.phase == velero.DELETING:
            hint(f"Velero is deleting Backup {key.name} already; pinning it does not stop that")
    if are_shown(args, requests):
        return 0
    done = outcome(args, word)
    for request in requests:
        made = await cluster.merge(request.kind, request.key, request.body or {}, dry_run=bool(args.dry_run))
        report(args, made, f"Backup {request.key.name} {done}")
    return 0
