"""`foresail backup create` and `foresail restore create`: a request, and the wait for what becomes of it."""

import argparse
import sys
from typing import Any

import msgspec

from foresail.cli.access.cluster import Cluster
from foresail.cli.options.values import deadline
from foresail.cli.output.messages import interruptible
from foresail.cli.output.objects import as_text
from foresail.cli.tenant.kinds import check_kinds
from foresail.cli.tenant.place import in_namespace
from foresail.cli.tenant.requester import stamped
from foresail.cli.tenant.spec import request_object
from foresail.cli.tenant.wait import wait_for
from foresail.plan import Key
from foresail.selfservice.families import Family


def create(chosen: argparse.Namespace) -> int:
    """Create a request, or show the one that would be created."""
    return interruptible(lambda: in_namespace(chosen, lambda cluster, family: _create(cluster, family, chosen)))


async def _create(cluster: Cluster, family: Family, chosen: argparse.Namespace) -> int:
    body = request_object(family, chosen)
    until = deadline(chosen.timeout)
    if chosen.dry_run or chosen.output in ("json", "yaml"):
        print(as_text([body], chosen.output if chosen.output in ("json", "yaml", "name") else "yaml"))
        return 0
    await check_kinds(cluster, family, body)
    key = Key(chosen.namespace, chosen.name)
    made = await cluster.create(family.kind, key, await stamped(cluster, body))
    if chosen.output == "name":
        print(as_text([msgspec.json.decode(made, type=dict[str, Any])], "name"), flush=True)
    print(f"{family.kind.name} {key} created.", file=sys.stderr)
    if chosen.wait:
        return await wait_for(cluster, family, key, until)
    print(f"See how it goes with foresail {family.word} wait {key.name} -n {key.namespace}", file=sys.stderr)
    return 0
