"""The real node of the attacks on rollbacks of volumes: a team with a claim in use, its colleague eve, and a victim.

What the administrator holds for attacks with the operator's token: volumes in each state that a Rollback leaves.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from foresail.api.marks import KEPT_VOLUME, ROLLBACK_UID
from testbed import Cluster, Options
from tests.cluster import operators, rollbacks, tenants
from tests.redteam.canaries import volume_folder, volumes_of
from tests.redteam.node_world import claim, claim_spec, from_claim, pod_spec, thing
from tests.redteam.rollback_world import OWN, ROLLBACKS, RolledWorld, few_rights, phase_of
from tests.redteam.world import (
    HOSTILE,
    NAB,
    VICTIM,
    Caller,
    Json,
    body_of,
    config,
    may_edit,
    namespace,
    path,
    policy_for,
    until,
    user,
)

DATA, SPARE, FILE = "data", "spare", "canary"
"""The claim in use, one that nothing uses, and the file in the former."""

ROWS = 20_000
GOOD, BAD = (
    "".join(f"{number} {text}\n" for number in range(ROWS)) for text in ("as in the backup", "since the backup")
)
"""What is in the file."""

MARK = "11111111-1111-4111-8111-111111111111"
HELD, KEPT, SAVED = "held", "kept", "saved"
"""Volumes of the victim with marks: bound; released and to be deleted once; released and to be retained."""

_DONE = "done"
"""A Rollback of the hostile tenant that is complete, with its old volumes kept."""

_ALL: Json = {
    "restore": {"allowed": {"existingResourcePolicies": ["none", "update"]}},
    "rollback": {"enabled": True, "volumes": "All", "prune": True},
}


@dataclass(frozen=True)
class VolumesWorld(RolledWorld):
    """A world with rollbacks of volumes."""

    rolling: operators.Operator | None = None

    def volume(self, name: str, space: str = HOSTILE) -> Json:
        """Return the volume that a claim is bound to; empty if there is none."""
        found = self.admin.get(path("persistentvolumeclaims", space, name)) or {}
        return self.admin.get(path("persistentvolumes", name=found.get("spec", {}).get("volumeName", "-"))) or {}

    def file(self, space: str = HOSTILE) -> Path:
        """Return the file in the volume in use, on the node."""
        return volume_folder(self.cluster, self.volume(DATA, space)) / FILE

    def replicas(self, space: str = HOSTILE) -> int:
        """Return how many pods of the database are wanted."""
        return int((self.admin.get(path("deployments", space, "db")) or {})["spec"]["replicas"])

    def belongings(self) -> dict[str, str]:
        """Return what the hostile tenant must not change: the volumes of the victim and what is in them too."""
        volumes = {
            f"volume {each['metadata']['name']}": json.dumps([each["spec"], each["metadata"].get("labels")])
            for each in volumes_of(self.admin, VICTIM)
        }
        return {**super().belongings(), **volumes, "file of the victim": self.file(VICTIM).read_text()}

    def ready(self, space: str = HOSTILE) -> None:
        """Wait until the database runs."""
        target = path("deployments", space, "db")
        until(lambda: (self.admin.get(target) or {}).get("status", {}).get("readyReplicas"), 120, f"{space} runs")


def record(policy: str, space: str = VICTIM) -> Json:
    """Return the metadata by which a Rollback keeps a volume."""
    text = json.dumps(
        {"reclaim_policy": policy, "rollback": f"{space}/x", "until": "2099-01-01T00:00:00Z"}, separators=(",", ":")
    )
    return {"labels": {ROLLBACK_UID: MARK}, "annotations": {KEPT_VOLUME: text}}


@contextmanager
def rolled_volumes(folder: Path, name: str = "redteam-volumes") -> Iterator[VolumesWorld]:
    """Build the cluster with everybody in it, and take it down when the block ends."""
    options = Options(velero="velero", node=True, csi=True)
    with Cluster.create(name, options, owned=True) as cluster, ExitStack() as stack:
        for space, who in ((HOSTILE, "mallory"), (VICTIM, "vic")):
            cluster.apply(namespace(space), may_edit(space, who), config(space))
        cluster.apply(*few_rights())
        tenants.install(cluster, rollback_volumes=True)
        for account in ("foresail-self-service", "foresail-rollback"):
            cluster.kubectl("scale", f"deployment/{account}", "--namespace=velero", "--replicas=0")
        cluster.apply(policy_for(HOSTILE, _ALL), policy_for(VICTIM, _ALL))
        log = folder / "operator.log"
        process = stack.enter_context(tenants.operator(cluster, log))
        flags = (*rollbacks.FLAGS, "--rollback-volumes=true")
        rolling = stack.enter_context(operators.running(cluster, folder, *flags))
        people = [user(cluster, person) for person in ("mallory", "vic", "eve")]
        admin = Caller(cluster.server, cluster.site.admin_trust)
        world = VolumesWorld(
            cluster, admin, people[0], people[1], process, log, people[2], rolling.pid, rolling=rolling
        )
        _furnish(world)
        yield world


def _furnish(world: VolumesWorld) -> None:
    target = path(ROLLBACKS, HOSTILE)
    until(lambda: world.hostile.get(target) is not None, 120, "the built-in role edit has our rules")
    canary = body_of(NAB, "canary", {"backupSpec": {}}, labels={"foresail.dev/canary": "x"})
    dry = f"{path(NAB, HOSTILE)}?dryRun=All"
    until(lambda: world.hostile.create(dry, canary).code >= 400, 60, "admission policies are in force")
    for who, space in ((world.hostile, HOSTILE), (world.victim, VICTIM)):
        for name in (DATA, SPARE):
            who.create(path("persistentvolumeclaims", space), claim(name))
        who.create(path("deployments", space), _database())
    for space in (HOSTILE, VICTIM):
        world.ready(space)
        world.file(space).write_text(GOOD)
    for who, space in ((world.hostile, HOSTILE), (world.victim, VICTIM)):
        who.create(path(NAB, space), body_of(NAB, OWN, {"backupSpec": {"snapshotMoveData": True}}))
    for space in (HOSTILE, VICTIM):
        found = world.finished(NAB, OWN, space, 300)
        assert found["status"]["dataMoverDataUploads"]["completed"] == 2, found["status"]
        world.file(space).write_text(BAD)
    _volumes_in_each_state(world)


def _database() -> Json:
    labels = {"app": "db"}
    pod = {"metadata": {"labels": labels}, "spec": pod_spec({DATA: from_claim(DATA)})}
    spec = {"replicas": 1, "strategy": {"type": "Recreate"}, "selector": {"matchLabels": labels}, "template": pod}
    return thing("apps/v1", "Deployment", "db", spec)


def _volumes_in_each_state(world: VolumesWorld) -> None:
    """Create the marked volumes; a claim of another UID than in their claimRef is what Kubernetes calls Released."""
    for name, policy, phase in ((HELD, "Delete", "Bound"), (KEPT, "Delete", "Released"), (SAVED, "Retain", "Released")):
        gone = {} if phase == "Bound" else {"claimRef": {"namespace": VICTIM, "name": name, "uid": MARK}}
        spec = {
            "capacity": {"storage": "8Mi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "none",
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": f"/nowhere/{name}"},
            **gone,
        }
        world.admin.create(path("persistentvolumes"), thing("v1", "PersistentVolume", name, spec, **record(policy)))
        if phase == "Bound":
            body = claim(name, claim_spec("none", volumeName=name))
            world.admin.create(path("persistentvolumeclaims", VICTIM), body)

        def has_phase(name: str = name, phase: str = phase) -> bool:
            found = world.admin.get(path("persistentvolumes", name=name)) or {}
            return bool(found.get("status", {}).get("phase") == phase)

        until(has_phase, 60, f"volume {name} is {phase}")


def release(world: VolumesWorld) -> None:
    """Delete Rollbacks that have ended, and wait until no old volume is kept."""
    for each in world.admin.items(path(ROLLBACKS, HOSTILE)):
        world.admin.delete(path(ROLLBACKS, HOSTILE, each["metadata"]["name"]))
    until(lambda: not kept(world), 120, "no old volume is kept")


def kept(world: VolumesWorld) -> list[str]:
    """Return the old volumes of the hostile tenant that are kept."""
    volumes = volumes_of(world.admin, HOSTILE)
    return [each["metadata"]["name"] for each in volumes if ROLLBACK_UID in each["metadata"].get("labels", {})]


def complete(world: VolumesWorld) -> Json:
    """Return a complete Rollback of the hostile tenant; if there is none, run it."""
    if phase_of(world.rollback(_DONE)) != "Completed":
        release(world)
        world.file().write_text(BAD)
        spec = {"to": OWN, "volumes": "All", "only": ["configmaps"]}
        world.hostile.create(path(ROLLBACKS, HOSTILE), body_of(ROLLBACKS, _DONE, spec))
        until(lambda: phase_of(world.rollback(_DONE)) in rollbacks.ENDED, 600, "the Rollback ends")
        world.ready()
    found = world.rollback(_DONE)
    assert phase_of(found) == "Completed", found
    return found
