"""Random worlds for the restore plan: what is backed up, what happens afterwards, and how it is restored."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

Document = dict[str, Any]

_CHANGEABLE = ("ConfigMap", "Secret", "Deployment", "Service", "NetworkPolicy", "Endpoints", "Widget")

GUARDED = "refused-by-policy"
"""A ConfigMap whose name begins so is refused by the admission policy."""

RESOURCES = {
    "ConfigMap": "configmaps",
    "ControllerRevision": "controllerrevisions.apps",
    "CronJob": "cronjobs.batch",
    "CustomResourceDefinition": "customresourcedefinitions.apiextensions.k8s.io",
    "Deployment": "deployments.apps",
    "Endpoints": "endpoints",
    "EndpointSlice": "endpointslices.discovery.k8s.io",
    "HorizontalPodAutoscaler": "horizontalpodautoscalers.autoscaling",
    "Ingress": "ingresses.networking.k8s.io",
    "Job": "jobs.batch",
    "LimitRange": "limitranges",
    "Namespace": "namespaces",
    "NetworkPolicy": "networkpolicies.networking.k8s.io",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Pod": "pods",
    "PodDisruptionBudget": "poddisruptionbudgets.policy",
    "PriorityClass": "priorityclasses.scheduling.k8s.io",
    "ReplicaSet": "replicasets.apps",
    "ResourceQuota": "resourcequotas",
    "Role": "roles.rbac.authorization.k8s.io",
    "RoleBinding": "rolebindings.rbac.authorization.k8s.io",
    "Secret": "secrets",
    "Service": "services",
    "ServiceAccount": "serviceaccounts",
    "StatefulSet": "statefulsets.apps",
    "Widget": "widgets.shop.example",
}
"""The resource of each kind in the worlds."""


WIDGETS: Document = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.shop.example"},
    "spec": {
        "group": "shop.example",
        "names": {"kind": "Widget", "plural": "widgets"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "string"}}}},
                    }
                },
            }
        ],
    },
}
"""The custom kind in the worlds."""


@dataclass
class RandomWorld:
    """A namespace with objects, what changes after its backup, and the restore."""

    namespace: str
    labels: dict[str, str]
    objects: list[Document]
    removed: list[Document] = field(default_factory=list)
    changed: list[Document] = field(default_factory=list)
    is_namespace_deleted: bool = False
    target: str = ""
    target_exists: bool = False
    target_labels: dict[str, str] = field(default_factory=dict)
    quota: dict[str, str] = field(default_factory=dict)
    options: list[str] = field(default_factory=list)
    """Options that the restore and its plan have in common."""
    is_settled_before: bool = False
    """Whether controllers have written every status before the backup, and not only before the restore."""
    priority_class: Document = field(default_factory=dict)
    """The PriorityClass of a pod; it is deleted after the backup."""
    modifiers: list[Document] = field(default_factory=list)
    """The rules of the restore's resource modifiers."""
    target_objects: list[Document] = field(default_factory=list)
    """What the target of a copy has already."""

    @property
    def modifier_name(self) -> str:
        """The ConfigMap in Velero's namespace with the resource modifiers."""
        return f"modifiers-{self.namespace}"


def random_world(seed: int) -> RandomWorld:
    """Return the world of a seed."""
    rng = Random(seed)  # noqa: S311 - reproducible, not secret
    namespace = f"world-{seed}"
    objects = [
        build(rng, namespace, f"{build.__name__.strip('_').replace('_', '-')}-{index}")
        for build in _BUILDERS
        for index in range(rng.randint(0, 3))
    ]
    world = RandomWorld(namespace, {"team": rng.choice(("a", "b"))}, objects)
    for each in objects:
        fate = rng.random()
        if fate < 0.35:
            world.removed.append(each)
        elif fate < 0.6 and each["kind"] in _CHANGEABLE:
            world.changed.append(_changed(rng, each))
    story = rng.choice(("same", "same", "deleted", "copy to new", "copy to old"))
    world.is_namespace_deleted = story == "deleted"
    if story.startswith("copy"):
        world.target, world.target_exists = f"{namespace}-copy", story == "copy to old"
    if rng.random() < 0.4 and (story == "same" or world.target_exists):
        kind = rng.choice(("count/configmaps", "secrets", "services", "persistentvolumeclaims"))
        world.quota = {kind: str(rng.randint(1, 3))}
    if rng.random() < 0.3:
        restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
        (world.target_labels if world.target_exists else world.labels).update(restricted)
    world.options = _options(rng)
    world.is_settled_before = rng.random() < 0.5
    _add_priority(Random(seed + 1_000_000), world)  # noqa: S311
    _add_bindings(Random(seed + 2_000_000), world)  # noqa: S311
    _add_modifiers(Random(seed + 3_000_000), world)  # noqa: S311
    return world


