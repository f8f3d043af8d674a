"""Attacks by annotations that Velero obeys whatever a spec says: hooks, additional items, the status of an object."""

from collections.abc import Mapping
from typing import Any

from tests.redteam.attack import ATTACKS, Attack, as_administrator, attack, controlled_attack
from tests.redteam.oversized import (
    HOOK,
    cron_job,
    free_keys,
    keys,
    padded_cron_job,
    pod,
    processor_seconds,
    worst_objects,
)
from tests.redteam.world import CLOSED, Json, World, body_of, path

_MOST_SECONDS = 0.5  # beside other work on the machine; `make bench-admission` has the bound of 0.2

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
_CLASS = "volume.beta.kubernetes.io/storage-class"


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


@controlled_attack
def replace_a_claim_while_a_restore_ends(world: World) -> list[str]:
    """Create a claim without a class, of which Velero needs one when it ends a restore."""
    target, resources = path("persistentvolumeclaims", world.home), {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": resources}
    found: list[str] = []
    for number, notes in enumerate(({}, {_CLASS: "none"})):
        name = f"restored-{number}"
        body = {**body_of("PersistentVolumeClaim", name, annotations=notes), "spec": spec}
        world.hostile.create(target, body)
        stored = world.admin.get(f"{target}/{name}")
        world.admin.delete(f"{target}/{name}")
        if stored is not None and "storageClassName" not in stored["spec"]:
            found.append(f"claim {name} is stored without a class")
    return found


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


@attack
def hook_behind_padding_in_a_cron_job(world: World) -> list[str]:
    """Pad the metadata of a jobTemplate, which is not validated, beyond the cost of a search, then remove that."""
    target = path("cronjobs", world.home)
    achieved = []
    for count, length in ((1000, 1000), (1, 1_000_000), (20_000, 12), (600, 1000)):
        name = f"padded-{count}"
        world.hostile.create(target, padded_cron_job(name, count, length))
        bare = cron_job(name, {}, HOOK, {})
        world.hostile.send("PUT", f"{target}/{name}", bare)
        achieved += _carries(world.admin.get(f"{target}/{name}"), HOOK)
        world.admin.delete(f"{target}/{name}")
    return achieved


@attack
def hook_added_to_a_padded_cron_job(world: World) -> list[str]:
    """Create a CronJob without hooks, pad it, and add the hook together with the padding or after it."""
    target = path("cronjobs", world.home)
    at = f"{target}/grown"
    world.hostile.create(target, cron_job("grown", {}, {}, {}))
    padding = {"spec": {"jobTemplate": {"metadata": {"annotations": free_keys(1000, 1000)}}}}
    hook = {"spec": {"jobTemplate": {"spec": {"template": {"metadata": {"annotations": HOOK}}}}}}
    world.hostile.patch(at, padding)
    world.hostile.patch(at, hook)
    world.hostile.send("PUT", at, padded_cron_job("grown"))
    stored = world.admin.get(at)
    world.admin.delete(at)
    return _carries(stored, HOOK)


@attack
def hook_among_the_annotations_of_a_huge_pod(world: World) -> list[str]:
    """Hide the hook in pods of 1.3 MB: long valid keys, thousands of finalizers, managed fields."""
    bodies = (
        pod("huge", {**keys(700), **BACKUP_HOOK}),
        pod("huge", BACKUP_HOOK, finalizers=list(keys(2300))),
        {**pod("huge", BACKUP_HOOK), "metadata": {**worst_objects()["managed_fields"]["metadata"], "name": "huge"}},
    )
    bodies[2]["metadata"]["annotations"] = dict(BACKUP_HOOK)
    achieved = []
    for body in bodies:
        achieved += _try(world, "pods", body, BACKUP_HOOK)
    return achieved


@controlled_attack
def files_copied_by_an_annotation(world: World) -> list[str]:
    """Annotate a pod so that Velero copies its volumes by the node agent, which the policy refuses."""
    volumes = {"backup.velero.io/backup-volumes": "data"}
    return _try(world, "pods", {**body_of("Pod", "copied", annotations=volumes), "spec": _POD}, volumes)


@controlled_attack
def hook_in_the_jobs_of_a_cron_job(world: World) -> list[str]:
    """Put annotations into the metadata of a jobTemplate, which the Jobs get."""
    return _try(world, "cronjobs", cron_job("jobs", ADDITIONAL, {}, {}), ADDITIONAL)


@attack
def expensive_search(world: World) -> list[str]:
    """Send the CronJob whose search costs the API server most, in a cluster with 20 more SelfServicePolicies."""
    target, spent = path("cronjobs", world.home), []
    names = [f"costly-{number}" for number in range(20)]
    selector = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": world.home}}}
    for name in names:
        world.admin.create(path("selfservicepolicies"), body_of("SelfServicePolicy", name, selector))
    for where in (path("cronjobs", CLOSED), target):
        before = processor_seconds(world.cluster)
        for _ in range(3):
            world.admin.create(f"{where}?dryRun=All", padded_cron_job("costly"))
        spent.append((processor_seconds(world.cluster) - before) / 3)
    for name in names:
        world.admin.delete(path("selfservicepolicies", name=name))
    more = spent[1] - spent[0]
    return [f"{more:.2f} s of the API server for one request"] if more > _MOST_SECONDS else []
