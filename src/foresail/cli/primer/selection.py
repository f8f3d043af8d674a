"""Which Primers a command is about, and where they are."""

import argparse
import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from foresail.api.marks import WARM_UP
from foresail.api.primer import PRIMER
from foresail.cli.access.cluster import Cluster, on_cluster, settle_namespace
from foresail.cli.errors import UsageError
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


def check_selection(chosen: argparse.Namespace, *, everything: bool = True) -> None:
    """Refuse names beside -l, -A or --all; where everything must be asked for, refuse a selection of nothing."""
    is_all = getattr(chosen, "all", False)
    if chosen.names and (chosen.selector or chosen.all_namespaces or is_all):
        problem = f"Primer {chosen.names[0]}: names cannot be combined with -l, -A or --all"
        raise UsageError(problem, "specify either names or a selection")
    annotated = next((each for each in chosen.names if "/" in each), None)
    if annotated and not everything:
        problem = f"{annotated} is primed by an annotation, not by a Primer"
        raise UsageError(problem, f"remove it: kubectl annotate {annotated} {WARM_UP}-")
    if not (everything or chosen.names or chosen.selector or is_all):
        raise UsageError("no Primer is specified", "specify names, -l SELECTOR or --all")


async def selected_primers(cluster: Cluster, chosen: argparse.Namespace) -> list[Document]:
    """Read the Primers that are named or selected, or all of them; report if there is none."""
    found = await read_primers(cluster, chosen)
    if not found:
        tell_none(chosen)
    return found


async def read_primers(cluster: Cluster, chosen: argparse.Namespace) -> list[Document]:
    """Read the Primers that are named or selected, or all of them."""
    if chosen.names:
        keys = [Key(chosen.namespace, name) for name in chosen.names]
        return [as_document(await cluster.read(PRIMER, key, msgspec.Raw)) for key in keys]
    listed = await cluster.listed(PRIMER, chosen.namespace, chosen.selector or "")
    return sorted(map(as_document, listed), key=key_of)


def tell_none(chosen: argparse.Namespace) -> None:
    """Report that no Primer is selected."""
    labels = f" with labels {chosen.selector}" if chosen.selector else ""
    where = f" in namespace {chosen.namespace}" if chosen.namespace else ""
    print(f"No Primers found{where}{labels}", file=sys.stderr)


def as_document(raw: msgspec.Raw) -> Document:
    """Return a Primer as it came, with its kind."""
    return {"apiVersion": PRIMER.api_version, "kind": PRIMER.name, **_any.decode(raw)}


def key_of(primer: Document) -> Key:
    """Return the namespace and the name of a Primer."""
    return Key(primer["metadata"]["namespace"], primer["metadata"]["name"])
