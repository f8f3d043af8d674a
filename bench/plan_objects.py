"""The objects of random worlds, their kinds and their names."""

from collections.abc import Callable
from random import Random
from typing import Any

Document = dict[str, Any]

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


def pod(rng: Random, namespace: str, name: str) -> Document:
    """Return a pod."""
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


BUILDERS: tuple[Callable[[Random, str, str], Document], ...] = (
    _config,
    _guarded,
    _secret,
    _account,
    _service,
    _claim,
    pod,
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
"""What makes the objects of a world, in order; their names begin with its own."""
