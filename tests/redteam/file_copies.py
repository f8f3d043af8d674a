"""Attacks on Velero's data path: copies of files from and to pods, snapshots and volumes of others.

No node agent runs in this cluster. Velero that tries to copy files reports an error, which the attacks look for.
"""

import http.client
import itertools
from typing import Any

from tests.redteam.attack import attack, controlled_by
from tests.redteam.world import CLOSED, HOSTILE, NAB, NAR, NAS, VELERO, VICTIM, Json, World, body_of, path, until

OPTED_IN = {"backup.velero.io/backup-volumes": "cache"}
LEGACY = {"snapshot.velero.io/cache": "0123456789abcdef"}
_ENDED = {"Completed", "PartiallyFailed", "Failed", "FailedValidation"}
_NUMBERS = itertools.count()
_COPIES = ("podvolumebackups", "podvolumerestores")
_HANDLE = {
    "velero.io/csi-volumesnapshot-handle": "snapshot-of-the-victim",
    "velero.io/csi-driver-name": "disk.example.com",
    "velero.io/csi-vsc-deletion-policy": "Delete",
}


def _spec() -> Json:
    mounted = {"name": "only", "image": "only", "volumeMounts": [{"name": "cache", "mountPath": "/cache"}]}
    return {"containers": [mounted], "volumes": [{"name": "cache", "emptyDir": {}}]}


def _pod(name: str, **metadata: object) -> Json:
    return {**body_of("Pod", name, **metadata), "spec": _spec()}


def _runs(world: World, namespace: str, name: str) -> None:
    """Wait until a pod runs: Velero copies files from no other."""
    target = path("pods", namespace, name)
    until(lambda: (world.admin.get(target) or {}).get("status", {}).get("phase") == "Running", 60, f"pod {name} runs")


def _remove(world: World, name: str, namespace: str = HOSTILE) -> None:
    world.admin.delete(f"{path('pods', namespace, name)}?gracePeriodSeconds=0")


def _tried(world: World, backup: Json) -> list[str]:
    """Return what shows that Velero copied files for a Backup, or tried to."""
    name, status = backup["metadata"]["name"], backup.get("status", {})
    found = [f"{name} has {status['errors']} errors: Velero tried to copy files"] if status.get("errors") else []
    for plural in _COPIES:
        copies = world.admin.items(f"/apis/velero.io/v1/namespaces/{VELERO}/{plural}")
        found += [f"{each['metadata']['name']} exists" for each in copies]
    return found


def _copied_for(world: World, *names: str) -> list[str]:
    return [text for name in names for each in world.made_for("backups", HOSTILE, name) for text in _tried(world, each)]


def _back_up(world: World, name: str, **spec: Any) -> None:  # noqa: ANN401 - JSON
    answer = world.ask(NAB, name, {"backupSpec": spec})
    if answer.code < http.client.BAD_REQUEST:
        world.finished(NAB, name)


def _administrators_copy(world: World) -> list[str]:
    """Let an administrator back up a pod that asks for a copy: Velero tries."""
    name = f"plain-copy-{next(_NUMBERS)}"  # the bucket keeps each; a pod of a removed one's name could inherit its end
    world.admin.create(path("pods", CLOSED), _pod(name, annotations=OPTED_IN))
    _runs(world, CLOSED, name)
    target = path("backups", VELERO, name)
    world.admin.create(path("backups", VELERO), body_of("backups", name, {"includedNamespaces": [CLOSED]}))
    until(lambda: (world.admin.get(target) or {}).get("status", {}).get("phase") in _ENDED, 60, "it ends")
    found = _tried(world, world.admin.get(target) or {"metadata": {"name": name}})
    world.admin.delete(target)
    _remove(world, name, CLOSED)
    return found


# Files from pods


@controlled_by(_administrators_copy)
def copy_files_by_the_spec(world: World) -> list[str]:
    """Ask for a copy of the files of all volumes in the spec, under each of its names."""
    world.hostile.create(path("pods", HOSTILE), _pod("open"))
    _runs(world, HOSTILE, "open")
    for field in ("defaultVolumesToFsBackup", "defaultVolumesToRestic"):
        _back_up(world, field.lower(), **{field: True})
    _remove(world, "open")
    return _copied_for(world, "defaultvolumestofsbackup", "defaultvolumestorestic")


@controlled_by(_administrators_copy)
def copy_files_by_an_annotation(world: World) -> list[str]:
    """Annotate a pod so that Velero copies its files, and back it up."""
    world.hostile.create(path("pods", HOSTILE), _pod("chosen"))
    _runs(world, HOSTILE, "chosen")
    world.hostile.patch(path("pods", HOSTILE, "chosen"), {"metadata": {"annotations": OPTED_IN}})
    _back_up(world, "chosen")
    _remove(world, "chosen")
    return _copied_for(world, "chosen")


@controlled_by(_administrators_copy)
def copy_files_by_the_template_of_a_deployment(world: World) -> list[str]:
    """Annotate the pods of a Deployment by its template, and back them up."""
    template = {"metadata": {"labels": {"app": "made"}, "annotations": OPTED_IN}, "spec": _spec()}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "made"}}, "template": template}
    target = path("deployments", HOSTILE)
    body = {**body_of("Deployment", "made"), "apiVersion": "apps/v1", "spec": spec}
    if world.hostile.create(target, body).code < http.client.BAD_REQUEST:
        ready = f"{target}/made"
        until(lambda: (world.admin.get(ready) or {}).get("status", {}).get("readyReplicas"), 60, "its pod runs")
    _back_up(world, "made")
    world.admin.delete(f"{target}/made", propagationPolicy="Background")
    return _copied_for(world, "made")


