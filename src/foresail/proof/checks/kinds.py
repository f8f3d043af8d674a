"""Which kinds of a backup a check restores, leaves out, or fails because of: this cluster does not serve them."""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec

from foresail.api.authorization import Discovery

RESTORED = {
    ("", "ConfigMap"): "configmaps",
    ("", "LimitRange"): "limitranges",
    ("", "PodTemplate"): "podtemplates",
    ("", "ReplicationController"): "replicationcontrollers",
    ("", "ResourceQuota"): "resourcequotas",
    ("", "Secret"): "secrets",
    ("", "Service"): "services",
    ("", "ServiceAccount"): "serviceaccounts",
    ("apps", "ControllerRevision"): "controllerrevisions.apps",
    ("apps", "DaemonSet"): "daemonsets.apps",
    ("apps", "Deployment"): "deployments.apps",
    ("apps", "ReplicaSet"): "replicasets.apps",
    ("apps", "StatefulSet"): "statefulsets.apps",
    ("autoscaling", "HorizontalPodAutoscaler"): "horizontalpodautoscalers.autoscaling",
    ("batch", "CronJob"): "cronjobs.batch",
    ("batch", "Job"): "jobs.batch",
    ("policy", "PodDisruptionBudget"): "poddisruptionbudgets.policy",
    ("rbac.authorization.k8s.io", "Role"): "roles.rbac.authorization.k8s.io",
    ("rbac.authorization.k8s.io", "RoleBinding"): "rolebindings.rbac.authorization.k8s.io",
}
"""The built-in kinds of a namespace that start nothing in a fenced sandbox."""

LEFT_OUT = (
    "pods",
    "persistentvolumeclaims",
    "endpoints",
    "events",
    "events.events.k8s.io",
    "endpointslices.discovery.k8s.io",
    "ingresses.networking.k8s.io",
    "networkpolicies.networking.k8s.io",
)
"""Built-in kinds that would start something, reach out or open the fence, or that controllers derive."""

NETWORK_GROUPS = (
    "cilium.io",
    "crd.antrea.io",
    "crd.projectcalico.org",
    "policy.networking.k8s.io",
    "projectcalico.org",
)
"""Policies of network plugins, which may open the fence after the canary: depth Data restores none of them."""

POD = ("", "Pod")
CLAIM = ("", "PersistentVolumeClaim")
WITH_DATA = {POD: "pods", CLAIM: "persistentvolumeclaims"}
"""What depth Data restores too."""

COMPLETED_ARE_SKIPPED = (("batch", "Job"), POD)
"""Velero does not restore Jobs and pods that have completed, and the list of a backup does not say which have."""


def restored(*, has_data: bool) -> dict[tuple[str, str], str]:
    """Return the built-in kinds that a check restores, with their resources."""
    return {**RESTORED, **WITH_DATA} if has_data else RESTORED


def left_out(*, has_data: bool) -> tuple[str, ...]:
    """Return the built-in kinds that a check leaves out."""
    return tuple(kind for kind in LEFT_OUT if not (has_data and kind in WITH_DATA.values()))


class Served(msgspec.Struct, frozen=True):
    """The kinds that the API server serves outside the core group: `apps/v1/Deployment` with their resource."""

    resources: dict[str, str]
    unknown_groups: frozenset[str] = frozenset()
    """Groups whose API server did not answer discovery."""

    def has(self, gvk: str) -> bool:
        """Whether a kind is served in that version; one of a group that cannot be discovered counts as served."""
        group = group_of(gvk)
        return not group or gvk in self.resources or group in self.unknown_groups


def served_kinds(discovery: Discovery) -> Served:
    """Return what discovery lists."""
    names: dict[str, str] = {}
    unknown: set[str] = set()
    for group in discovery.items or ():
        name = group.metadata.name
        for version in group.versions or ():
            if version.freshness == "Stale":
                unknown.add(name)
            for resource in version.resources or ():
                if resource.response_kind is not None:
                    names[f"{name}/{version.version}/{resource.response_kind.kind}"] = f"{resource.resource}.{name}"
    return Served(names, frozenset(unknown))


