"""Objects of an installation, one after the other: applied or deleted, and a line about each."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from foresail.api.core import DEFINITION
from foresail.api.differences import differences
from foresail.cli.access.cluster import Cluster
from foresail.cli.access.managed_by import ManagedMetadata, is_ours, managing_tool
from foresail.cli.access.operators import BY_SERVER_TIME, Lease, leader
from foresail.cli.errors import CommandError
from foresail.cli.install.manifests import Piece
from foresail.kube.clock import now
from foresail.kube.lease import LEASE
from foresail.plan import Key
from foresail.reporting import some

STOPPED = "Stopped. Completed steps stay, unless undone above; run the same command to continue."
"""The message if the user stops the command while it waits."""

_PAUSE = 0.5
_REPORT_EVERY = timedelta(seconds=30)


class Patience:
    """How long one command may wait, all in all."""

    def __init__(self, until: datetime) -> None:
        self._until = until
        self._whole = until - now()

    def at_least(self, least: timedelta) -> "Patience":
        """Return one that has this much left from now on, or as much as this one had at first if that is less."""
        return Patience(max(self._until, now() + min(least, self._whole)))

    async def wait(self, what: str, holds: Callable[[], Awaitable[bool]], otherwise: CommandError) -> None:
        """Return when it holds; raise the error if the time is over before."""
        reported: datetime | None = None
        while not await holds():
            instant = now()
            if instant >= self._until:
                raise otherwise
            if reported is None or instant - reported >= _REPORT_EVERY:
                left = int((self._until - instant).total_seconds())
                print(f"waiting until {what}; {left} s left", file=sys.stderr, flush=True)
                reported = instant
            await asyncio.sleep(_PAUSE)


_SHOWN_FIELDS = 3
_BOOKKEEPING = ("managedFields", "resourceVersion", "generation")  # in a dry run they tell nothing


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, frozen=True):
    conditions: tuple[_Condition, ...] | None = None  # null in a definition that was made this moment


class _Kept(msgspec.Struct, frozen=True):
    metadata: ManagedMetadata


class _Definition(msgspec.Struct, frozen=True):
    status: _Status = _Status()


def report(what: str, thing: object, why: str = "", *, dry_run: bool = False) -> None:
    """Report what was done with an object, or what would be."""
    print(f"{what.ljust(11)} {thing}{f': {why}' if why else ''}{' (dry run)' if dry_run else ''}", flush=True)


async def all_free(cluster: Cluster, pieces: Iterable[Piece]) -> None:
    """Check before any write that no other tool has created one of these."""
    wanted = list(pieces)
    raws = await asyncio.gather(*(cluster.if_there(piece.kind, piece.key, msgspec.Raw) for piece in wanted))
    for piece, raw in zip(wanted, raws, strict=True):
        if raw is not None and not is_ours(metadata := _metadata(raw)):
            raise _taken(piece, metadata)


async def applied(cluster: Cluster, piece: Piece, *, dry_run: bool) -> None:
    """Have an object as the manifest says; what another tool has made is left alone, or is an error."""
    before = await cluster.if_there(piece.kind, piece.key, msgspec.Raw)
    if before is not None and not is_ours(metadata := _metadata(before)):
        if piece.kind is not DEFINITION:
            raise _taken(piece, metadata)
        report("left alone", piece, f"created by {_maker(metadata)}; `foresail doctor` checks its fields")
        return
    after = await cluster.apply(piece.kind, piece.key, piece.body, dry_run=dry_run)
    if before is None:
        report("created", piece, dry_run=dry_run)
    else:
        fields = changed_fields(before, after)
        report("changed" if fields else "unchanged", piece, fields, dry_run=dry_run and bool(fields))


async def deleted(cluster: Cluster, pieces: Iterable[Piece], *, dry_run: bool, any_owner: bool = False) -> list[Piece]:
    """Delete what is there of these and was made by `foresail install`, or by whomever; return what is left."""
    left = []
    for piece in pieces:
        raw = await cluster.if_there(piece.kind, piece.key, msgspec.Raw)
        if raw is None:
            continue
        metadata = _metadata(raw)
        if not (any_owner or is_ours(metadata)):
            report("left alone", piece, f"created by {_maker(metadata)}")
            left.append(piece)
            continue
        await cluster.delete(piece.kind, piece.key, metadata.uid, dry_run=dry_run)
        report("deleted", piece, dry_run=dry_run)
    return left


async def existing(cluster: Cluster, pieces: Iterable[Piece]) -> list[Piece]:
    """Return those of these objects that the cluster has."""
    return [piece for piece in pieces if await cluster.if_there(piece.kind, piece.key, msgspec.Raw) is not None]


async def other_maker(cluster: Cluster, piece: Piece) -> str:
    """Return which other tool has created an object; empty if none has."""
    raw = await cluster.if_there(piece.kind, piece.key, msgspec.Raw)
    return "" if raw is None or is_ours(metadata := _metadata(raw)) else _maker(metadata)


async def is_established(cluster: Cluster, piece: Piece) -> bool:
    """Return whether the API server serves the kind that a definition defines."""
    definition = await cluster.if_there(piece.kind, piece.key, _Definition)
    return definition is not None and _Condition("Established", "True") in (definition.status.conditions or ())


async def leading(cluster: Cluster, key: Key) -> str:
    """Return which replica holds a Lease of the operator; empty if none does."""
    lease = await cluster.if_there(LEASE, key, Lease)
    return leader(lease, await cluster.server_time(), BY_SERVER_TIME)


def _metadata(raw: msgspec.Raw) -> ManagedMetadata:
    return msgspec.json.decode(raw, type=_Kept).metadata


def changed_fields(before: msgspec.Raw, after: msgspec.Raw) -> str:
    """Return the first fields in which two versions of an object differ; empty if they say the same."""
    paths = [path for path, _, _ in differences(_content(before), _content(after))]
    return some(paths, _SHOWN_FIELDS)


def _content(raw: msgspec.Raw) -> dict[str, Any]:
    """Return what a manifest can say of an object: no bookkeeping, and no status, which a controller may write now."""
    document: dict[str, Any] = msgspec.json.decode(raw)
    document.pop("status", None)
    return {
        **document,
        "metadata": {key: field for key, field in document["metadata"].items() if key not in _BOOKKEEPING},
    }


def _maker(metadata: ManagedMetadata) -> str:
    by = managing_tool(metadata)
    if by is not None:
        return str(by)
    writers = sorted({field.manager for field in metadata.managed_fields} - {""})
    return writers[0] if writers else "another tool"


def _taken(piece: Piece, metadata: ManagedMetadata) -> CommandError:
    is_managed = managing_tool(metadata) is not None
    way_out = (
        "continue with that tool; it would undo these changes" if is_managed else "delete it first if it is not needed"
    )
    return CommandError(f"{piece} already exists and was created by {_maker(metadata)}", way_out)
