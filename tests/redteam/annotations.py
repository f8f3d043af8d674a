"""Attacks by annotations that Velero obeys whatever a spec says: hooks, additional items, the status of an object."""

from collections.abc import Mapping
from typing import Any

from tests.redteam.attack import ATTACKS, Attack, as_administrator, attack, controlled_attack
from tests.redteam.world import Json, World, body_of, path

_POD: Json = {"containers": [{"name": "only", "image": "only"}]}
ENDLESS = {
    "post.hook.restore.velero.io/command": '["/bin/true"]',
    "post.hook.restore.velero.io/wait-timeout": "9999h",
}
BACKUP_HOOK = {"pre.hook.backup.velero.io/command": '["sleep", "9999"]', "pre.hook.backup.velero.io/timeout": "9999h"}
INIT_HOOK = {
    "init.hook.restore.velero.io/container-name": "root",
    "init.hook.restore.velero.io/container-image": "root",
    "init.hook.restore.velero.io/command": '["sh"]',
}
ADDITIONAL = {"backup.velero.io/must-include-additional-items": "true"}
STATUS = {"velero.io/restore-status": "true"}


def _carries(found: object, keys: Mapping[str, str]) -> list[str]:
    """Return which of the annotations are in an object, at whatever depth."""
    return [f"{key} is stored" for key in keys if key in str(found)]


def _try(world: World, plural: str, body: Json, keys: Mapping[str, str]) -> list[str]:
    target = path(plural, world.home)
    name = body["metadata"]["name"]
    world.hostile.create(target, body)
    stored = world.admin.get(f"{target}/{name}")
    world.admin.delete(f"{target}/{name}")
    return _carries(stored, keys)


@controlled_attack
def hook_after_restore_on_a_pod(world: World) -> list[str]:
    """Annotate a pod so that Velero waits 9999 hours for it after a restore."""
    return _try(world, "pods", {**body_of("Pod", "hook-post", annotations=ENDLESS), "spec": _POD}, ENDLESS)


@controlled_attack
def hook_before_backup_on_a_pod(world: World) -> list[str]:
    """Annotate a pod so that Velero runs a command of 9999 hours before a backup."""
    return _try(world, "pods", {**body_of("Pod", "hook-pre", annotations=BACKUP_HOOK), "spec": _POD}, BACKUP_HOOK)


@controlled_attack
def init_container_on_a_pod(world: World) -> list[str]:
    """Annotate a pod so that Velero adds an init container when it comes back."""
    return _try(world, "pods", {**body_of("Pod", "hook-init", annotations=INIT_HOOK), "spec": _POD}, INIT_HOOK)


@controlled_attack
def hook_added_to_a_pod_later(world: World) -> list[str]:
    """Annotate a pod that runs already, by three sorts of patch."""
    target = path("pods", world.home, "calm")
    world.hostile.create(path("pods", world.home), {**body_of("Pod", "calm"), "spec": _POD})
    world.hostile.patch(target, {"metadata": {"annotations": ENDLESS}})
    world.hostile.patch(target, [{"op": "add", "path": "/metadata/annotations", "value": ENDLESS}], "json")
    apply = body_of("Pod", "calm", annotations=ENDLESS)
    world.hostile.patch(f"{target}?fieldManager=velero&force=true", apply, "apply")
    stored = world.admin.get(target)
    world.admin.delete(f"{target}?gracePeriodSeconds=0")
    return _carries(stored, ENDLESS)


@attack
def hook_added_by_binding_a_pod(world: World) -> list[str]:
    """Bind a pod to a node with annotations, which the API server copies to the pod."""
    target = path("pods", world.home, "bound")
    lost = {**_POD, "schedulerName": "nobody"}
    world.hostile.create(path("pods", world.home), {**body_of("Pod", "bound"), "spec": lost})
    binding = {**body_of("Binding", "bound", annotations=ENDLESS), "target": {"kind": "Node", "name": "node-0"}}
    world.hostile.create(f"{target}/binding", binding)
    stored = world.admin.get(target)
    world.admin.delete(f"{target}?gracePeriodSeconds=0")
    return _carries(stored, ENDLESS)


@controlled_attack
def additional_items_of_a_service_account(world: World) -> list[str]:
    """Annotate a ServiceAccount so that Velero takes its ClusterRoles along in spite of every exclusion."""
    return _try(world, "serviceaccounts", body_of("ServiceAccount", "greedy", annotations=ADDITIONAL), ADDITIONAL)


@controlled_attack
def status_of_a_service(world: World) -> list[str]:
    """Annotate a Service so that Velero restores its status, the addresses of a load balancer among it."""
    body = {**body_of("Service", "fronted", annotations=STATUS), "spec": {"ports": [{"port": 80}]}}
    return _try(world, "services", body, STATUS)


@controlled_attack
def status_of_a_claim(world: World) -> list[str]:
    """Annotate a PersistentVolumeClaim so that Velero restores its status."""
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": resources}
    body = {**body_of("PersistentVolumeClaim", "claimed", annotations=STATUS), "spec": spec}
    return _try(world, "persistentvolumeclaims", body, STATUS)


def _template(keys: Mapping[str, str]) -> Json:
    return {"metadata": {"labels": {"app": "x"}, "annotations": dict(keys)}, "spec": _POD}


def _workload(plural: str, kind: str, version: str) -> Json:
    """Return an object of a kind that makes pods from a template with the annotations."""
    selector, template = {"matchLabels": {"app": "x"}}, _template(ENDLESS)
    once = {"template": {**template, "spec": {**_POD, "restartPolicy": "Never"}}}
    specs: dict[str, Any] = {
        "jobs": once,
        "cronjobs": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": once}},
        "replicationcontrollers": {"replicas": 0, "selector": {"app": "x"}, "template": template},
    }
    spec = specs.get(plural, {"replicas": 0, "selector": selector, "template": template})
    if plural == "daemonsets":
        spec = {"selector": selector, "template": template}
    meta = {"name": f"templated-{plural}"}
    if plural == "podtemplates":
        return {"apiVersion": version, "kind": kind, "metadata": meta, "template": template}
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec}


_WORKLOADS = (
    ("deployments", "Deployment", "apps/v1"),
    ("statefulsets", "StatefulSet", "apps/v1"),
    ("daemonsets", "DaemonSet", "apps/v1"),
    ("replicasets", "ReplicaSet", "apps/v1"),
    ("jobs", "Job", "batch/v1"),
    ("cronjobs", "CronJob", "batch/v1"),
    ("replicationcontrollers", "ReplicationController", "v1"),
    ("podtemplates", "PodTemplate", "v1"),
)


def _hook_in_template(plural: str, kind: str, version: str) -> Attack:
    def act(world: World) -> list[str]:
        return _try(world, plural, _workload(plural, kind, version), ENDLESS)

    tries = f"Put the hook into the pod template of a {kind}, whose controller makes the pods."
    return Attack(f"hook_in_the_template_of_{plural}", tries, act, as_administrator(act))


ATTACKS.extend(_hook_in_template(*each) for each in _WORKLOADS)


@attack
def hook_spelled_otherwise(world: World) -> list[str]:
    """Spell the annotation with other letters, which Velero must not obey and the API server may store."""
    keys = {"Post.Hook.Restore.Velero.io/command": "[]", "post.hook.restore.velero.io/Command": "[]"}
    found = _try(world, "pods", {**body_of("Pod", "spelled", annotations=keys), "spec": _POD}, ENDLESS)
    return [each for each in found if "/command is" in each]
