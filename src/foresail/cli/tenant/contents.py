"""`foresail backup contents`: what is in a backup, and how that differs from what is in the namespace now."""

import argparse
import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from foresail.api.authorization import Discovery
from foresail.api.metadata import Metadata, Named
from foresail.api.velero_files import MOST_BYTES
from foresail.cli.access.cluster import Cluster
from foresail.cli.access.together import in_thread
from foresail.cli.errors import CommandError
from foresail.cli.output.messages import hint, interruptible
from foresail.cli.output.objects import document
from foresail.cli.output.table import table
from foresail.cli.tenant.field_changes import fields_of
from foresail.cli.tenant.files import Access, File, access_of, check_has_files, read_file
from foresail.cli.tenant.held import Change, HeldKind, LiveObject, changes, held_kinds, is_compared
from foresail.cli.tenant.selection import in_namespace, read_request
from foresail.kube.failures import Cause, Failure
from foresail.kube.pages import ListMetadata, read_pages
from foresail.plan import Key, Kind
from foresail.reporting import some
from foresail.selfservice.access.discovery import CORE, ApiResource, api_resources
from foresail.selfservice.families import BACKUPS, Family

_AT_ONCE = 8


class _Page(msgspec.Struct, frozen=True):
    metadata: ListMetadata = ListMetadata()
    items: tuple[Named, ...] | None = None


class _Write(msgspec.Struct, frozen=True, rename="camel"):
    time: datetime | None = None
    subresource: str = ""
    fields: dict[str, Any] | None = msgspec.field(default=None, name="fieldsV1")


class _WrittenMetadata(Metadata, frozen=True, rename="camel"):
    managed_fields: tuple[_Write, ...] = ()


class _Written(msgspec.Struct, frozen=True):
    metadata: _WrittenMetadata


class _WrittenPage(msgspec.Struct, frozen=True):
    metadata: ListMetadata = ListMetadata()
    items: tuple[_Written, ...] | None = None


def listable(discovery: Discovery) -> dict[ApiResource, Kind]:
    """Return the namespaced resources that can be listed, each with its address in the first version that has it."""
    kinds = {
        api_resource: Kind("", "v1", api_resource.plural, api_resource.kind)
        for api_resource in CORE
        if api_resource.is_namespaced and api_resource.plural != "bindings"
    }
    addresses = _addresses(discovery)
    for resource in api_resources(discovery):
        address = addresses.get((resource.group, resource.plural))
        if resource.is_namespaced and address is not None:
            kinds[resource] = address
    return kinds


def _addresses(discovery: Discovery) -> dict[tuple[str, str], Kind]:
    """Return where each resource can be listed, by its group and plural: in the first version that has it."""
    addresses: dict[tuple[str, str], Kind] = {}
    for group in discovery.items or ():
        for version in group.versions or ():
            for resource in version.resources or ():
                if "list" in (resource.verbs or ()) and resource.response_kind is not None:
                    kind = Kind(group.metadata.name, version.version, resource.resource, resource.response_kind.kind)
                    addresses.setdefault((kind.group, kind.plural), kind)
    return addresses


async def list_objects(
    cluster: Cluster, namespace: str, kinds: Iterable[tuple[ApiResource, Kind]], since: datetime | None = None
) -> tuple[dict[ApiResource, tuple[LiveObject, ...]], dict[str, str]]:
    """Return the objects of each kind, and by name the kinds that could not be listed, with the cause.

    With `since`, each object also has what was written to it since then.
    """
    limit = asyncio.Semaphore(_AT_ONCE)

    async def listed(kind: Kind) -> tuple[LiveObject, ...] | Failure:
        async with limit:
            return await _list(cluster, namespace, kind, since)

    asked = list(kinds)
    answers = await asyncio.gather(*(listed(kind) for _, kind in asked))
    live: dict[ApiResource, tuple[LiveObject, ...]] = {}
    refused: dict[str, str] = {}
    for (resource, _), answer in zip(asked, answers, strict=True):
        if isinstance(answer, Failure):
            refused[resource.name] = _cause(answer, resource, namespace)
        else:
            live[resource] = answer
    return live, refused


async def _list(
    cluster: Cluster, namespace: str, kind: Kind, since: datetime | None
) -> tuple[LiveObject, ...] | Failure:
    live_objects: list[LiveObject] = []
    if since is not None:
        async for written in read_pages(cluster.client, kind, namespace, _WrittenPage, metadata_only=True):
            if isinstance(written, Failure):
                return written
            live_objects += [_written(item.metadata, since) for item in written.items or ()]
        return tuple(live_objects)
    async for page in read_pages(cluster.client, kind, namespace, _Page, metadata_only=True):
        if isinstance(page, Failure):
            return page
        live_objects += [LiveObject(item.metadata.name, item.metadata.labels or {}) for item in page.items or ()]
    return tuple(live_objects)


def _written(metadata: _WrittenMetadata, since: datetime) -> LiveObject:
    """Return an object with the fields of those who may have written it since; a status changes nothing else.

    The API server notes no time for the subresource `scale`, so such a write may be newer than the backup.
    """
    writes = [
        write
        for write in metadata.managed_fields
        if (write.time is None or write.time >= since) and write.subresource != "status"
    ]
    fields = dict.fromkeys(field for write in writes for field in fields_of(write.fields or {}))
    is_recreated = metadata.creation_timestamp is not None and metadata.creation_timestamp >= since
    return LiveObject(metadata.name, metadata.labels or {}, is_recreated, bool(writes), tuple(sorted(fields)))


def _cause(failure: Failure, resource: ApiResource, namespace: str) -> str:
    if failure.cause is Cause.FORBIDDEN:
        return f"you may not list {resource.name} in namespace {namespace}"
    return failure.message


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
    content = await read_file(cluster, file, access, most)
    held = await in_thread(lambda: held_kinds(about.namespace, content))
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
    return f"{len(causes)} kinds were not compared: {some(causes, _NAMED)}; -o json has the causes"


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
