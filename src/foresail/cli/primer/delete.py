"""`foresail primer delete`."""

import argparse
import sys

from foresail.api.primer import PRIMER
from foresail.cli.access.cluster import Cluster
from foresail.cli.options.booleans import CLIENT
from foresail.cli.options.output import is_table
from foresail.cli.output.messages import confirm_deletion
from foresail.cli.output.objects import as_text
from foresail.cli.output.requests import Request, shown
from foresail.cli.primer.selection import check_selection, in_namespace, key_of, selected_primers


def delete(args: argparse.Namespace) -> int:
    """Delete the selected Primers, after confirmation."""
    check_selection(args, everything=False)
    return in_namespace(args, lambda cluster: _delete(cluster, args))


async def _delete(cluster: Cluster, args: argparse.Namespace) -> int:
    items = await selected_primers(cluster, args)
    if args.dry_run == CLIENT:
        print(shown([Request("DELETE", PRIMER, key_of(item)) for item in items], args.output))
        return 0
    if items and not (args.confirm or args.dry_run):
        confirm_deletion(f"Primer {key_of(item)}" for item in items)
    for item in items:
        await cluster.delete(PRIMER, key_of(item), item["metadata"]["uid"], dry_run=bool(args.dry_run))
        done = "would be deleted (server dry run)" if args.dry_run else "deleted; its capacity is released"
        print(f"Primer {key_of(item)} {done}", file=sys.stderr)
    if items and not is_table(args.output):
        print(as_text(items, args.output))
    return 0
