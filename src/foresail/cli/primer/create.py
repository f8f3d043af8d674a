"""`foresail primer create`: a Primer from options, checked before it is created."""

import argparse
import sys
from typing import Any

from foresail.api.primer import PRIMER
from foresail.cli.access.cluster import Cluster
from foresail.cli.cron.words import minutes_of
from foresail.cli.errors import CommandError, UnreachableError, UsageError
from foresail.cli.options.booleans import SERVER
from foresail.cli.options.output import is_table
from foresail.cli.options.selectors import read_selector
from foresail.cli.output.objects import as_text
from foresail.cli.primer.check import problems_of, refuse
from foresail.cli.primer.selection import as_document, in_namespace
from foresail.plan import Key


def create(args: argparse.Namespace) -> int:
    """Create a Primer, or print it; printing needs no cluster."""
    if args.cron_job and args.selector:
        raise UsageError("--cron-job and -l cannot be combined", "specify one of them")
    if args.dry_run != SERVER and (args.dry_run or args.output not in ("table", "wide", "name")):
        print(as_text([body_of(args)], "yaml" if is_table(args.output) else args.output))
        return 0
    return in_namespace(args, lambda cluster: _create(cluster, args))


def body_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the Primer that the options describe; without a namespace if none is given."""
    minutes_of(args.warm_up)
    spec: dict[str, Any] = {"warmUp": int(args.warm_up) if args.warm_up.isdecimal() else args.warm_up}
    if args.selector:
        spec["selector"] = read_selector(args.selector)
    else:
        spec["cronJob"] = args.cron_job or args.name
    given = {"method": args.method, "releaseAfter": args.release_after}
    spec |= {name: value for name, value in given.items() if value}
    if args.allow_standing:
        spec["allowStanding"] = True
    metadata = {"name": args.name, **({"namespace": args.namespace} if args.namespace else {})}
    return {"apiVersion": PRIMER.api_version, "kind": PRIMER.name, "metadata": metadata, "spec": spec}


async def _create(cluster: Cluster, args: argparse.Namespace) -> int:
    body = body_of(args)
    key = Key(args.namespace, args.name)
    await _check(cluster, key, body, args)
    made = await cluster.create(PRIMER, key, body, dry_run=args.dry_run == SERVER)
    if not is_table(args.output):
        print(as_text([as_document(made)], args.output))
    done = "created (server dry run)" if args.dry_run else "created; see `foresail primer get {} -n {}`"
    print(f"Primer {key} {done.format(key.name, key.namespace)}", file=sys.stderr)
    return 0


async def _check(cluster: Cluster, key: Key, body: dict[str, Any], args: argparse.Namespace) -> None:
    """Refuse a Primer that would hold nothing, unless it is forced; warn of what may pass."""
    try:
        problems = await problems_of(cluster, body, args)
    except UnreachableError:
        raise
    except CommandError as error:  # who may create a Primer need not be allowed to read all that the rules need
        print(f"warning: cannot check Primer {key}: {error.problem}", file=sys.stderr)
        return
    if not args.force:
        refuse(key, problems)
    for problem in problems:
        print(f"warning: {problem.message}", file=sys.stderr)
