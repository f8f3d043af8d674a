"""`foresail primer suspend` and `resume`."""

import argparse
import sys

from foresail.api.primer import PRIMER
from foresail.cli.access.cluster import Cluster
from foresail.cli.options.booleans import CLIENT
from foresail.cli.options.output import is_table
from foresail.cli.output.objects import as_text
from foresail.cli.output.requests import Request, shown
from foresail.cli.primer.selection import as_document, check_selection, in_namespace, key_of, selected_primers


def suspend(args: argparse.Namespace) -> int:
    """Make Primers hold nothing."""
    check_selection(args, everything=False)
    return in_namespace(args, lambda cluster: _set(cluster, args, suspended=True))


def resume(args: argparse.Namespace) -> int:
    """Make Primers hold capacity again."""
    check_selection(args, everything=False)
    return in_namespace(args, lambda cluster: _set(cluster, args, suspended=False))


async def _set(cluster: Cluster, args: argparse.Namespace, *, suspended: bool) -> int:
    items = await selected_primers(cluster, args)
    body = {"spec": {"suspend": suspended}}
    if args.dry_run == CLIENT:
        print(shown([Request("PATCH", PRIMER, key_of(item), body) for item in items], args.output))
        return 0
    word = "suspended" if suspended else "resumed"
    done = f"would be {word} (server dry run)" if args.dry_run else word
    changed = []
    for item in items:
        key = key_of(item)
        changed.append(as_document(await cluster.merge(PRIMER, key, body, dry_run=bool(args.dry_run))))
        print(f"Primer {key} {done}", file=sys.stderr)
    if changed and not is_table(args.output):
        print(as_text(changed, args.output))
    return 0
