"""Attacks by a restore: what the requester may not create comes back from a backup of better times."""

import http.client
from typing import Any

from tests.redteam.attack import attack
from tests.redteam.world import (
    EXCEPTIONS,
    HOSTILE,
    NAB,
    NAR,
    NIGHTLY,
    OLD,
    VELERO,
    VICTIM,
    World,
    body_of,
    path,
    until,
)


def _restore(world: World, name: str, **spec: Any) -> None:  # noqa: ANN401 - JSON
    """Restore the old backup, and wait until Velero has ended it or the operator has refused it."""
    answer = world.ask(NAR, name, {"restoreSpec": {"backupName": OLD, **spec}})
    if answer.code < http.client.BAD_REQUEST:
        world.finished(NAR, name)


def _taken(world: World, name: str) -> list[str]:
    """Return the kinds that the Velero Restores for a request name."""
    return [
        kind
        for each in world.made_for("restores", HOSTILE, name)
        for kind in each["spec"].get("includedResources", ["*"])
    ]


def _is_refused(world: World, name: str) -> bool:
    return bool(world.request(NAR, name).get("status", {}).get("phase") == "BackingOff")


@attack
def freeze_every_restore(world: World) -> list[str]:
    """Restore a pod that never runs, with a hook of 9999 hours from before it was forbidden."""
    world.ask(NAR, "frozen", {"restoreSpec": {"backupName": OLD, "includedResources": ["pods"]}})
    until(lambda: world.made_for("restores", HOSTILE, "frozen") or _is_refused(world, "frozen"), 60, "it is decided")
    spec = {"backupName": NIGHTLY, "includedNamespaces": [VICTIM], "includedResources": ["nothings.example.com"]}
    world.admin.create(path("restores", VELERO), body_of("restores", "admins", spec))

    def has_ended() -> bool:
        phases = [
            each.get("status", {}).get("phase", "")
            for each in (
                *world.made_for("restores", HOSTILE, "frozen"),
                world.admin.get(path("restores", VELERO, "admins")) or {},
            )
        ]
        return all(phase in {"Completed", "PartiallyFailed", "Failed", "FailedValidation"} for phase in phases)

    try:
        until(has_ended, 60, "the administrator's restore ends")
    except TimeoutError as late:
        world.cluster.fault.restart("velero")  # nothing else ends it
        return [str(late)]
    finally:
        world.admin.delete(path("restores", VELERO, "admins"))
        until(lambda: not world.admin.get(path("restores", VELERO, "admins")), 60, "Velero lets it go")
        world.admin.delete(f"{path('pods', HOSTILE, 'sleeper')}?gracePeriodSeconds=0")
    return []


@attack
def replay_a_volume_of_the_node(world: World) -> list[str]:
    """Restore a PersistentVolume with reclaim policy Retain on the node's root folder."""
    specs: tuple[dict[str, Any], ...] = ({}, {"includedResources": ["persistentvolumeclaims"]}, {"restorePVs": False})
    for number, spec in enumerate(specs):
        _restore(world, f"volume-{number}", **spec)
    found = world.admin.get(path("persistentvolumes", name="node-root"))
    world.admin.delete(path("persistentvolumeclaims", HOSTILE, "root"))
    world.admin.delete(path("persistentvolumes", name="node-root"))
    return ["the volume on the node's root folder is back"] if found else []


@attack
def replay_a_deleted_custom_resource(world: World) -> list[str]:
    """Restore a policy exception that the administrator deleted and the tenant may not create."""
    _restore(world, "exception-all")
    _restore(world, "exception-named", includedResources=[f"{EXCEPTIONS}.security.example.com"])
    found = world.admin.get(path(EXCEPTIONS, HOSTILE, "allow-root"))
    world.admin.delete(path(EXCEPTIONS, HOSTILE, "allow-root"))
    return ["the policy exception is back"] if found else []


@attack
def replay_a_role_binding(world: World) -> list[str]:
    """Restore a RoleBinding that the administrator deleted."""
    for number, kind in enumerate(("rolebindings.rbac.authorization.k8s.io", "rolebindings", "*")):
        _restore(world, f"binding-{number}", includedResources=[kind])
    found = world.admin.get(path("rolebindings", HOSTILE, "ghost-admin"))
    return ["the RoleBinding is back"] if found else []


@attack
def replay_by_an_alias(world: World) -> list[str]:
    """Ask for rights and endpoints by the names that other API groups have for them."""
    kinds = ("rolebindings.authorization.openshift.io", "roles.authorization.openshift.io", "endpoints")
    for number, kind in enumerate(kinds):
        _restore(world, f"alias-{number}", includedResources=[kind])
    return [f"{kind} is taken" for number, kind in enumerate(kinds[:2]) if kind in _taken(world, f"alias-{number}")]


@attack
def replay_the_status_of_a_load_balancer(world: World) -> list[str]:
    """Restore a Service that carries the annotation velero.io/restore-status from before it was forbidden."""
    target = path("services", HOSTILE, "front")
    world.admin.delete(target)
    _restore(world, "status", includedResources=["services"])
    found = world.admin.get(target) or {}
    world.admin.delete(target)
    ingress = found.get("status", {}).get("loadBalancer", {}).get("ingress")
    return [f"its addresses came back: {ingress}"] if ingress else []


@attack
def take_cluster_roles_along(world: World) -> list[str]:
    """Back up a ServiceAccount that has a ClusterRoleBinding, which Velero would add by itself."""
    made = world.made_for("backups", HOSTILE, OLD)[0]["metadata"]["name"]
    return [f"{kind} is in the backup" for kind in world.contents(made) if kind.startswith(("clusterrole", "nonadmin"))]


@attack
def take_the_volume_of_another(world: World) -> list[str]:
    """Claim a volume that is kept for the victim, and back the claim up."""
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "hostPath": {"path": "/victims"},
        "claimRef": {"namespace": VICTIM, "name": "data"},
    }
    world.cluster.apply({**body_of("PersistentVolume", "victims-data"), "spec": spec})
    resources = {"requests": {"storage": "1Gi"}}
    wanted = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": "victims-data"}
    body = {**body_of("PersistentVolumeClaim", "theirs"), "spec": {**wanted, "resources": resources}}
    world.hostile.create(path("persistentvolumeclaims", HOSTILE), body)
    world.ask(NAB, "claims", {"backupSpec": {"includedResources": ["persistentvolumeclaims"]}})
    world.finished(NAB, "claims")
    made = world.made_for("backups", HOSTILE, "claims")
    held = world.contents(made[0]["metadata"]["name"]) if made else {}
    world.admin.delete(path("persistentvolumeclaims", HOSTILE, "theirs"))
    world.admin.delete(path("persistentvolumes", name="victims-data"))
    return ["the victim's volume is in the backup"] if "victims-data" in held.get("persistentvolumes", set()) else []


@attack
def overwrite_what_is_there(world: World) -> list[str]:
    """Restore with existingResourcePolicy update, which the chart does not allow in this cluster."""
    world.ask(NAR, "update", {"restoreSpec": {"backupName": OLD, "existingResourcePolicy": "update"}})
    world.decided(NAR, "update")
    made = world.made_for("restores", HOSTILE, "update")
    return [f"{each['metadata']['name']} overwrites" for each in made]
