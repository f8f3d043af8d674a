"""`foresail backup pin` and `unpin`: an administrator protects Velero Backups from retention."""

import argparse
import sys

import msgspec

from foresail.api import velero
from foresail.api.marks import KEPT, PINNED
from foresail.cli.access.cluster import Cluster, on_cluster
from foresail.cli.options.parser import CLIENT
from foresail.cli.options.shared import is_table
from foresail.cli.output.messages import hint
from foresail.cli.output.objects import Request, as_text, shown
from foresail.plan import Key

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
    if args.dry_run == CLIENT:
        print(shown(requests, args.output))
        return 0
    done = f"would be {word} (server dry run)" if args.dry_run else word
    for request in requests:
        made = await cluster.merge(request.kind, request.key, request.body or {}, dry_run=bool(args.dry_run))
        if is_table(args.output):
            print(f"Backup {request.key.name} {done}", file=sys.stderr)
        else:
            print(as_text([msgspec.json.decode(made, type=dict[str, object])], args.output))
    return 0
