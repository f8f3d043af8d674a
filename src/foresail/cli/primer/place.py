"""Where Primers are, and the chosen ones as they stand."""

import argparse
import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from foresail.api.primer import PRIMER
from foresail.cli.access.cluster import Cluster, on_cluster, settle_namespace
from foresail.plan import Key

T = TypeVar("T")
Document = dict[str, Any]
_any = msgspec.json.Decoder(Document)


def in_namespace(chosen: argparse.Namespace, work: Callable[[Cluster], Awaitable[T]]) -> T:
    """Find the namespace, connect, do the work and disconnect."""
    if chosen.all_namespaces:
        chosen.namespace = ""
    settle_namespace(chosen)
    return on_cluster(chosen, work)


async def chosen_primers(cluster: Cluster, chosen: argparse.Namespace) -> list[Document]:
    """Read the Primers that the user has named, or all of them; say it if there is none."""
    if chosen.names:
        keys = [Key(chosen.namespace, name) for name in chosen.names]
        return [whole(await cluster.read(PRIMER, key, msgspec.Raw)) for key in keys]
    found = [whole(each) for each in await cluster.listed(PRIMER, chosen.namespace)]
    if not found:
        where = f" in namespace {chosen.namespace}" if chosen.namespace else ""
        print(f"No primers found{where}", file=sys.stderr)
    return sorted(found, key=lambda each: (each["metadata"]["namespace"], each["metadata"]["name"]))


def whole(raw: msgspec.Raw) -> Document:
    """Return a Primer as it came, with its kind."""
    return {"apiVersion": PRIMER.api_version, "kind": PRIMER.name, **_any.decode(raw)}
