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
    if not any(each.included_resources or each.included_namespace_scoped_resources for each in specs):
        return None
    found = await cluster.discovered()
    if found is None or found.kind != _AGGREGATED:
        hint("the API server lists no kinds: not judged is whether a template includes cluster-scoped kinds only")
        unknown.append("whether a template includes cluster-scoped kinds only: the API server lists no kinds")
        return None
    kinds = {
        (group.metadata.name, each.resource): _kind(group.metadata.name, each)
        for group in found.items or ()
        for version in reversed(group.versions or ())  # the first version is the preferred one
        for each in version.resources or ()
        if BACKED_UP_VERBS.issubset(each.verbs or ())
    }
    return Discovery((*_CORE, *kinds.values()))


def _kind(group: str, each: DiscoveredResource) -> ResourceKind:
    kind = each.response_kind.kind if each.response_kind is not None else ""
    return ResourceKind(
        group,
        each.resource,
        kind,
        each.scope == "Namespaced",
        each.singular_resource or kind.lower(),
        each.short_names or (),
    )


_CORE = tuple(
    ResourceKind("", each.plural, each.kind, each.is_namespaced, each.kind.lower(), each.aliases)
    for each in CORE
    if each.plural != "bindings"  # Velero cannot list them
)