def _add_priority(rng: Random, world: RandomWorld) -> None:
    """Let a pod have a PriorityClass."""
    if rng.random() < 0.6:
        return
    name = f"priority-{world.namespace}"
    api = "scheduling.k8s.io/v1"
    about = {"apiVersion": api, "kind": "PriorityClass", "metadata": {"name": name}}
    policy = rng.choice(("Never", "PreemptLowerPriority"))
    world.priority_class = {**about, "value": rng.randint(1, 1000), "preemptionPolicy": policy}
    pod = _pod(rng, world.namespace, "pod-with-priority")
    pod["spec"]["priorityClassName"] = name
    world.objects.append(pod)
    if rng.random() < 0.7:
        world.removed.append(pod)


def _add_bindings(rng: Random, world: RandomWorld) -> None:
    """Let the target of a copy have some of the RoleBindings, with the subjects that the restore would write."""
    for each in world.objects if world.target_exists else ():
        if each["kind"] == "RoleBinding" and rng.random() < 0.6:
            subjects = [{**subject, "namespace": world.target} for subject in each["subjects"]]
            about = {**each["metadata"], "namespace": world.target}
            world.target_objects.append({**each, "metadata": about, "subjects": subjects})


def _add_modifiers(rng: Random, world: RandomWorld) -> None:
    """Let the restore have resource modifiers: some change items, some rename them, some fail."""
    if rng.random() < 0.7:
        return
    rules = (
        ("configmaps", {"patches": [_patch("replace", "/data/key", "changed")]}),
        ("{secrets,endpoints}", {"mergePatches": [{"patchData": "metadata: {annotations: {modified: 'yes'}}"}]}),
        ("networkpolicies.*.*.*", {"patches": [_patch("remove", "/spec/absent")]}),
        (
            "roles.**",
            {"patches": [_patch("test", "/metadata/name", "role-1"), _patch("replace", "/metadata/name", "r")]},
        ),
        ("deployments.apps", {"patches": [_patch("replace", "/spec/minReadySeconds", 7)]}),
    )
    chosen = rng.sample(rules, rng.randint(1, 3))
    world.modifiers = [{"conditions": {"groupResource": kind}, **patches} for kind, patches in chosen]
    world.options.append(f"--resource-modifier-configmap={world.modifier_name}")


def _patch(operation: str, path: str, value: object = "") -> Document:
    return {"operation": operation, "path": path, "value": value}


def _options(rng: Random) -> list[str]:
    found: list[str] = []
    policy = rng.choice(("", "none", "update"))
    if policy:
        found.append(f"--existing-resource-policy={policy}")
    filters = rng.choice(("", "", "", "include", "exclude", "labels"))
    kinds = rng.sample(("configmaps", "secrets", "svc", "deployments.apps", "pods", "sa", "pvc", "ingresses"), 4)
    if filters in ("include", "exclude"):
        found.append(f"--{filters}-resources={','.join(kinds)}")
    elif filters == "labels":
        found.append("--selector=tier in (web,db)")
    if rng.random() < 0.2:
        found.append("--preserve-nodeports=true")
    return found


def _changed(rng: Random, source: Document) -> Document:
    found = {**source, "metadata": {**source["metadata"]}}
    annotations = source["metadata"].get("annotations", {})
    found["metadata"]["annotations"] = {**annotations, "changed": str(rng.randint(1, 9))}
    if source["kind"] == "ConfigMap":
        found["data"] = {"key": "changed"}
    if source["kind"] == "Widget":
        found["spec"] = {"size": "changed"}
    if source["kind"] == "Deployment":
        found["spec"] = {**source["spec"], "minReadySeconds": 7}
    return found


def _object(rng: Random, api: str, kind: str, namespace: str, name: str, **fields: Any) -> Document:  # noqa: ANN401
    labels = {"tier": rng.choice(("web", "db", "cache"))}
    about = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": api, "kind": kind, "metadata": about, **fields}


def _config(rng: Random, namespace: str, name: str) -> Document:
    return _object(rng, "v1", "ConfigMap", namespace, name, data={"key": str(rng.random())})


def _guarded(rng: Random, namespace: str, name: str) -> Document:
    return _object(rng, "v1", "ConfigMap", namespace, f"{GUARDED}-{name}", data={"key": "1"})


def _secret(rng: Random, namespace: str, name: str) -> Document:
    return _object(rng, "v1", "Secret", namespace, name, stringData={"key": str(rng.random())})


def _account(rng: Random, namespace: str, name: str) -> Document:
    return _object(
        rng, "v1", "ServiceAccount", namespace, name, imagePullSecrets=[{"name": f"pull-{rng.randint(1, 3)}"}]
    )


def _service(rng: Random, namespace: str, name: str) -> Document:
    spec: Document = {"ports": [{"port": 80, "protocol": "TCP"}], "selector": {"app": name}}
    spec |= rng.choice(({}, {"type": "NodePort"}, {"clusterIP": "None"}, {"type": "LoadBalancer"}))
    return _object(rng, "v1", "Service", namespace, name, spec=spec)


