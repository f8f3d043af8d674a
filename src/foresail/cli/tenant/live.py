"""What is in the namespace now, as far as the caller may list it: names and labels alone."""

import asyncio
from collections.abc import Iterable

import msgspec

from foresail.api.authorization import Discovery
from foresail.api.metadata import Named
from foresail.cli.access.cluster import Cluster
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
    cluster: Cluster, namespace: str, kinds: Iterable[tuple[ApiResource, Kind]]
) -> tuple[dict[ApiResource, tuple[LiveObject, ...]], dict[str, str]]:
    """Return the objects of each kind, and by name the kinds that could not be listed, with the cause."""
    limit = asyncio.Semaphore(_AT_ONCE)

    async def listed(kind: Kind) -> tuple[LiveObject, ...] | Failure:
        async with limit:
            return await _list(cluster, namespace, kind)

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


async def _list(cluster: Cluster, namespace: str, kind: Kind) -> tuple[LiveObject, ...] | Failure:
    live_objects: list[LiveObject] = []
    async for page in read_pages(cluster.client, kind, namespace, _Page, metadata_only=True):
        if isinstance(page, Failure):
            return page
        live_objects += [LiveObject(item.metadata.name, item.metadata.labels or {}) for item in page.items or ()]
    return tuple(live_objects)


def _cause(failure: Failure, resource: ApiResource, namespace: str) -> str:
    if failure.cause is Cause.FORBIDDEN:
        return f"you may not list {resource.name} in namespace {namespace}"
    return failure.message
