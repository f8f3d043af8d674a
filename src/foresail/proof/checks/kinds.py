"""Which kinds a check restores into the sandbox, and which it leaves out."""

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

COMPLETED_ARE_SKIPPED = ("batch", "Job")
"""Velero does not restore Jobs that have completed, and the list of a backup does not say which have."""


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
    found: dict[str, str] = {}
    unknown: set[str] = set()
    for group in discovery.items or ():
        name = group.metadata.name
        for version in group.versions or ():
            if version.freshness == "Stale":
                unknown.add(name)
            for each in version.resources or ():
                if each.response_kind is not None:
                    found[f"{name}/{version.version}/{each.response_kind.kind}"] = f"{each.resource}.{name}"
    return Served(found, frozenset(unknown))


def group_of(gvk: str) -> str:
    """Return the group of `apps/v1/Deployment`; empty for `v1/Pod`."""
    return gvk.rpartition("/")[0].rpartition("/")[0]


def kind_of(gvk: str) -> tuple[str, str]:
    """Return group and kind of `apps/v1/Deployment`."""
    return group_of(gvk), gvk.rpartition("/")[2]
