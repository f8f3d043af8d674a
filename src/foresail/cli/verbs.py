"""The steps that verbs share: select, show instead of sending, ask, report, and wait for the operator's answer."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from typing import Any

import msgspec

from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.options.parser import CLIENT
from foresail.cli.options.shared import is_table
from foresail.cli.output.messages import confirm_deletion
from foresail.cli.output.objects import Request, as_text, shown
from foresail.kube.clock import now
from foresail.plan import Body, Key, Kind

_PATIENCE, _PAUSE = timedelta(seconds=5), 0.25
_any = msgspec.json.Decoder(dict[str, Any])


def check_selected(args: argparse.Namespace, noun: str) -> None:
    """Refuse a change of everything that nobody asked for."""
    if not (args.names or args.selector or args.all):
        raise CommandError(f"no {noun} is specified", "specify names, -l SELECTOR or --all")


def is_printed(args: argparse.Namespace) -> bool:
    """Whether a create only prints its object, which needs no cluster."""
    return bool(args.dry_run == CLIENT or (not args.dry_run and not (is_table(args.output) or args.output == "name")))


def print_object(args: argparse.Namespace, content: msgspec.Raw | dict[str, Any]) -> None:
    """Print an object: as YAML unless -o selects another form."""
    print(as_text([_decoded(content)], "yaml" if is_table(args.output) else args.output), flush=True)


def are_shown(args: argparse.Namespace, requests: list[Request]) -> bool:
    """Print what a client's dry run would send; return whether it is one."""
    if args.dry_run != CLIENT:
        return False
    print(shown(requests, args.output))
    return True


def confirm(args: argparse.Namespace, names: Iterable[str]) -> None:
    """Ask before objects are deleted, unless --confirm or a dry run is given."""
    those = list(names)
    if those and not (args.confirm or args.dry_run):
        confirm_deletion(those)


def outcome(args: argparse.Namespace, word: str, sentence: str = "") -> str:
    """Return what was done to an object, or what would have been."""
    return f"would be {word} (server dry run)" if args.dry_run else sentence or word


def report(args: argparse.Namespace, content: msgspec.Raw | dict[str, Any], text: str) -> None:
    """Report a change: a sentence, or the object if -o selects a form."""
    if is_table(args.output):
        print(text, file=sys.stderr)
    else:
        print(as_text([_decoded(content)], args.output), flush=True)


def print_name(args: argparse.Namespace, made: msgspec.Raw) -> None:
    """Print the name of a new object if -o selects it."""
    if args.output == "name":
        print(as_text([_any.decode(made)], "name"), flush=True)


async def create_object(cluster: Cluster, args: argparse.Namespace, kind: Kind, body: Body) -> msgspec.Raw:
    """Create an object, or let the API server try in a dry run; print its name if -o selects that."""
    key = Key(args.namespace, args.name)
    made = await cluster.create(kind, key, body, dry_run=bool(args.dry_run))
    if args.dry_run:
        print(f"{kind.name} {key} would be created (server dry run).", file=sys.stderr)
    else:
        print_name(args, made)
    return made


async def answer(ask: Callable[[], Awaitable[str]], otherwise: str) -> str:
    """Return what the operator answers to a new object within some seconds; `ask` raises its refusal."""
    until = now() + _PATIENCE
    while now() < until:
        text = await ask()
        if text:
            return text
        await asyncio.sleep(_PAUSE)
    return otherwise


def _decoded(content: msgspec.Raw | dict[str, Any]) -> dict[str, Any]:
    return content if isinstance(content, dict) else _any.decode(content)
