"""Rollbacks as the command line reads them, and which of them a command selects."""

import argparse
import sys
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from foresail.api.requests import Condition
from foresail.api.rollback import ENDED, ROLLBACK, Rollback, RollbackSpec, RollbackStatus
from foresail.cli.access.cluster import Cluster, on_namespace
from foresail.cli.access.together import all_of
from foresail.cli.errors import CommandError, UsageError
from foresail.plan import Key

T = TypeVar("T")
_SUCCEEDED = "Succeeded"
_any = msgspec.json.Decoder(dict[str, Any])
_rollback = msgspec.json.Decoder(Rollback)


@dataclass(frozen=True, slots=True)
class Seen:
    """A Rollback, as it was read and decoded."""

    content: dict[str, Any]
    rollback: Rollback

    @property
    def key(self) -> Key:
        """Its namespace and name."""
        return Key(self.rollback.metadata.namespace, self.rollback.metadata.name)

    @property
    def uid(self) -> str:
        """Its UID."""
        return self.rollback.metadata.uid

    @property
    def spec(self) -> RollbackSpec:
        """What is asked for."""
        return self.rollback.spec

    @property
    def status(self) -> RollbackStatus:
        """What the operator reports."""
        return self.rollback.status

    @property
    def has_ended(self) -> bool:
        """Whether nothing is changed any more."""
        return self.status.phase in ENDED

    @property
    def runs(self) -> bool:
        """Whether it has begun and not ended: whoever calls it off does not become its requester."""
        return self.status.phase != "New" and not self.has_ended

    @property
    def succeeded(self) -> Condition | None:
        """The condition that says how it goes; None before the operator's first answer."""
        return next((condition for condition in self.status.conditions if condition.type == _SUCCEEDED), None)

    @property
    def reason(self) -> str:
        """The reason of that condition; empty before the first answer."""
        return self.succeeded.reason if self.succeeded is not None else ""

    @property
    def message(self) -> str:
        """The message of that condition."""
        return self.succeeded.message if self.succeeded is not None else ""

    def __str__(self) -> str:
        return f"{ROLLBACK.name} {self.key}"


def decode(raw: msgspec.Raw | bytes) -> Seen:
    """Decode a Rollback from the API server."""
    content = _any.decode(raw)
    try:
        return Seen(content, _rollback.decode(raw))
    except msgspec.DecodeError as error:
        metadata = content.get("metadata") or {}
        name = f"{ROLLBACK.name} {metadata.get('namespace')}/{metadata.get('name')}"
        hint = "update foresail if it is older than the operator"
        raise CommandError(f"{name} cannot be decoded: {error}", hint) from error


async def read(cluster: Cluster, key: Key) -> Seen:
    """Read one Rollback."""
    return decode(await cluster.read(ROLLBACK, key, msgspec.Raw))


def read_selected(args: argparse.Namespace) -> list[Seen]:
    """Return the Rollbacks that names or a selector match, or all; print a message if there are none."""
    if args.names and (args.selector or args.all_namespaces):
        problem = f"{ROLLBACK.name} {args.names[0]}: names cannot be combined with -l or -A"
        raise UsageError(problem, "specify either names or a selection")
    rollbacks = on_namespace(args, lambda cluster: _selected(cluster, args))
    if not rollbacks:
        where = f"namespace {args.namespace}" if args.namespace else "any namespace"
        print(f"No {ROLLBACK.name}s found in {where}", file=sys.stderr)
    return rollbacks


async def _selected(cluster: Cluster, args: argparse.Namespace) -> list[Seen]:
    if args.names:
        return await all_of(read(cluster, Key(args.namespace, name)) for name in args.names)
    listed = await cluster.listed(ROLLBACK, args.namespace, args.selector or "")
    return sorted(map(decode, listed), key=lambda seen: seen.key)
