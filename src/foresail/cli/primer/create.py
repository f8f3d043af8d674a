"""`foresail primer create`: a Primer from options."""

import argparse
import sys
from typing import Any

from foresail.api.primer import PRIMER
from foresail.cli.access.cluster import Cluster
from foresail.cli.cron.words import minutes_of
from foresail.cli.errors import CommandError
from foresail.cli.options.selectors import read_selector
from foresail.cli.output.objects import as_text
from foresail.cli.primer.selection import as_document, in_namespace
from foresail.plan import Key


def create(chosen: argparse.Namespace) -> int:
    """Make a Primer, or show it."""
    if chosen.cron_job and chosen.selector:
        raise CommandError("a CronJob is named, and others are selected as well", "give --cron-job or -l")
    return in_namespace(chosen, lambda cluster: _create(cluster, chosen))


def body_of(chosen: argparse.Namespace) -> dict[str, Any]:
    """Return the Primer that the options mean."""
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
    metadata = {"name": chosen.name, "namespace": chosen.namespace}
    return {"apiVersion": PRIMER.api_version, "kind": PRIMER.name, "metadata": metadata, "spec": spec}


async def _create(cluster: Cluster, chosen: argparse.Namespace) -> int:
    body = body_of(chosen)
    if chosen.dry_run or chosen.output in ("json", "yaml"):
        print(as_text([body], chosen.output if chosen.output != "table" else "yaml"))
        return 0
    made = await cluster.create(PRIMER, Key(chosen.namespace, chosen.name), body)
    if chosen.output == "name":
        print(as_text([as_document(made)], "name"))
    else:
        print(f"Primer {chosen.name} created; see `foresail primer get {chosen.name}`", file=sys.stderr)
    return 0