def group_of(gvk: str) -> str:
    """Return the group of `apps/v1/Deployment`; empty for `v1/Pod`."""
    return gvk.rpartition("/")[0].rpartition("/")[0]


def kind_of(gvk: str) -> tuple[str, str]:
    """Return group and kind of `apps/v1/Deployment`."""
    return group_of(gvk), gvk.rpartition("/")[2]


_DEFINITIONS = "apiextensions.k8s.io/v1/CustomResourceDefinition"
_LONGEST_ENDING = 3
"""Letters after the stem of a plural, such as `ies`: more would take `certificaterequests` for Certificate."""


class Wanted(msgspec.Struct, frozen=True):
    """What a check is to look at: all namespaces if none are named, and these custom resources."""

    namespaces: tuple[str, ...] = ()
    custom: tuple[str, ...] = ()
    has_data: bool = False


class Kinds:
    """What a check does with the kinds of a backup, by what this cluster serves."""

    def __init__(self, lists: Mapping[str, Sequence[str]], wanted: Wanted, served: Served) -> None:
        self._wanted = wanted
        self._served = served
        self._restored = restored(has_data=wanted.has_data)
        self._left_out = left_out(has_data=wanted.has_data)
        self._resources = {kind_of(gvk): resource for gvk, resource in served.resources.items()}
        stems = {_stem(gvk) for gvk in lists if gvk not in served.resources}
        self._guessed = _by_stem(stems, set(wanted.custom).difference(served.resources.values()))
        self._defined = _by_stem(stems, lists.get(_DEFINITIONS, ()))

    def listed(self, gvk: str) -> set[str]:
        """Return the custom resources of the check that a kind is, or may be if it is not served."""
        if self._wanted.has_data and group_of(gvk) in NETWORK_GROUPS:
            return set()
        resource = self._resource(gvk)
        return {resource}.intersection(self._wanted.custom) if resource else self._guessed.get(_stem(gvk), set())

    def is_unserved(self, gvk: str) -> bool:
        """Whether objects of a kind cannot be restored, because this cluster does not serve it."""
        return not self._served.has(gvk) and (bool(self.listed(gvk)) or _stem(gvk) not in self._defined)

    def is_restored(self, gvk: str) -> bool:
        """Whether the sandbox takes objects of a kind."""
        is_chosen = kind_of(gvk) in self._restored or bool(self.listed(gvk))
        return is_chosen and self._resource(gvk) not in self._left_out

    def _resource(self, gvk: str) -> str:
        kind = kind_of(gvk)
        return self._restored.get(kind) or self._served.resources.get(gvk) or self._resources.get(kind, "")


def included_resources(custom: Sequence[str], *, has_data: bool) -> list[str]:
    """Return what the restore includes: nothing beyond this list reaches the sandbox."""
    excluded = left_out(has_data=has_data)
    return sorted({*restored(has_data=has_data).values(), *(kind for kind in custom if kind not in excluded)})


def _by_stem(stems: Container[tuple[str, str]], names: Iterable[str]) -> dict[tuple[str, str], set[str]]:
    """Return names, given as plural.group, by those of the stems that they may have."""
    by_stem: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for name in names:
        plural, _, group = name.partition(".")
        plural = plural.replace("-", "")
        for ending in range(min(_LONGEST_ENDING, len(plural)) + 1):
            stem = (group, plural[: len(plural) - ending])
            if stem in stems:
                by_stem[stem].add(name)
    return by_stem


def _stem(gvk: str) -> tuple[str, str]:
    """Return the group and the stem of a kind whose plural the cluster does not report: `polic` of Policy."""
    group, kind = kind_of(gvk)
    return group, kind.lower()[:-1]
