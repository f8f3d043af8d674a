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
    found = await selected_primers(cluster, args)
    if args.dry_run == CLIENT:
        print(shown([Request("DELETE", PRIMER, key_of(each)) for each in found], args.output))
        return 0
    if found and not (args.confirm or args.dry_run):
        confirm_deletion(f"Primer {key_of(each)}" for each in found)
    for each in found:
        await cluster.delete(PRIMER, key_of(each), each["metadata"]["uid"], dry_run=bool(args.dry_run))
        done = "would be deleted (server dry run)" if args.dry_run else "deleted; its capacity is released"
        print(f"Primer {key_of(each)} {done}", file=sys.stderr)
    if found and not is_table(args.output):
        print(as_text(found, args.output))
    return 0
