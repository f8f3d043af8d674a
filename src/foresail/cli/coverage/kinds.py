"""Reads which kinds the cluster serves, if a spec names kinds."""

from collections.abc import Iterable

from foresail.api.authorization import DiscoveredResource
from foresail.api.specs import BackupSpec
from foresail.cli.access.cluster import Cluster
from foresail.cli.output.messages import hint
from foresail.scope.discovery import BACKED_UP_VERBS, Discovery, ResourceKind
from foresail.selfservice.access.discovery import CORE

_AGGREGATED = "APIGroupDiscoveryList"


async def read_kinds(cluster: Cluster, specs: Iterable[BackupSpec], unknown: list[str]) -> Discovery | None:
    """Return the kinds that Velero can back up; None if no spec includes kinds by name, or discovery fails."""
    if not any(spec.included_resources or spec.included_namespace_scoped_resources for spec in specs):
        return None
    discovery = await cluster.discovered()
    if discovery is None or discovery.kind != _AGGREGATED:
        hint("the API server lists no kinds: not judged is whether a template includes cluster-scoped kinds only")
        unknown.append("whether a template includes cluster-scoped kinds only: the API server lists no kinds")
        return None
    kinds = {
        (group.metadata.name, resource.resource): _kind(group.metadata.name, resource)
        for group in discovery.items or ()
        for version in reversed(group.versions or ())  # the first version is the preferred one
        for resource in version.resources or ()
        if BACKED_UP_VERBS.issubset(resource.verbs or ())
    }
    return Discovery((*_CORE, *kinds.values()))


def _kind(group: str, resource: DiscoveredResource) -> ResourceKind:
    kind = resource.response_kind.kind if resource.response_kind is not None else ""
    return ResourceKind(
        group,
        resource.resource,
        kind,
        resource.scope == "Namespaced",
        resource.singular_resource or kind.lower(),
        resource.short_names or (),
    )


_CORE = tuple(
    ResourceKind("", each.plural, each.kind, each.is_namespaced, each.kind.lower(), each.aliases)
    for each in CORE
    if each.plural != "bindings"  # Velero cannot list them
)