@controlled_by(_administrators_copy)
def copy_files_by_an_annotation_after_the_check(world: World) -> list[str]:
    """Annotate a pod between the check of the operator and the read of Velero, as the only one whom admission lets."""
    world.hostile.create(path("pods", HOSTILE), _pod("late"))
    _runs(world, HOSTILE, "late")
    with world.velero_stopped():
        world.ask(NAB, "late", {"backupSpec": {}})
        until(lambda: world.made_for("backups", HOSTILE, "late"), 60, "Velero has the backup")
        change = {"metadata": {"annotations": OPTED_IN}}
        velero = f"system:serviceaccount:{VELERO}:velero"
        answer = world.admin.patch(path("pods", HOSTILE, "late"), change, Impersonate_User=velero)
        assert answer.code < http.client.BAD_REQUEST, answer
    world.finished(NAB, "late")
    _remove(world, "late")
    return _copied_for(world, "late")


@attack
def copy_files_by_a_schedule(world: World) -> list[str]:
    """Ask for a copy of files in the template of a schedule."""
    spec = {"schedule": "0 0 1 1 *", "template": {"backupSpec": {"defaultVolumesToFsBackup": True}}}
    answer = world.ask(NAS, "copying", spec)
    found = world.decided(NAS, "copying") if answer.code < http.client.BAD_REQUEST else {}
    world.hostile.delete(path(NAS, HOSTILE, "copying"))
    conditions = found.get("status", {}).get("conditions", [])
    accepted = [each for each in conditions if each["type"] == "Accepted" and each["status"] == "True"]
    return ["the schedule is accepted"] if accepted else []


@attack
def replace_the_volume_policy(world: World) -> list[str]:
    """Name another volume policy, change the operator's, and put one of the same name into the own namespace."""
    rule = {"policy": "{version: v1, volumePolicies: [{conditions: {}, action: {type: fs-backup}}]}"}
    for namespace, name in ((VELERO, "mine"), (VELERO, "foresail-snapshot-volumes"), (HOSTILE, "mine")):
        world.hostile.create(path("configmaps", namespace), {**body_of("ConfigMap", name), "data": rule})
        world.hostile.patch(path("configmaps", namespace, name), {"data": rule})
    _back_up(world, "replaced", resourcePolicy={"kind": "configmap", "name": "mine"})
    world.hostile.delete(path("configmaps", HOSTILE, "mine"))
    made = world.made_for("backups", HOSTILE, "replaced")
    kept = world.admin.get(path("configmaps", VELERO, "foresail-snapshot-volumes")) or {}
    found = [f"{each['metadata']['name']} was made" for each in made]
    return found + ([] if "fs-backup" not in str(kept) else ["the operator's volume policy was changed"])


# Files into pods


@attack
def write_files_by_a_legacy_annotation(world: World) -> list[str]:
    """Annotate a pod with the ID of a copy, as old releases of Velero did, back it up and restore it."""
    world.hostile.create(path("pods", HOSTILE), _pod("legacy", annotations=LEGACY))
    _back_up(world, "legacy")
    _remove(world, "legacy")
    answer = world.ask(NAR, "legacy", {"restoreSpec": {"backupName": "legacy", "includedResources": ["pods"]}})
    if answer.code < http.client.BAD_REQUEST:
        world.decided(NAR, "legacy")
    copies = world.admin.items(f"/apis/velero.io/v1/namespaces/{VELERO}/podvolumerestores")
    _remove(world, "legacy")
    return [f"{each['metadata']['name']} exists" for each in copies]


# Snapshots and volumes of others


@attack
def take_a_snapshot_of_another_by_its_handle(world: World) -> list[str]:
    """Annotate a claim with the handle of another's snapshot, which Velero would turn into a VolumeSnapshotContent."""
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": resources}
    target = path("persistentvolumeclaims", HOSTILE)
    answer = world.hostile.create(
        target, {**body_of("PersistentVolumeClaim", "stolen", annotations=_HANDLE), "spec": spec}
    )
    stored = world.admin.get(f"{target}/stolen")
    world.admin.delete(f"{target}/stolen")
    return [f"{answer.code}: the handle is stored"] if "snapshot-of-the-victim" in str(stored) else []


@attack
def restore_a_claim_with_the_data_of_another_namespace(world: World) -> list[str]:
    """Restore a claim whose data source is in the victim's namespace: nothing more than the tenant may ask for."""
    source = {"apiGroup": "", "kind": "PersistentVolumeClaim", "name": "data", "namespace": VICTIM}
    resources = {"requests": {"storage": "1Gi"}}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "none",
        "resources": resources,
        "dataSourceRef": source,
    }
    target = path("persistentvolumeclaims", HOSTILE)
    answer = world.hostile.create(target, {**body_of("PersistentVolumeClaim", "foreign"), "spec": spec})
    if answer.code >= http.client.BAD_REQUEST:
        return []
    kept = (world.admin.get(f"{target}/foreign") or {}).get("spec", {}).get("dataSourceRef", {})
    _back_up(world, "foreign", includedResources=["persistentvolumeclaims"])
    world.admin.delete(f"{target}/foreign")
    restored = world.ask(NAR, "foreign", {"restoreSpec": {"backupName": "foreign"}})
    if restored.code < http.client.BAD_REQUEST:
        world.finished(NAR, "foreign")
    found = (world.admin.get(f"{target}/foreign") or {}).get("spec", {}).get("dataSourceRef", {})
    world.admin.delete(f"{target}/foreign")
    return [f"the source became {found}"] if found and found != kept else []
