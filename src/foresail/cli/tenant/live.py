"""What is in the namespace now, as far as the caller may list it: names and labels, and who wrote it since."""

import asyncio
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from foresail.api.authorization import Discovery
from foresail.api.metadata import Metadata, Named
from foresail.cli.access.cluster import Cluster
from foresail.cli.tenant.field_changes import fields_of
from foresail.cli.tenant.held import LiveObject
from foresail.kube.failures import Cause, Failure
from foresail.kube.pages import read_pages
from foresail.kube.reflector import ListMetadata
from foresail.plan import Kind
from foresail.selfservice.access.discovery import CORE, ApiResource, api_resources

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
    found = {
        api_resource: Kind("", "v1", api_resource.plural, api_resource.kind)
        for api_resource in CORE
        if api_resource.is_namespaced and api_resource.plural != "bindings"
    }
    addresses = _addresses(discovery)
    for resource in api_resources(discovery):
        address = addresses.get((resource.group, resource.plural))
        if resource.is_namespaced and address is not None:
            found[resource] = address
    return found


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
    """Return an object with the fields of those who wrote it since; writes of its status change nothing else."""
    writes = [
        write
        for write in metadata.managed_fields
        if write.time is not None and write.time >= since and write.subresource != "status"
    ]
    fields = dict.fromkeys(field for write in writes for field in fields_of(write.fields or {}))
    is_recreated = metadata.creation_timestamp is not None and metadata.creation_timestamp >= since
    return LiveObject(metadata.name, metadata.labels or {}, is_recreated, bool(writes), tuple(sorted(fields)))


def _cause(failure: Failure, resource: ApiResource, namespace: str) -> str:
    if failure.cause is Cause.FORBIDDEN:
        return f"you may not list {resource.name} in namespace {namespace}"
    return failure.message
