"""Random worlds for rollback plans: what is backed up, what a team changes since, and how it rolls back."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from bench.plan_objects import BUILDERS, RESOURCES, Document

Change = Callable[[Random, Document], None]

ONLY = (
    "configmaps",
    "deployments",
    "services",
    "secrets",
    "widgets",
    "serviceaccounts",
    "statefulsets",
    "ingresses",
    "networkpolicies",
    "cronjobs",
    "hpa",
)
"""What --only may have in a world."""

_FIXED = frozenset({"Pod", "Job", "PersistentVolumeClaim", "Endpoints"})
"""Kinds that no Rollback touches, whose objects are only deleted, or get a label."""


@dataclass
class RollbackWorld:
    """A namespace with objects, what happens to them after the backup, and the options of the Rollback."""

    namespace: str
    objects: list[Document]
    removed: list[Document] = field(default_factory=list)
    changed: list[Document] = field(default_factory=list)
    replaced: list[Document] = field(default_factory=list)
    """Deleted and created again, with other values in fields that never change."""
    added: list[Document] = field(default_factory=list)
    owners: dict[str, str] = field(default_factory=dict)
    """The ConfigMap that owns an object, by the names of both."""
    options: list[str] = field(default_factory=list)


def random_rollback(seed: int) -> RollbackWorld:
    """Return the world of a seed."""
    rng = Random(seed)  # noqa: S311 - reproducible, not secret
    namespace = f"back-{seed}"
    objects = [
        build(rng, namespace, f"{build.__name__.strip('_').replace('_', '-')}-{index}")
        for build in (*BUILDERS, daemons)
        for index in range(rng.randint(0, 2))
    ]
    world = RollbackWorld(namespace, [_with_immutable(rng, body) for body in objects])
    for body in world.objects:
        _befall(rng, world, body)
    world.added = [
        build(rng, namespace, f"added-{build.__name__.strip('_').replace('_', '-')}")
        for build in (*BUILDERS, daemons)
        if rng.random() < 0.2
    ]
    world.owners = _owners(rng, world)
    if rng.random() < 0.4:
        world.options.append("--prune")
    if rng.random() < 0.4:
        world.options += ["--only", ",".join(sorted(rng.sample(ONLY, rng.randint(1, 4))))]
    return world


def daemons(rng: Random, namespace: str, name: str) -> Document:
    """Return a DaemonSet."""
    labels = {"app": name}
    pod = {"containers": [{"name": "main", "image": f"shop/agent:{rng.randint(1, 3)}"}], "nodeSelector": {"no": "node"}}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    about = {"name": name, "namespace": namespace, "labels": {"tier": rng.choice(("web", "db"))}}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": about, "spec": spec}


def resource_of(body: Document) -> str:
    """Return plural.group of an object."""
    return {**RESOURCES, "DaemonSet": "daemonsets.apps"}[body["kind"]]


def _with_immutable(rng: Random, body: Document) -> Document:
    is_opaque = body["kind"] in ("ConfigMap", "Secret") and "type" not in body
    return {**body, "immutable": True} if is_opaque and rng.random() < 0.15 else body


def _befall(rng: Random, world: RollbackWorld, body: Document) -> None:
    """Let something happen to an object, or nothing."""
    fate = rng.random()
    if fate < 0.25:
        world.removed.append(body)
    elif fate < 0.65:
        world.changed.append(_changed(rng, body))
    elif fate < 0.75 and body["kind"] in _REPLACED:
        other = copy.deepcopy(body)
        _REPLACED[body["kind"]](other)
        world.replaced.append(other)


def _changed(rng: Random, body: Document) -> Document:
    """Return an object with other labels, annotations or values."""
    other = copy.deepcopy(body)
    if body["kind"] in _FIXED or body.get("immutable") or rng.random() < 0.4:
        _relabel(rng, other)
    change = _VALUES.get(body["kind"])
    if change is not None and not body.get("immutable"):
        change(rng, other)
    if other == body:
        _relabel(rng, other)
    return other


def _relabel(rng: Random, body: Document) -> None:
    metadata = body["metadata"]
    what = rng.choice(("another label", "more labels", "no labels", "annotations"))
    if what == "another label":
        metadata["labels"] = {**metadata.get("labels", {}), "tier": "changed"}
    elif what == "more labels":
        metadata["labels"] = {**metadata.get("labels", {}), "shop.example/added": str(rng.randint(1, 9))}
    elif what == "no labels":
        metadata.pop("labels", None)
    else:
        metadata["annotations"] = {**metadata.get("annotations", {}), "shop.example/note": str(rng.randint(1, 9))}


def _data(rng: Random, body: Document) -> None:
    field_of = "data" if body["kind"] == "ConfigMap" else "stringData"
    if body.get("type"):
        return
    body[field_of] = rng.choice(({"key": "changed"}, {"key": "changed", "more": "x"}, {"other.key": "x"}))


def _account(rng: Random, body: Document) -> None:
    body |= rng.choice(
        (
            {"imagePullSecrets": [{"name": "pull-added"}]},
            {"automountServiceAccountToken": False},
            {"imagePullSecrets": []},
        )
    )


def _service(rng: Random, body: Document) -> None:
    body["spec"] |= rng.choice(
        (
            {"ports": [{"port": 81, "protocol": "TCP"}]},
            {"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 82}]},
            {"selector": {"app": "changed"}},
            {"sessionAffinity": "ClientIP"},
        )
    )


def _template(rng: Random, body: Document) -> None:
    pod = body["spec"]["template"]["spec"]
    what = rng.choice(("image", "variable", "container", "scale"))
    if what == "image":
        pod["containers"][0]["image"] = "shop/web:broken"
    elif what == "variable":
        pod["containers"][0]["env"] = [{"name": "MODE", "value": "changed"}]
    elif what == "container":
        pod["containers"].append({"name": "added", "image": "shop/added:1"})
    elif body["kind"] != "DaemonSet":
        body["spec"]["replicas"] = rng.randint(1, 3)


def _cron(rng: Random, body: Document) -> None:
    body["spec"] |= rng.choice(({"schedule": "0 4 * * *"}, {"suspend": False}, {"concurrencyPolicy": "Forbid"}))


def _network(rng: Random, body: Document) -> None:
    body["spec"] |= rng.choice(({"policyTypes": ["Ingress", "Egress"]}, {"podSelector": {"matchLabels": {"app": "x"}}}))


def _ingress(_: Random, body: Document) -> None:
    body["spec"]["defaultBackend"]["service"]["port"]["number"] = 8080


def _budget(_: Random, body: Document) -> None:
    body["spec"]["minAvailable"] = 2


def _scaler(_: Random, body: Document) -> None:
    body["spec"] |= {"maxReplicas": 9, "minReplicas": 2}


def _limits(_: Random, body: Document) -> None:
    body["spec"]["limits"][0]["defaultRequest"]["cpu"] = "50m"


def _role(_: Random, body: Document) -> None:
    body["rules"][0]["verbs"] = ["get", "list"]


def _subjects(_: Random, body: Document) -> None:
    body["subjects"] = [{**body["subjects"][0], "name": "changed"}]


def _widget(_: Random, body: Document) -> None:
    body["spec"]["size"] = "changed"


_VALUES: dict[str, Change] = {
    "ConfigMap": _data,
    "Secret": _data,
    "ServiceAccount": _account,
    "Service": _service,
    "Deployment": _template,
    "StatefulSet": _template,
    "DaemonSet": _template,
    "CronJob": _cron,
    "NetworkPolicy": _network,
    "Ingress": _ingress,
    "PodDisruptionBudget": _budget,
    "HorizontalPodAutoscaler": _scaler,
    "LimitRange": _limits,
    "Role": _role,
    "RoleBinding": _subjects,
    "Widget": _widget,
}
"""How the values of each kind change."""


def _other_selector(body: Document) -> None:
    labels = {"app": "replaced"}
    body["spec"]["selector"] = {"matchLabels": labels}
    body["spec"]["template"]["metadata"]["labels"] = labels


def _other_service_name(body: Document) -> None:
    body["spec"]["serviceName"] = "replaced"


def _other_role(body: Document) -> None:
    body["roleRef"] = {**body["roleRef"], "name": "edit"}


def _sealed(body: Document) -> None:
    body |= {"data" if body["kind"] == "ConfigMap" else "stringData": {"key": "replaced"}, "immutable": True}


def _headless(body: Document) -> None:
    is_headless = body["spec"].get("clusterIP") == "None"
    body["spec"] = {"ports": body["spec"]["ports"], "selector": body["spec"]["selector"]}
    if not is_headless:
        body["spec"]["clusterIP"] = "None"


_REPLACED: dict[str, Callable[[Document], None]] = {
    "Deployment": _other_selector,
    "DaemonSet": _other_selector,
    "StatefulSet": _other_service_name,
    "RoleBinding": _other_role,
    "ConfigMap": _sealed,
    "Service": _headless,
}
"""What can only be changed by deleting an object and creating another one of its name."""


def _owners(rng: Random, world: RollbackWorld) -> dict[str, str]:
    """Return owners of some objects: a ConfigMap that stays, or one that was added since."""
    lost = {body["metadata"]["name"] for body in (*world.removed, *world.replaced)}
    owners = [body for body in (*world.objects, *world.added) if body["kind"] == "ConfigMap"]
    names = [body["metadata"]["name"] for body in owners if body["metadata"]["name"] not in lost]
    if not names:
        return {}
    owned = [body for body in (*world.objects, *world.added) if body["kind"] in ("Secret", "NetworkPolicy", "Widget")]
    before = {body["metadata"]["name"] for body in world.objects}
    found = {}
    for body in owned:
        name = body["metadata"]["name"]
        candidates = [each for each in names if name not in before or each in before]
        if candidates and rng.random() < 0.3:
            found[name] = rng.choice(candidates)
    return found
