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


def create(chosen: argparse.Namespace) -> int:
    """Create a Primer, or print it; printing needs no cluster."""
    if chosen.cron_job and chosen.selector:
        raise UsageError("--cron-job and -l cannot be combined", "specify one of them")
    if chosen.dry_run != SERVER and (chosen.dry_run or chosen.output not in ("table", "wide", "name")):
        print(as_text([body_of(chosen)], "yaml" if is_table(chosen.output) else chosen.output))
        return 0
    return in_namespace(chosen, lambda cluster: _create(cluster, chosen))


def body_of(chosen: argparse.Namespace) -> dict[str, Any]:
    """Return the Primer that the options describe; without a namespace if none is given."""
    minutes_of(chosen.warm_up)
    spec: dict[str, Any] = {"warmUp": int(chosen.warm_up) if chosen.warm_up.isdecimal() else chosen.warm_up}
    if chosen.selector:
        spec["selector"] = read_selector(chosen.selector)
    else:
        spec["cronJob"] = chosen.cron_job or chosen.name
    given = {"method": chosen.method, "releaseAfter": chosen.release_after}
    spec |= {name: value for name, value in given.items() if value}
    if chosen.allow_standing:
        spec["allowStanding"] = True
    metadata = {"name": chosen.name, **({"namespace": chosen.namespace} if chosen.namespace else {})}
    return {"apiVersion": PRIMER.api_version, "kind": PRIMER.name, "metadata": metadata, "spec": spec}


async def _create(cluster: Cluster, chosen: argparse.Namespace) -> int:
    body, key = body_of(chosen), Key(chosen.namespace, chosen.name)
    await _check(cluster, key, body, chosen)
    made = await cluster.create(PRIMER, key, body, dry_run=chosen.dry_run == SERVER)
    if not is_table(chosen.output):
        print(as_text([as_document(made)], chosen.output))
    done = "created (server dry run)" if chosen.dry_run else "created; see `foresail primer get {} -n {}`"
    print(f"Primer {key} {done.format(key.name, key.namespace)}", file=sys.stderr)
    return 0


async def _check(cluster: Cluster, key: Key, body: dict[str, Any], chosen: argparse.Namespace) -> None:
    """Refuse a Primer that would hold nothing, unless it is forced; warn of what may pass."""
    try:
        problems = await problems_of(cluster, body, chosen)
    except UnreachableError:
        raise
    except CommandError as error:  # who may create a Primer need not be allowed to read all that the rules need
        print(f"warning: cannot check Primer {key}: {error.problem}", file=sys.stderr)
        return
    if not chosen.force:
        refuse(key, problems)
    for each in problems:
        print(f"warning: {each.message}", file=sys.stderr)
