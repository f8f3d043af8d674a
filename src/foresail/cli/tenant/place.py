"""Where a tenant works: the namespace of the kube context, unless another is named."""

import argparse
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from foresail.cli.access.cluster import Cluster, on_cluster, settle_namespace
from foresail.cli.errors import CommandError
from foresail.cli.tenant.asked import Asked, asked
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, RESTORES, Family

T = TypeVar("T")


def family_of(args: argparse.Namespace) -> Family:
    """Return what the command is about: backups or restores."""
    return BACKUPS if args.word == BACKUPS.word else RESTORES


def in_namespace(args: argparse.Namespace, work: Callable[[Cluster, Family], Awaitable[T]]) -> T:
    """Find the namespace, connect, do the work and disconnect."""
    if getattr(args, "all_namespaces", False):
        args.namespace = ""
    else:
        settle_namespace(args)
    return on_cluster(args, lambda cluster: work(cluster, family_of(args)))


async def one(cluster: Cluster, family: Family, key: Key) -> Asked:
    """Read one request."""
    return asked(family, await cluster.read(family.kind, key, msgspec.Raw))


async def chosen_ones(
    cluster: Cluster, family: Family, args: argparse.Namespace, *, is_quiet: bool = False
) -> list[Asked]:
    """Read the requests that the user has named or selected, or all of them; say it if there is none."""
    if args.names and (args.selector or getattr(args, "all", False) or not args.namespace):
        problem = f"{family.kind.name} {args.names[0]}: names cannot be combined with -l, -A or --all"
        raise CommandError(problem, "specify either names or a selection")
    if args.names:
        return [await one(cluster, family, Key(args.namespace, name)) for name in args.names]
    listed = await cluster.listed(family.kind, args.namespace, args.selector or "")
    found = sorted((asked(family, each) for each in listed), key=lambda each: each.key)
    if not found and not is_quiet:
        where = f"namespace {args.namespace}" if args.namespace else "any namespace"
        print(f"No {family.word}s found in {where}", file=sys.stderr)
    return found


def looked_at(args: argparse.Namespace) -> list[Asked]:
    """Return the selected requests as they are now."""
    return in_namespace(args, lambda cluster, family: chosen_ones(cluster, family, args))
