"""Random worlds for the restore plan: what is backed up, what happens afterwards, and how it is restored."""

from dataclasses import dataclass, field
from random import Random

from bench.plan_objects import BUILDERS, Document, pod

_CHANGEABLE = ("ConfigMap", "Secret", "Deployment", "Service", "NetworkPolicy", "Endpoints", "Widget")


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
        for build in BUILDERS
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
    found = pod(rng, world.namespace, "pod-with-priority")
    found["spec"]["priorityClassName"] = name
    world.objects.append(found)
    if rng.random() < 0.7:
        world.removed.append(found)


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
