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


def in_namespace(args: argparse.Namespace, work: Callable[[Cluster], Awaitable[T]]) -> T:
    """Find the namespace, connect, do the work and disconnect."""
    if args.all_namespaces:
        args.namespace = ""
    settle_namespace(args)
    return on_cluster(args, work)


def check_selection(args: argparse.Namespace, *, everything: bool = True) -> None:
    """Refuse names combined with -l, -A or --all; a command that changes objects needs one of them."""
    is_all = getattr(args, "all", False)
    if args.names and (args.selector or args.all_namespaces or is_all):
        problem = f"Primer {args.names[0]}: names cannot be combined with -l, -A or --all"
        raise UsageError(problem, "specify either names or a selection")
    annotated = next((name for name in args.names if "/" in name), None)
    if annotated and not everything:
        problem = f"{annotated} is primed by an annotation, not by a Primer"
        raise UsageError(problem, f"remove it: kubectl annotate {annotated} {WARM_UP}-")
    if not (everything or args.names or args.selector or is_all):
        raise UsageError("no Primer is specified", "specify names, -l SELECTOR or --all")


async def selected_primers(cluster: Cluster, args: argparse.Namespace) -> list[Document]:
    """Read the Primers that are named or selected, or all of them; report if there is none."""
    items = await read_primers(cluster, args)
    if not items:
        report_none(args)
    return items


async def read_primers(cluster: Cluster, args: argparse.Namespace) -> list[Document]:
    """Read the Primers that are named or selected, or all of them."""
    if args.names:
        keys = [Key(args.namespace, name) for name in args.names]
        return [as_document(await cluster.read(PRIMER, key, msgspec.Raw)) for key in keys]
    listed = await cluster.listed(PRIMER, args.namespace, args.selector or "")
    return sorted(map(as_document, listed), key=key_of)


def report_none(args: argparse.Namespace) -> None:
    """Report that no Primer is selected."""
    labels = f" with labels {args.selector}" if args.selector else ""
    where = f" in namespace {args.namespace}" if args.namespace else ""
    print(f"No Primers found{where}{labels}", file=sys.stderr)


def as_document(raw: msgspec.Raw) -> Document:
    """Return a Primer as it came, with its kind."""
    return {"apiVersion": PRIMER.api_version, "kind": PRIMER.name, **_any.decode(raw)}


def key_of(primer: Document) -> Key:
    """Return the namespace and the name of a Primer."""
    return Key(primer["metadata"]["namespace"], primer["metadata"]["name"])