def _claim(rng: Random, namespace: str, name: str) -> Document:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "absent",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return _object(rng, "v1", "PersistentVolumeClaim", namespace, name, spec=spec)


def _containers(rng: Random) -> list[Document]:
    return [{"name": "main", "image": f"shop/web:{rng.randint(1, 3)}", "resources": {"requests": {"cpu": "10m"}}}]


def _pod(rng: Random, namespace: str, name: str) -> Document:
    return _object(rng, "v1", "Pod", namespace, name, spec={"containers": _containers(rng)})


def _template(rng: Random, name: str) -> Document:
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": _containers(rng)}}


def _deployment(rng: Random, namespace: str, name: str) -> Document:
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": _template(rng, name)}
    return _object(rng, "apps/v1", "Deployment", namespace, name, spec=spec)


def _stateful(rng: Random, namespace: str, name: str) -> Document:
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": _template(rng, name)}
    return _object(rng, "apps/v1", "StatefulSet", namespace, name, spec={**spec, "serviceName": name})


def _job(rng: Random, namespace: str, name: str) -> Document:
    template = _template(rng, name)
    template["spec"]["restartPolicy"] = "Never"
    return _object(rng, "batch/v1", "Job", namespace, name, spec={"suspend": True, "template": template})


def _cron(rng: Random, namespace: str, name: str) -> Document:
    template = _template(rng, name)
    template["spec"]["restartPolicy"] = "Never"
    spec = {"schedule": "0 3 * * *", "suspend": True, "jobTemplate": {"spec": {"template": template}}}
    return _object(rng, "batch/v1", "CronJob", namespace, name, spec=spec)


def _role(rng: Random, namespace: str, name: str) -> Document:
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    return _object(rng, "rbac.authorization.k8s.io/v1", "Role", namespace, name, rules=rules)


def _binding(rng: Random, namespace: str, name: str) -> Document:
    subjects = [{"kind": "ServiceAccount", "name": "account-0", "namespace": namespace}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    api = "rbac.authorization.k8s.io/v1"
    return _object(rng, api, "RoleBinding", namespace, name, roleRef=role, subjects=subjects)


def _network(rng: Random, namespace: str, name: str) -> Document:
    spec = {"podSelector": {}, "policyTypes": ["Ingress"]}
    return _object(rng, "networking.k8s.io/v1", "NetworkPolicy", namespace, name, spec=spec)


def _ingress(rng: Random, namespace: str, name: str) -> Document:
    spec = {"defaultBackend": {"service": {"name": "service-0", "port": {"number": 80}}}}
    return _object(rng, "networking.k8s.io/v1", "Ingress", namespace, name, spec=spec)


def _budget(rng: Random, namespace: str, name: str) -> Document:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}
    return _object(rng, "policy/v1", "PodDisruptionBudget", namespace, name, spec=spec)


def _limits(rng: Random, namespace: str, name: str) -> Document:
    limit = {"type": "Container", "defaultRequest": {"cpu": "20m"}}
    return _object(rng, "v1", "LimitRange", namespace, name, spec={"limits": [limit]})


def _scaler(rng: Random, namespace: str, name: str) -> Document:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "deployment-0"}
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
    spec = {
        "scaleTargetRef": target,
        "maxReplicas": rng.randint(2, 5),
        "metrics": [{"type": "Resource", "resource": cpu}],
    }
    return _object(rng, "autoscaling/v2", "HorizontalPodAutoscaler", namespace, name, spec=spec)


def _endpoints(rng: Random, namespace: str, name: str) -> Document:
    subsets = [{"addresses": [{"ip": f"192.0.2.{rng.randint(1, 250)}"}], "ports": [{"port": 80, "protocol": "TCP"}]}]
    return _object(rng, "v1", "Endpoints", namespace, name, subsets=subsets)


def _token(rng: Random, namespace: str, name: str) -> Document:
    found = _object(rng, "v1", "Secret", namespace, name, type="kubernetes.io/service-account-token")
    found["metadata"]["annotations"] = {"kubernetes.io/service-account.name": "default"}
    return found


def _widget(rng: Random, namespace: str, name: str) -> Document:
    return _object(rng, "shop.example/v1", "Widget", namespace, name, spec={"size": rng.choice(("s", "m", "l"))})


_BUILDERS: tuple[Callable[[Random, str, str], Document], ...] = (
    _config,
    _guarded,
    _secret,
    _account,
    _service,
    _claim,
    _pod,
    _deployment,
    _stateful,
    _job,
    _cron,
    _role,
    _binding,
    _network,
    _ingress,
    _budget,
    _limits,
    _scaler,
    _endpoints,
    _token,
    _widget,
)
