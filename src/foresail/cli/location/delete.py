"""`foresail location delete`: the location goes with its backups, and every byte stays in the bucket."""

import argparse
import sys

from foresail.api.nonadmin import Location
from foresail.api.requests import NON_ADMIN_LOCATION
from foresail.cli.access.cluster import Cluster, on_cluster, settle_namespace
from foresail.cli.options.booleans import CLIENT
from foresail.cli.output.messages import confirm_deletion
from foresail.cli.output.requests import Request, shown
from foresail.plan import Key


def delete(args: argparse.Namespace) -> int:
    """Delete a location, after asking."""
    settle_namespace(args)
    return on_cluster(args, lambda cluster: _delete(cluster, args))


async def _delete(cluster: Cluster, args: argparse.Namespace) -> int:
    kind = NON_ADMIN_LOCATION
    key = Key(args.namespace, args.name)
    location = await cluster.read(kind, key, Location)
    if args.dry_run == CLIENT:
        print(shown([Request("DELETE", kind, key)], "table"))
        return 0
    if not (args.confirm or args.dry_run):
        confirm_deletion((f"{kind.name} {key} with its backups",))
    await cluster.delete(kind, key, location.metadata.uid, dry_run=bool(args.dry_run))
    if args.dry_run:
        print(f"{kind.name} {key} would be deleted (server dry run).", file=sys.stderr)
        return 0
    print(f"{kind.name} {key} deletion started; the data of its backups stays in the bucket.", file=sys.stderr)
    return 0
