"""Which resources the API server serves, and which of them a name means, as Velero reads it."""

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase

import msgspec

from foresail.api.authorization import Discovery


class ApiResource(msgspec.Struct, frozen=True):
    """A resource that the API server serves."""

    group: str
    plural: str
    kind: str
    is_namespaced: bool = True
    aliases: tuple[str, ...] = ()  # the singular name and the short names

    @property
    def name(self) -> str:
        """Its name as Velero and people write it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


CORE = tuple(
    ApiResource("", plural, kind, is_namespaced, aliases)
    for plural, kind, is_namespaced, aliases in (
        ("bindings", "Binding", True, ("binding",)),
        ("configmaps", "ConfigMap", True, ("configmap", "cm")),
        ("endpoints", "Endpoints", True, ("ep",)),
        ("events", "Event", True, ("event", "ev")),
        ("limitranges", "LimitRange", True, ("limitrange", "limits")),
        ("persistentvolumeclaims", "PersistentVolumeClaim", True, ("persistentvolumeclaim", "pvc")),
        ("pods", "Pod", True, ("pod", "po")),
        ("podtemplates", "PodTemplate", True, ("podtemplate",)),
        ("replicationcontrollers", "ReplicationController", True, ("replicationcontroller", "rc")),
        ("resourcequotas", "ResourceQuota", True, ("resourcequota", "quota")),
        ("secrets", "Secret", True, ("secret",)),
        ("serviceaccounts", "ServiceAccount", True, ("serviceaccount", "sa")),
        ("services", "Service", True, ("service", "svc")),
        ("namespaces", "Namespace", False, ("namespace", "ns")),
        ("nodes", "Node", False, ("node", "no")),
        ("persistentvolumes", "PersistentVolume", False, ("persistentvolume", "pv")),
    )
)
"""The core group, which is the same in every cluster; discovery returns only the other groups."""

BUILT_IN = tuple(
    ApiResource(group, plural, kind, aliases=(kind.lower(), *short_names))
    for group, plural, kind, *short_names in (
        ("apps", "controllerrevisions", "ControllerRevision"),
        ("apps", "daemonsets", "DaemonSet", "ds"),
        ("apps", "deployments", "Deployment", "deploy"),
        ("apps", "replicasets", "ReplicaSet", "rs"),
        ("apps", "statefulsets", "StatefulSet", "sts"),
        ("autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa"),
        ("batch", "cronjobs", "CronJob", "cj"),
        ("batch", "jobs", "Job"),
        ("discovery.k8s.io", "endpointslices", "EndpointSlice"),
        ("networking.k8s.io", "ingresses", "Ingress", "ing"),
        ("networking.k8s.io", "networkpolicies", "NetworkPolicy", "netpol"),
        ("policy", "poddisruptionbudgets", "PodDisruptionBudget", "pdb"),
        ("rbac.authorization.k8s.io", "rolebindings", "RoleBinding"),
        ("rbac.authorization.k8s.io", "roles", "Role"),
    )
)
"""Other kinds of a usual namespace, which are the same in every cluster too: a backup of them needs no discovery."""

_CORE_NAMES = frozenset(name for kind in CORE for name in (kind.plural, kind.kind.lower(), *kind.aliases))


def api_resources(discovery: Discovery) -> tuple[ApiResource, ...]:
    """Return the resources of all groups, each once."""
    resources: dict[tuple[str, str, str], ApiResource] = {}
    for group in discovery.items or ():
        for version in group.versions or ():
            for resource in version.resources or ():
                name = group.metadata.name
                kind = resource.response_kind.kind if resource.response_kind is not None else ""
                names = tuple(filter(None, (resource.singular_resource, *(resource.short_names or ()))))
                row = ApiResource(name, resource.resource, kind, resource.scope == "Namespaced", names)
                resources.setdefault((name, resource.resource, kind), row)
    return tuple(resources.values())


def is_name_of(name: str, resource: ApiResource) -> bool:
    """Whether a name in a list of kinds means a resource."""
    if "*" in name:
        return fnmatchcase(resource.name, name)
    first, _, group = name.partition(".")
    is_first = first in (resource.plural, resource.kind.lower(), *resource.aliases)
    if not group and first in _CORE_NAMES:  # Velero means the core group then
        return is_first and not resource.group
    return is_first and resource.group.startswith(group)


def unserved_names(names: Iterable[str], served: Iterable[ApiResource]) -> tuple[str, ...]:
    """Return the names that mean no resource of the cluster, so that Velero leaves them out without a word."""
    by_word = _by_word(served)
    return tuple(name for name in names if "*" not in name and not _meant(name, by_word))


def cluster_scoped_names(names: Iterable[str], served: Iterable[ApiResource]) -> tuple[str, ...]:
    """Return the names that mean cluster-scoped resources alone."""
    by_word = _by_word(served)
    meant = {name: _meant(name, by_word) for name in names if "*" not in name}
    return tuple(
        name for name, those in meant.items() if those and not any(resource.is_namespaced for resource in those)
    )


def _by_word(served: Iterable[ApiResource]) -> dict[str, list[ApiResource]]:
    by_word: dict[str, list[ApiResource]] = {}
    for resource in (*CORE, *served):
        for word in (resource.plural, resource.kind.lower(), *resource.aliases):
            by_word.setdefault(word, []).append(resource)
    return by_word


def _meant(name: str, by_word: Mapping[str, list[ApiResource]]) -> list[ApiResource]:
    text = name.lower()
    return [resource for resource in by_word.get(text.partition(".")[0], ()) if is_name_of(text, resource)]


def closest(name: str, served: Collection[ApiResource]) -> str:
    """Return the resource that a misspelt name probably means; empty if none is close."""
    first, _, group = name.lower().partition(".")
    by_name = {
        word: resource.name
        for resource in (*served, *CORE)
        if resource.is_namespaced and resource.group.startswith(group)
        for word in (*resource.aliases, resource.kind.lower(), resource.plural)
    }
    matches = get_close_matches(first, by_name, n=1, cutoff=0.75)
    return by_name[matches[0]] if matches else ""


def not_served(names: Collection[str], served: Collection[ApiResource]) -> str:
    """Return in words which names mean nothing, each with what it probably means."""
    meant = ((name, closest(name, served)) for name in names)
    return ", ".join(f"{name} (did you mean {other}?)" if other else name for name, other in meant)
