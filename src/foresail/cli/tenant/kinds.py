"""Whether the cluster serves the kinds that a new request names: Velero leaves out the others without a word."""

from collections.abc import Collection, Iterable
from typing import Any

from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.output.messages import hint
from foresail.selfservice.access.discovery import (
    ApiResource,
    api_resources,
    cluster_scoped_names,
    not_served,
    unserved_names,
)
from foresail.selfservice.families import Family
from foresail.selfservice.specs.kinds import COME_ALONG

_INCLUDED = ("includedResources", "includedNamespaceScopedResources")
_EXCLUDED = ("excludedResources", "excludedNamespaceScopedResources", "excludedClusterScopedResources")


async def check_kinds(cluster: Cluster, family: Family, body: dict[str, Any]) -> None:
    """Refuse a request all of whose kinds are unknown to the cluster; name those of others on standard error."""
    spec: dict[str, Any] = body["spec"][f"{family.word}Spec"]
    if not any(spec.get(field) for field in (*_INCLUDED, *_EXCLUDED)):
        return
    discovery = await cluster.discovered()
    if discovery is not None:
        judge(family, spec, api_resources(discovery))


def judge(family: Family, spec: dict[str, Any], served: Collection[ApiResource]) -> None:
    """Raise or print what is wrong with the names of kinds in a spec."""
    included = _names(spec, _INCLUDED)
    unknown = unserved_names(included, served)
    clusters = cluster_scoped_names(included, served)
    if unknown and len(unknown) == len(included):
        text = f"the cluster serves none of the kinds to include: {not_served(unknown, served)}"
        raise CommandError(text, "list the kinds that it serves with kubectl api-resources --namespaced")
    if clusters and len(unknown) + len(clusters) == len(included):  # Velero would include every kind instead
        text = f"--include-resources has only cluster-scoped kinds: {', '.join(clusters)}"
        raise CommandError(text, "include namespaced kinds; volumes are included with persistentvolumeclaims")
    excluded = unserved_names(_names(spec, _EXCLUDED), served)
    left_out = [name for name in clusters if name.lower() not in COME_ALONG]
    for names, effect in ((unknown, f"not in the {family.word}"), (excluded, "excluded without effect")):
        if names:
            hint(f"{effect} (not served by the cluster): {not_served(names, served)}")
    if left_out:
        hint(f"not in the {family.word} (cluster-scoped): {', '.join(left_out)}")


def _names(spec: dict[str, Any], fields: Iterable[str]) -> list[str]:
    return [name for field in fields for name in spec.get(field) or ()]
