"""`foresail backup keep`: a tenant takes back the announced deletion of backups; `keepLast` never deletes them then."""

import argparse
import sys

import msgspec

from foresail.api.marks import KEPT, PINNED
from foresail.cli.access.cluster import Cluster
from foresail.cli.options.parser import CLIENT
from foresail.cli.options.shared import is_table
from foresail.cli.output.messages import hint
from foresail.cli.output.objects import Request, as_text, shown
from foresail.cli.tenant.selection import in_namespace, read_request
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
    if args.dry_run == CLIENT:
        print(shown(requests, args.output))
        return 0
    word = "no longer kept from keepLast" if args.undo else "kept"
    done = f"would be {word} (server dry run)" if args.dry_run else word
    for request in requests:
        made = await cluster.merge(request.kind, request.key, request.body or {}, dry_run=bool(args.dry_run))
        if is_table(args.output):
            print(f"{family.kind.name} {request.key.name} {done}", file=sys.stderr)
        else:
            print(as_text([msgspec.json.decode(made, type=dict[str, object])], args.output))
    return 0
