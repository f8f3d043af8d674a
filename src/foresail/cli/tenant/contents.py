"""`foresail backup contents`: what is in a backup, and how that differs from what is in the namespace now."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from foresail.api.authorization import Discovery
from foresail.api.velero_files import MOST_BYTES
from foresail.cli.access.cluster import Cluster
from foresail.cli.access.together import in_thread
from foresail.cli.errors import CommandError
from foresail.cli.output.messages import hint, interruptible
from foresail.cli.output.objects import document
from foresail.cli.output.table import table
from foresail.cli.tenant.files import Access, File, access_of, check_has_files, read_file
from foresail.cli.tenant.held import Change, HeldKind, LiveObject, changes, held_kinds, is_compared
from foresail.cli.tenant.live import list_objects, listable
from foresail.cli.tenant.selection import in_namespace, read_request
from foresail.plan import Key
from foresail.selfservice.access.discovery import ApiResource
from foresail.selfservice.families import BACKUPS, Family

_NAMED = 3
_spec = msgspec.json.Decoder(dict[str, Any])


class Difference(msgspec.Struct, frozen=True):
    """What is gone or new since the backup, and the kinds that could not be compared, each with the cause."""

    changes: tuple[Change, ...]
    not_compared: Mapping[str, str]


def contents(args: argparse.Namespace) -> int:
    """Print what is in a backup, or how it differs from the namespace."""
    access = access_of(args)
    return interruptible(lambda: in_namespace(args, lambda cluster, _: _contents(cluster, BACKUPS, args, access)))


async def _contents(cluster: Cluster, family: Family, args: argparse.Namespace, access: Access) -> int:
    about = Key(args.namespace, args.name)
    backup = await read_request(cluster, family, about)  # if it does not exist, that is the error
    check_has_files(backup, "list of contents")
    held = await read_contents(cluster, about, access)
    difference = None
    if args.diff:
        difference = await compare(cluster, about.namespace, held, _spec.decode(backup.made.spec))
    if args.output != "table":
        print(document(as_data(about, held, difference), args.output))
    elif difference is not None:
        print(diff_text(held, difference))
        told = not_compared_text(difference.not_compared)
        if told:
            hint(told)
    else:
        print(names_table(held) if args.names else counts_table(held))
    return 0


async def read_contents(cluster: Cluster, about: Key, access: Access, most: int = MOST_BYTES) -> list[HeldKind]:
    """Return what is in a backup, by Velero's list."""
    file = File(BACKUPS, about, "BackupResourceList", "list of contents")
    found = await read_file(cluster, file, access, most)
    held = await in_thread(lambda: held_kinds(about.namespace, found))
    if held is None:
        problem = f"the list of contents of {BACKUPS.kind.name} {about} is not in Velero's format"
        raise CommandError(problem, "create a new backup, or ask a cluster administrator")
    return held


async def compare(cluster: Cluster, namespace: str, held: Sequence[HeldKind], spec: Mapping[str, Any]) -> Difference:
    """Compare a backup with the live namespace, by the caller's own rights."""
    discovery = await kinds_served(cluster)
    live, not_compared = await live_objects(cluster, namespace, discovery, held, spec)
    return Difference(tuple(changes(held, live, spec)), not_compared)


async def kinds_served(cluster: Cluster) -> Discovery:
    """Return which kinds the API server serves."""
    discovery = await cluster.discovered()
    if discovery is None:
        raise CommandError("the API server does not answer which kinds it serves", "try again")
    return discovery


async def live_objects(
    cluster: Cluster,
    namespace: str,
    discovery: Discovery,
    held: Sequence[HeldKind],
    spec: Mapping[str, Any],
    since: datetime | None = None,
) -> tuple[dict[ApiResource, tuple[LiveObject, ...]], dict[str, str]]:
    """Return what the namespace has of the kinds of such a backup, and the kinds that are not compared, with causes."""
    served = listable(discovery)
    wanted = [(resource, kind) for resource, kind in served.items() if is_compared(resource, held, spec)]
    live, refused = await list_objects(cluster, namespace, wanted, since)
    known = {(api_resource.group, api_resource.kind) for api_resource in served}
    unserved = [
        held_kind.title
        for held_kind in held
        if held_kind.is_namespaced and (held_kind.group, held_kind.kind) not in known
    ]
    missing = dict.fromkeys(unserved, "the cluster does not serve it")
    return live, {**refused, **missing}


def counts_table(held: Iterable[HeldKind]) -> str:
    """Return a row for each kind with how many objects of it there are."""
    rows = [(kind.title, kind.api_version, str(len(kind.names))) for kind in held]
    return table(("KIND", "API VERSION", "COUNT"), rows) if rows else "No objects in the backup."


def names_table(held: Iterable[HeldKind]) -> str:
    """Return a row for each object."""
    rows = [(kind.title, name) for kind in held for name in kind.names]
    return table(("KIND", "NAME"), rows) if rows else "No objects in the backup."


def diff_text(held: Sequence[HeldKind], difference: Difference) -> str:
    """Return a row for each object that is gone or new."""
    if difference.changes:
        return table(
            ("CHANGE", "KIND", "NAME"), [(change.change, change.kind, change.name) for change in difference.changes]
        )
    count = sum(len(kind.names) for kind in held if kind.is_namespaced)
    return f"No differences: the namespace has the {count} objects of the backup, and no other."


def not_compared_text(causes: Mapping[str, str]) -> str:
    """Return in one line which kinds were not compared; the cause of one, for several where the causes are."""
    if len(causes) <= 1:
        return "".join(f"not compared: {kind}: {cause}" for kind, cause in causes.items())
    more = f" and {len(causes) - _NAMED} more" if len(causes) > _NAMED else ""
    names = ", ".join(list(causes)[:_NAMED])
    return f"{len(causes)} kinds were not compared: {names}{more}; -o json has the causes"


def as_data(about: Key, held: Iterable[HeldKind], difference: Difference | None) -> dict[str, Any]:
    """Return the same for programs, with all names."""
    kinds = [
        {
            "apiVersion": held_kind.api_version,
            "kind": held_kind.kind,
            "namespaced": held_kind.is_namespaced,
            "count": len(held_kind.names),
            "names": list(held_kind.names),
        }
        for held_kind in held
    ]
    data: dict[str, Any] = {"namespace": about.namespace, "name": about.name, "kinds": kinds}
    if difference is not None:
        rows = [{"change": change.change, "kind": change.kind, "name": change.name} for change in difference.changes]
        causes = [{"kind": kind, "cause": cause} for kind, cause in difference.not_compared.items()]
        data["diff"] = {"changes": rows, "notCompared": causes}
    return data
