"""The namespace and the requests that a command selects; by default the namespace of the kube context."""

import argparse
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from foresail.api.core import EVENT
from foresail.cli.access.cluster import Cluster, may, on_namespace
from foresail.cli.access.together import all_of
from foresail.cli.errors import CommandError
from foresail.cli.output.messages import hint
from foresail.cli.tenant.tenant_request import TenantRequest, decode_request
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from foresail.selfservice.reasons import Reason


async def earlier_backups(cluster: Cluster, namespace: str) -> str:
    """Return what a team without backups does about those of an earlier namespace, which only an operator sees."""
    if await _is_announced(cluster, namespace):
        from foresail.cli.tenant.advice import advice_for  # noqa: PLC0415 - few lists are empty

        advice = advice_for(Reason.BACKUPS_ADOPTABLE.value)
        return f"{advice.cause}: {advice.next_step}".format(namespace=namespace)
    command = f"foresail backup adopt -n {namespace}"
    return (
        f"backups of an earlier namespace {namespace} are not listed; a cluster administrator returns them: {command}"
    )


async def _is_announced(cluster: Cluster, namespace: str) -> bool:
    """Whether the operator reported them: an Event, which the API server keeps for an hour by default."""
    try:
        if not await may(cluster, "list", EVENT, namespace):
            return False
        return bool(await cluster.listed(EVENT, namespace, fields=f"reason={Reason.BACKUPS_ADOPTABLE.value}"))
    except CommandError:
        return False  # a hint alone: the list itself has succeeded


T = TypeVar("T")


def family_of(args: argparse.Namespace) -> Family:
    """Return whether the command handles backups or restores."""
    return BACKUPS if args.word == BACKUPS.word else RESTORES


def in_namespace(args: argparse.Namespace, work: Callable[[Cluster, Family], Awaitable[T]]) -> T:
    """Determine the namespace, connect, do the work and disconnect."""
    return on_namespace(args, lambda cluster: work(cluster, family_of(args)))


async def read_request(cluster: Cluster, family: Family, key: Key) -> TenantRequest:
    """Read one request."""
    return decode_request(family, await cluster.read(family.kind, key, msgspec.Raw))


async def selected_requests(
    cluster: Cluster, family: Family, args: argparse.Namespace, *, is_quiet: bool = False
) -> list[TenantRequest]:
    """Read the requests that names or a selector match, or all; print a message if there are none."""
    if args.names and (args.selector or getattr(args, "all", False) or not args.namespace):
        problem = f"{family.kind.name} {args.names[0]}: names cannot be combined with -l, -A or --all"
        raise CommandError(problem, "specify either names or a selection")
    if args.names:
        return await all_of(read_request(cluster, family, Key(args.namespace, name)) for name in args.names)
    listed = await cluster.listed(family.kind, args.namespace, args.selector or "")
    requests = sorted((decode_request(family, raw) for raw in listed), key=lambda request: request.key)
    if not requests and not is_quiet:
        where = f"namespace {args.namespace}" if args.namespace else "any namespace"
        print(f"No {family.word}s found in {where}", file=sys.stderr)
        if family is BACKUPS and args.namespace and not args.selector:
            hint(await earlier_backups(cluster, args.namespace))
    return requests


def read_selected(args: argparse.Namespace) -> list[TenantRequest]:
    """Connect and read the selected requests."""
    return in_namespace(args, lambda cluster, family: selected_requests(cluster, family, args))
