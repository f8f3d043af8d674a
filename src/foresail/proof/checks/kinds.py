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
    return tuple(each for each in LEFT_OUT if not (has_data and each in WITH_DATA.values()))


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
            for resource in version.resources or ():
                if resource.response_kind is not None:
                    found[f"{name}/{version.version}/{resource.response_kind.kind}"] = f"{resource.resource}.{name}"
    return Served(found, frozenset(unknown))


def group_of(gvk: str) -> str:
    """Return the group of `apps/v1/Deployment`; empty for `v1/Pod`."""
    return gvk.rpartition("/")[0].rpartition("/")[0]


def kind_of(gvk: str) -> tuple[str, str]:
    """Return group and kind of `apps/v1/Deployment`."""
    return group_of(gvk), gvk.rpartition("/")[2]
