"""The shop with volumes: claims, volumes and pods as Kubernetes treats them, and a judge of the data."""

import asyncio
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from foresail.api import core
from foresail.api.apps import DEPLOYMENT
from foresail.api.instants import instant
from foresail.api.nonadmin import NON_ADMIN_BACKUP
from foresail.api.pods import POD
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.api.rollback import ROLLBACK
from foresail.plan import Key, Kind
from foresail.rollback.kinds import STATEFUL_SET
from foresail.rollback.storage_reads import REPLICA_SET
from tests.worlds.documents import Document
from tests.worlds.history import Happening
from tests.worlds.rollback_scene import GOOD, KEY, RESTORED_BY, SHOP, TEAM, Judge, Judged, RollbackScene
from tests.worlds.world import done

OLD = {"data": "pv-data", "store-cache-0": "pv-cache"}
"""The claims of the shop, and their volumes before."""

STRANGER = "pv-other"
"""The volume of another team."""

MARK = "foresail.dev/rollback-uid"
BAD_DATA, GOOD_DATA = "bad", "good"
_PROTECTION = "kubernetes.io/pvc-protection"
_STEP = 0.7


class StorageScene(RollbackScene):
    """The shop whose database and cache have volumes."""

    replaces = True

    def __init__(
        self, *, prunes: bool = False, only: tuple[str, ...] | None = None, volumes: str = "All", **spec: object
    ) -> None:
        self.data: dict[str, str] = {}  # what is in each volume, by its name
        self.saved: dict[
            str, dict[str, tuple[str, Document]]
        ] = {}  # of each backup: data and claim by the claim's name
        self.lost_download = 0  # how many of the next restores end without the data
        self.no_snapshots = False
        self.volumes_made = 0
        super().__init__(prunes=prunes, only=only, volumes=volumes, **spec)
        self.judge = StorageJudge(self)

    def _furnish(self) -> None:
        super()._furnish()
        make, merge = self.world.create, self.world.merge
        self.world.delete(core.CLAIM, Key(SHOP, "data"))
        self.world.delete(core.VOLUME, Key("", "pv-1"))
        policy = {"spec": {"rollback": {"volumes": "All"}}}
        merge(SELF_SERVICE_POLICY, Key("", "all"), policy, "admin")
        make(core.STORAGE_CLASS, {"metadata": {"name": "fast"}, "volumeBindingMode": "Immediate"}, "admin")
        for claim, volume in OLD.items():
            self._bound(claim, volume, BAD_DATA, {"labels": {"app": claim}})
        self.data[STRANGER] = "of others"
        other = {"namespace": "default", "name": "data", "uid": "other"}
        spec = {"claimRef": other, "persistentVolumeReclaimPolicy": "Delete"}
        make(core.VOLUME, {"metadata": {"name": STRANGER}, "spec": spec}, "admin")
        mounts = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        template = {"spec": {"volumes": mounts}}
        database = {"replicas": 2, "image": "db:1", "template": template}
        self.line.bucket[GOOD]["Deployment", "db"] = {"spec": {**database, "replicas": 1}}
        self._put(DEPLOYMENT, "db", {"spec": database})
        claims = [{"metadata": {"name": "store"}}]
        cache = {"replicas": 1, "image": "cache:2", "volumeClaimTemplates": claims}
        self.line.bucket[GOOD]["StatefulSet", "cache"] = {"spec": {**cache, "image": "cache:1"}}
        self._put(STATEFUL_SET, "cache", {"spec": cache})
        for name in ("db", "web"):
            self._replica_set(name)
        self.saved[GOOD] = {
            claim: (GOOD_DATA, {"metadata": {"labels": {"app": claim}}, "spec": {"storageClassName": "fast"}})
            for claim in OLD
        }
        status = {"status": {"dataMoverDataUploads": {"total": 2, "completed": 2}}}
        merge(NON_ADMIN_BACKUP, Key(SHOP, GOOD), status, "self-service", "status")
        self._settle()

    def _replica_set(self, name: str) -> None:
        owner = self.world.history.present(DEPLOYMENT)[Key(SHOP, name)]["metadata"]["uid"]
        owners = [{"kind": "Deployment", "name": name, "uid": owner, "controller": True}]
        self.world.create(REPLICA_SET, {"metadata": {"name": f"{name}-1", "ownerReferences": owners}}, "kube", SHOP)

    def _bound(self, claim: str, volume: str, data: str, metadata: Document) -> None:
        """Let a claim be there with its volume."""
        spec = {"storageClassName": "fast", "volumeName": volume, "accessModes": ["ReadWriteOnce"]}
        body = {
            "metadata": {"name": claim, "finalizers": [_PROTECTION], **metadata},
            "spec": spec,
            "status": {"phase": "Bound"},
        }
        made = done(self.world.create(core.CLAIM, body, TEAM, SHOP))
        self._volume(volume, claim, made["metadata"]["uid"], data)

    def _volume(self, name: str, claim: str, uid: str, data: str) -> None:
        reference = {"namespace": SHOP, "name": claim, "uid": uid}
        spec = {"claimRef": reference, "persistentVolumeReclaimPolicy": "Delete"}
        self.data[name] = data
        body = {"metadata": {"name": name}, "spec": spec, "status": {"phase": "Bound"}}
        done(self.world.create(core.VOLUME, body, "kube"))

    # Velero

    def claims_in(self, backup: str) -> list[str]:
        """Return the claims of a backup."""
        return sorted(self.saved.get(backup, {}))

    def snapshot(self, row: Document) -> Document:
        """Back up the data of volumes."""
        if not row["spec"]["backupSpec"].get("snapshotMoveData"):
            return {}
        claims = self.world.history.present(core.CLAIM)
        saved = {
            key.name: (self.data[body["spec"]["volumeName"]], deepcopy(body))
            for key, body in claims.items()
            if key.namespace == SHOP and body.get("status", {}).get("phase") == "Bound"
        }
        if self.no_snapshots:
            return {"volumesLeftOut": {"count": len(saved), "claims": sorted(saved)}}
        self.saved[row["metadata"]["name"]] = saved
        return {"dataMoverDataUploads": {"total": len(saved), "completed": len(saved)}}

    async def fill(self, spec: Document, name: str) -> str:
        """Restore claims with their data."""
        if self.line.is_away or spec["backupName"] not in self.saved:
            return "Failed"
        lost, self.lost_download = bool(self.lost_download), max(self.lost_download - 1, 0)
        for claim, (data, old) in self.saved[spec["backupName"]].items():
            if Key(SHOP, claim) in self.world.history.present(core.CLAIM):
                continue
            labels = {**old["metadata"].get("labels", {}), RESTORED_BY: name}
            body = {
                "metadata": {"name": claim, "labels": labels, "finalizers": [_PROTECTION]},
                "spec": {"storageClassName": "fast"},
                "status": {"phase": "Pending"},
            }
            made = self.world.create(core.CLAIM, body, "velero", SHOP)
            await asyncio.sleep(2.0)
            if lost:
                return "PartiallyFailed"
            here = self.world.history.present(core.CLAIM).get(Key(SHOP, claim))
            if here is None or here["metadata"]["uid"] != done(made)["metadata"]["uid"]:
                return "PartiallyFailed"
            self.volumes_made += 1
            volume = f"pv-new-{self.volumes_made}"
            self._volume(volume, claim, here["metadata"]["uid"], data)
            bound = {"spec": {"volumeName": volume}, "status": {"phase": "Bound"}}
            self.world.merge(core.CLAIM, Key(SHOP, claim), bound, "kube")
        return "Completed"

    # Kubernetes

    async def kubernetes(self) -> None:
        """Start and end pods, protect claims, bind volumes and reclaim them, for ever."""
        while True:
            await asyncio.sleep(_STEP)
            self._settle()

    def _settle(self) -> None:
        self._pods()
        for key, claim in list(self.world.history.present(core.CLAIM).items()):
            meta, finalizers = claim["metadata"], claim["metadata"].get("finalizers") or []
            used = any(key.name in _claims(pod) for pod in self.world.history.present(POD).values())
            if meta.get("deletionTimestamp") and _PROTECTION in finalizers and not used:
                left = [each for each in finalizers if each != _PROTECTION]
                self.world.merge(core.CLAIM, key, {"metadata": {"finalizers": left or None}}, "kube")
            elif claim.get("status", {}).get("phase") != "Bound":
                self._bind(key, claim)
        self._reclaim()

    def _bind(self, key: Key, claim: Document) -> None:
        volume = self.world.history.present(core.VOLUME).get(Key("", claim["spec"].get("volumeName", "")))
        if volume is not None and volume["spec"]["claimRef"].get("uid") == claim["metadata"]["uid"]:
            self.world.merge(core.CLAIM, key, {"status": {"phase": "Bound"}}, "kube")
            finalizers = [*(claim["metadata"].get("finalizers") or []), _PROTECTION]
            self.world.merge(core.CLAIM, key, {"metadata": {"finalizers": finalizers}}, "kube")

    def _reclaim(self) -> None:
        uids = {claim["metadata"]["uid"] for claim in self.world.history.present(core.CLAIM).values()} | {"other"}
        for key, volume in list(self.world.history.present(core.VOLUME).items()):
            is_released = volume["spec"]["claimRef"].get("uid") not in uids
            phase = "Released" if is_released else "Bound"
            if volume.get("status", {}).get("phase") != phase:
                self.world.merge(core.VOLUME, key, {"status": {"phase": phase}}, "kube")
            if is_released and volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete":
                self.world.delete(core.VOLUME, key)
                self.data.pop(key.name, None)

    def _pods(self) -> None:
        """Let each workload have as many pods as it wants; a StatefulSet creates its claim if that is missing."""
        wanted: dict[str, tuple[Document, list[str]]] = {}
        for kind in (DEPLOYMENT, STATEFUL_SET):
            for key, row in self.world.history.present(kind).items():
                if key.namespace == SHOP and key.name in ("db", "cache"):
                    wanted |= self._wanted(kind, key, row)
        pods = self.world.history.present(POD)
        for name, (owner, claims) in wanted.items():
            if Key(SHOP, name) not in pods and all(map(self._is_usable, claims)):
                volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
                body = {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": {"volumes": volumes}}
                self.world.create(POD, body, "kube", SHOP)
        for key in list(pods):
            if key.name not in wanted and key.name != "bare":
                self.world.delete(POD, key)
        for kind, name in ((DEPLOYMENT, "db"), (STATEFUL_SET, "cache")):
            if Key(SHOP, name) in self.world.history.present(kind):
                ready = sum(each.name.startswith(f"{name}-") for each in pods)
                self.world.merge(kind, Key(SHOP, name), {"status": {"readyReplicas": ready}}, "kube")

    def _wanted(self, kind: Kind, key: Key, row: Document) -> dict[str, tuple[Document, list[str]]]:
        spec, meta = row["spec"], row["metadata"]
        owner = {"kind": kind.name, "name": key.name, "uid": meta["uid"], "controller": True}
        claims = ["data"]
        if kind == STATEFUL_SET:
            claims = ["store-cache-0"]
            if spec["replicas"] and Key(SHOP, claims[0]) not in self.world.history.present(core.CLAIM):
                empty = {"metadata": {"name": claims[0]}, "spec": {"storageClassName": "fast"}}
                self.world.create(core.CLAIM, empty, "kube", SHOP)
        else:
            replica_set = self.world.history.present(REPLICA_SET)[Key(SHOP, f"{key.name}-1")]["metadata"]
            owner = {"kind": "ReplicaSet", "name": replica_set["name"], "uid": replica_set["uid"], "controller": True}
        return {f"{key.name}-{number}": (owner, claims) for number in range(spec["replicas"])}

    def _is_usable(self, name: str) -> bool:
        claim = self.world.history.present(core.CLAIM).get(Key(SHOP, name))
        return (
            claim is not None
            and claim.get("status", {}).get("phase") == "Bound"
            and not claim["metadata"].get("deletionTimestamp")
        )

    # What is there

    def volume_of(self, claim: str) -> str:
        """Return the volume that a claim is bound to; empty if it has none."""
        found = self.world.history.present(core.CLAIM).get(Key(SHOP, claim))
        return str(found["spec"].get("volumeName", "")) if found and found["status"]["phase"] == "Bound" else ""

    def contents(self) -> dict[str, str]:
        """Return what is in the volume of each claim."""
        return {claim: self.data.get(self.volume_of(claim), "") for claim in OLD}


def _claims(pod: Document) -> Iterator[str]:
    return (each["persistentVolumeClaim"]["claimName"] for each in pod["spec"].get("volumes", ()))


class StorageJudge(Judge):
    """Knows where the old data is, and when it may go."""

    def __init__(self, scene: StorageScene) -> None:
        super().__init__(scene)
        self.scene = scene
        self.excused = False  # somebody else has deleted what there was
        self.deadline: Any = None
        scene.world.history.listeners.append(self._storage_changed)

    def _storage_changed(self, happening: Happening) -> None:
        if happening.kind == ROLLBACK and happening.key == KEY and happening.after is not None:
            status = happening.after.get("status", {})
            self.deadline = status.get("undoUntil") if status.get("phase") == "Completed" else None
        if happening.kind != core.VOLUME or self._is_over() or self.excused:
            return
        name = happening.key.name
        if name == STRANGER and happening.before is not None:
            self.found.lost_volumes.append(f"{name} of another team was changed")
        if name in OLD.values() and happening.before is not None:
            self._old_changed(name, happening)

    def _old_changed(self, name: str, happening: Happening) -> None:
        until = instant(self.deadline) if self.deadline else None
        is_past = until is not None and self.scene.clock() >= until
        if happening.after is None:
            if not is_past:
                self.found.lost_volumes.append(f"{name} is gone while the Rollback is {self.scene.phase}")
            return
        reference = happening.after["spec"].get("claimRef") or {}
        if not reference.get("uid") or reference.get("namespace") != SHOP:
            self.found.lost_volumes.append(f"{name} could be taken by any claim")

    def end(self) -> Judged:
        """Judge the end of a life: which data is there, and what is left of the marks."""
        found, scene = super().end(), self.scene
        if self._is_over() or self.excused:
            return found
        body = scene.world.history.present(ROLLBACK).get(KEY)
        phase = body.get("status", {}).get("phase", "New") if body is not None else "deleted"
        wanted = GOOD_DATA if phase == "Completed" else BAD_DATA
        if phase in ("Completed", "Undone", "Refused") and set(scene.contents().values()) != {wanted}:
            found.lost_volumes.append(f"{scene.contents()} and not {wanted}, while the Rollback is {phase}")
        if phase in ("Undone", "Refused"):
            found.left_behind += list(self._marks())
            for claim, volume in OLD.items():
                if scene.volume_of(claim) != volume:
                    found.lost_volumes.append(f"{claim} has {scene.volume_of(claim)} and not {volume}")
        if phase == "Completed" and scene.spec["volumes"] == "Data":
            self._compare("the namespace before", self.before, scene.state())
        for kind in (DEPLOYMENT, STATEFUL_SET):
            for key, row in scene.world.history.present(kind).items():
                if MARK in (row["metadata"].get("annotations") or {}) and phase in ("Completed", "Undone", "Refused"):
                    found.not_resumed.append(f"{kind.name} {key.name} has its mark, and {row['spec']['replicas']} pods")
        return found

    def _marks(self) -> Iterator[str]:
        for name in OLD.values():
            volume = self.scene.world.history.present(core.VOLUME).get(Key("", name))
            if volume is not None and MARK in (volume["metadata"].get("labels") or {}):
                yield f"{name} is still marked"
            if volume is not None and volume["spec"]["persistentVolumeReclaimPolicy"] != "Delete":
                yield f"{name} has not its former reclaim policy"


# What goes wrong with volumes


def download_lost(scene: RollbackScene) -> None:
    assert isinstance(scene, StorageScene)
    scene.lost_download = 1


def no_snapshots(scene: RollbackScene) -> None:
    assert isinstance(scene, StorageScene)
    scene.no_snapshots = True


def team_scales_database(scene: RollbackScene) -> None:
    scene.judge.touched.add(("Deployment", "db"))
    if Key(SHOP, "db") in scene.world.history.present(DEPLOYMENT):
        scene.world.merge(DEPLOYMENT, Key(SHOP, "db"), {"spec": {"replicas": 5}}, TEAM)


def claim_deleted(scene: RollbackScene) -> None:
    scene.world.delete(core.CLAIM, Key(SHOP, "data"))


def pod_in_the_way(scene: RollbackScene) -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    scene.world.create(POD, {"metadata": {"name": "bare"}, "spec": {"volumes": volumes}}, TEAM, SHOP)
    _later(scene, 200.0, lambda: scene.world.delete(POD, Key(SHOP, "bare")))


def claim_keeps_finalizer(scene: RollbackScene) -> None:
    key = Key(SHOP, "data")
    here = scene.world.history.present(core.CLAIM).get(key)
    if here is not None and not here["metadata"].get("deletionTimestamp"):
        finalizers = [*(here["metadata"].get("finalizers") or []), "example.com/never"]
        scene.world.merge(core.CLAIM, key, {"metadata": {"finalizers": finalizers}}, TEAM)
        _later(scene, 300.0, lambda: _drop_finalizer(scene, key))


def _drop_finalizer(scene: RollbackScene, key: Key) -> None:
    here = scene.world.history.present(core.CLAIM).get(key)
    if here is not None:
        left = [each for each in here["metadata"].get("finalizers") or [] if each != "example.com/never"]
        scene.world.merge(core.CLAIM, key, {"metadata": {"finalizers": left or None}}, TEAM)


def may_not_replace(scene: RollbackScene) -> None:
    scene.forbidden |= {("delete", "persistentvolumeclaims"), ("create", "persistentvolumeclaims")}
    _later(scene, 400.0, scene.forbidden.clear)


def may_not_stop(scene: RollbackScene) -> None:
    scene.forbidden |= {("patch", "deployments.apps"), ("patch", "statefulsets.apps")}
    _later(scene, 400.0, scene.forbidden.clear)


def _later(scene: RollbackScene, seconds: float, do: Callable[[], object]) -> None:
    asyncio.get_running_loop().call_later(seconds, lambda: do() if scene.process is not None else None)


VOLUME_FAULTS = (
    download_lost,
    no_snapshots,
    team_scales_database,
    claim_deleted,
    pod_in_the_way,
    claim_keeps_finalizer,
    may_not_replace,
    may_not_stop,
)
