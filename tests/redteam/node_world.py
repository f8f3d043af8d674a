"""The real node that is attacked: Velero and its node agent as pods, volumes with snapshots, and canaries.

The hostile tenant may edit in a namespace where files are not copied (the default) and in one where they may be.
"""

import http.client
import itertools
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed import Cluster, Options
from testbed.node import cgroups, csi, programs
from testbed.node.images import BUSYBOX
from testbed.site import NODE_NAME
from tests.cluster import tenants
from tests.cluster.history import recorded
from tests.redteam.canaries import Canaries, new_canary, pod_folder, readable, volume_folder, volumes_of
from tests.redteam.world import (
    CLOSED,
    HOSTILE,
    NAB,
    NAR,
    TREASURE,
    VELERO,
    VICTIM,
    Caller,
    Json,
    World,
    body_of,
    empty,
    may_edit,
    namespace,
    path,
    until,
    user,
)

ALLOWED = "allowed"
"""The hostile tenant's namespace whose policy lets Velero copy files."""

VAULT = "vault"
"""The victim's pod and the snapshot of its volume; its claims are vault-csi and vault-files."""

RELIC = "relic"
"""The backup of two volumes that were the hostile tenant's, kept when their claims were deleted."""

GAPPY = "gappy"
"""A resource policy of the administrator that decides about some volumes only."""

AS_VELERO = {"Impersonate_User": f"system:serviceaccount:{VELERO}:velero"}
"""Velero restores for administrators what was there before self-service, and no admission policy looks at it."""

_WIDE = {"stored": 1000, "active": 1000, "restores": {"active": 1000, "stored": 1000, "history": 1000}}
_POLICIES: Mapping[str, Json] = {
    HOSTILE: {"backup": {"allowed": {"resourcePolicies": [GAPPY]}}, "quotas": _WIDE},
    ALLOWED: {"backup": {"fileSystem": "Allowed"}, "quotas": _WIDE},
}
_OPTIONS = Options(velero="velero", node=True, csi=True)
_FILE_COPIES = ("podvolumebackups", "podvolumerestores")
_MADE_BY_WORKLOADS = {"ReplicaSet", "DaemonSet", "Job"}
_COPIES_FILES = {"PodVolumeBackup", "PodVolumeRestore"}
_PODS = "/var/lib/kubelet/pods/"
_OF_VELEROS_HOSTS = {"/var/lib/kubelet/pods", "/var/lib/kubelet/plugins"}
_CLEARED = (
    *("cronjobs", "jobs", "deployments", "statefulsets", "daemonsets", "replicasets", "replicationcontrollers"),
    *("podtemplates", "pods", "persistentvolumeclaims", "volumesnapshots"),
)
_NUMBERS = itertools.count()


def thing(version: str, kind: str, name: str, spec: object = None, **metadata: Any) -> Json:  # noqa: ANN401 - JSON
    """Return an object as it is sent."""
    found: Json = {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}}
    return found if spec is None else {**found, "spec": spec}


def claim_spec(storage_class: str | None = csi.CLASS, **more: Any) -> Json:  # noqa: ANN401 - JSON
    """Return the spec of a claim to a small volume, which the driver makes; None: the default class."""
    chosen = {} if storage_class is None else {"storageClassName": storage_class}
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "8Mi"}}, **chosen, **more}


def claim(name: str, spec: Json | None = None, **metadata: Any) -> Json:  # noqa: ANN401 - JSON
    """Return a claim."""
    return thing("v1", "PersistentVolumeClaim", name, spec or claim_spec(), **metadata)


def pod_spec(volumes: Mapping[str, Json], script: str = "", **more: Any) -> Json:  # noqa: ANN401 - JSON
    """Return the spec of a pod that mounts each volume under its name, runs a script once, and waits."""
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in volumes]
    command = ["sh", "-c", f"{script or ':'}\nexec sleep 36000"]
    container = {"name": "main", "image": BUSYBOX, "command": command, "volumeMounts": mounts}
    named = [{"name": name, **source} for name, source in volumes.items()]
    return {"containers": [container], "volumes": named, "terminationGracePeriodSeconds": 1, **more}


def from_claim(name: str) -> Json:
    """Return a volume of a pod that is a claim."""
    return {"persistentVolumeClaim": {"claimName": name}}


def pod(name: str, spec: Json, **metadata: Any) -> Json:  # noqa: ANN401 - JSON
    """Return a pod."""
    return thing("v1", "Pod", name, spec, **metadata)


@dataclass(frozen=True)
class NodeWorld(World):
    """The cluster with a real node, everybody in it, and the canaries."""

    canaries: Canaries = field(default_factory=Canaries)
    pods_of_velero: list[Json] = field(default_factory=list)  # every state of every pod in its namespace
    breached: dict[str, list[str]] = field(default_factory=dict)  # so far

    # What a tenant does

    def hold(self, body: Json, namespace: str = HOSTILE, **headers: str) -> bool:
        """Create an object as the hostile tenant; False if it is refused."""
        who = self.admin if headers else self.hostile
        answer = who.create(path(f"{body['kind'].lower()}s", namespace), body, **headers)
        return answer.code < http.client.BAD_REQUEST

    def back_up(self, name: str, namespace: str = HOSTILE, **spec: Any) -> Json:  # noqa: ANN401 - JSON
        """Ask for a backup, and return the request when Velero has made it or it was refused."""
        answer = self.ask(NAB, name, {"backupSpec": spec}, namespace)
        return self.finished(NAB, name, namespace, 300) if answer.code < http.client.BAD_REQUEST else {}

    def restore(self, name: str, backup: str, namespace: str = HOSTILE, **spec: Any) -> Json:  # noqa: ANN401 - JSON
        """Ask for a restore, and return the request when Velero has made it or it was refused."""
        answer = self.ask(NAR, name, {"restoreSpec": {"backupName": backup, **spec}}, namespace)
        return self.finished(NAR, name, namespace, 300) if answer.code < http.client.BAD_REQUEST else {}

    def runs(self, name: str, namespace: str = HOSTILE) -> None:
        """Wait until a pod runs: Velero copies files from no other."""
        target = path("pods", namespace, name)
        until(lambda: _phase(self.admin.get(target)) == "Running", 60, f"pod {namespace}/{name} runs")

    # What the administrator does

    def number(self, word: str) -> str:
        """Return a new name."""
        return f"{word}-{next(_NUMBERS)}"

    def velero_backup(self, name: str, **spec: Any) -> Json:  # noqa: ANN401 - JSON
        """Make a Velero Backup as the administrator."""
        return self._velero("backups", name, {"storageLocation": "default", **spec})

    def velero_restore(self, name: str, **spec: Any) -> Json:  # noqa: ANN401 - JSON
        """Make a Velero Restore as the administrator."""
        return self._velero("restores", name, spec)

    def _velero(self, plural: str, name: str, spec: Json) -> Json:
        answer = self.admin.create(path(plural, VELERO), body_of(plural, name, spec))
        assert answer.code == http.client.CREATED, answer.text
        target = path(plural, VELERO, name)
        ended = {"Completed", "PartiallyFailed", "Failed", "FailedValidation"}
        until(lambda: _phase(self.admin.get(target)) in ended, 300, f"Velero ends {plural} {name}")
        return self.admin.get(target) or {}

    def clear(self, *namespaces: str) -> None:
        """Delete what the hostile tenant has in namespaces, after a look at it."""
        for name in namespaces or (HOSTILE, ALLOWED, CLOSED):
            if name != CLOSED:
                self.breached.update(self.held(name))
            for plural in _CLEARED:
                if self.admin.items(path(plural, name)):
                    empty(self.admin, plural, name, grace="1")
            self._await_no_volumes(name)

    def _await_no_volumes(self, namespace: str) -> None:
        until(lambda: not volumes_of(self.admin, namespace), 60, f"the volumes of {namespace} are deleted")

    @contextmanager
    def velero_stopped(self) -> Iterator[None]:
        """Freeze the process of Velero's server in its pod until the block ends."""
        processes = velero_servers(self.cluster)
        assert processes, "Velero's server runs"
        for pid in processes:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in processes:
                os.kill(pid, signal.SIGCONT)

    # What the administrator sees

    def copies(self, namespace: str) -> list[Json]:
        """Return the objects by which Velero copies files from and to the pods of a namespace."""
        return [
            each
            for plural in _FILE_COPIES
            for each in self.velero(plural)
            if each["spec"].get("pod", {}).get("namespace") == namespace
        ]

    def moves(self, namespace: str) -> list[Json]:
        """Return the objects by which Velero moves data of snapshots of a namespace."""
        found = self.velero("datauploads") + self.velero("datadownloads")
        return [each for each in found if each["spec"].get("sourceNamespace") == namespace]

    def held(self, namespace: str) -> dict[str, list[str]]:
        """Return which canaries can be read by whoever may edit in a namespace, and where."""
        names = [f"backups/{each['metadata']['name']}" for each in self.made_for("backups", namespace)]
        names += [f"restores/{each['metadata']['name']}" for each in self.made_for("restores", namespace)]
        archives = [self.cluster.site.bucket / name for name in names]
        return self.canaries.in_texts(readable(self.cluster, self.admin, namespace, archives))

    def file_of(self, namespace: str, claim_name: str, file: str) -> str:
        """Return a file of the volume of a claim, read on the node; empty if there is none."""
        for volume in volumes_of(self.admin, namespace):
            if volume["spec"]["claimRef"]["name"] == claim_name:
                target = volume_folder(self.cluster, volume) / file
                return target.read_text() if target.is_file() and not target.is_symlink() else ""
        return ""

    def hosts(self) -> list[Json]:
        """Return the pods in Velero's namespace that read or write a volume, as they were seen last."""
        found = {state["metadata"]["name"]: state for state in list(self.pods_of_velero)}
        return [state for state in found.values() if not _owner_kinds(state) & _MADE_BY_WORKLOADS]

    def belongings(self) -> dict[str, str]:
        """Return a fingerprint of each object, canary and folder that the hostile tenant must not change."""
        found = super().belongings() | self.canaries.fingerprints()
        for volume in volumes_of(self.admin, VICTIM):
            found[f"volume {volume['metadata']['name']}"] = str(volume["spec"])
        return found

    def breaches(self) -> dict[str, list[str]]:
        """Return what has ever been wrong: objects for Velero, copies of files, pods of Velero, canaries."""
        now = super().breaches()
        for each in self.copies(HOSTILE):
            now[f"{each['kind']} {each['metadata']['name']}"] = [f"copies files of {each['spec']['pod']}"]
        for each in (*self.moves(HOSTILE), *self.moves(ALLOWED)):
            target = each["spec"].get("targetVolume", {}).get("namespace")
            if target not in (None, each["spec"]["sourceNamespace"]):
                now[f"{each['kind']} {each['metadata']['name']}"] = [f"writes into namespace {target}"]
        for each in self.hosts():
            if wrong := _wrong_in_host(each):
                now[f"pod {each['metadata']['name']}"] = wrong
        self.breached.update(now | self.held(HOSTILE) | self.held(ALLOWED))
        return dict(self.breached)

    def policy(self, namespace: str) -> Json:
        """Return the spec of the policy that holds in a namespace."""
        return _POLICIES.get(namespace) or self.default_policy()


def _phase(found: Json | None) -> str:
    return str((found or {}).get("status", {}).get("phase", ""))


def _owner_kinds(found: Json) -> set[str]:
    return {owner["kind"] for owner in found["metadata"].get("ownerReferences", [])}


def _wrong_in_host(found: Json) -> list[str]:
    """Return what a pod that reads or writes a volume must not have: whatever a tenant could have asked for."""
    spec = found["spec"]
    wrong = [f"{key} is set" for key in ("hostNetwork", "hostPID", "hostIPC", "initContainers") if spec.get(key)]
    for key, value in spec.get("nodeSelector", {}).items():
        if not key.startswith("kubernetes.io/") or value not in (NODE_NAME, "linux"):
            wrong.append(f"it selects nodes by {key}={value}")
    paths = {volume.get("hostPath", {}).get("path") for volume in spec.get("volumes", [])} - {None}
    if _owner_kinds(found) & _COPIES_FILES:  # of one pod, for which the copy is allowed or is a breach of its own
        paths = {each for each in paths if not each.startswith(_PODS)}
    wrong += [f"it mounts {each} of the node" for each in sorted(paths - _OF_VELEROS_HOSTS)]
    wrong += [] if spec.get("serviceAccountName") == VELERO else ["its ServiceAccount is another one"]
    return wrong


def velero_servers(cluster: Cluster) -> list[int]:
    """Return the processes of Velero's server on the node, as the machine numbers them."""
    group, found = cgroups.name(cluster.folder), []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            is_here = group in (entry / "cgroup").read_text()
        except OSError:  # no process, or one that has ended
            continue
        if is_here and words[0].endswith(b"velero") and words[1:2] == [b"server"]:
            found.append(int(entry.name))
    return found


# How it is built


@contextmanager
def attacked_node(folder: Path) -> Iterator[NodeWorld]:
    """Build the cluster with everybody in it, and take it down when the block ends."""
    with Cluster.create("redteam-node", _OPTIONS, owned=True) as cluster:
        _namespaces(cluster)
        tenants.install(cluster, resource_policies=GAPPY)
        cluster.kubectl("scale", "deployment/foresail-self-service", f"--namespace={VELERO}", "--replicas=0")
        for name, spec in _POLICIES.items():
            selector = {"matchLabels": {"kubernetes.io/metadata.name": name}}
            cluster.apply(
                thing("foresail.dev/v1alpha1", "SelfServicePolicy", name, {"namespaceSelector": selector, **spec})
            )
        admin = Caller(cluster.server, cluster.site.admin_trust)
        log = folder / "operator.log"
        with (
            tenants.operator(cluster, log) as process,
            recorded(cluster, path("pods", VELERO)) as pods,
        ):
            hostile, victim = user(cluster, "mallory"), user(cluster, "vic")
            world = NodeWorld(cluster, admin, hostile, victim, process, log, victim, process.pid, pods_of_velero=pods)
            _place_canaries(world)
            _furnish(world)
            yield world


def _namespaces(cluster: Cluster) -> None:
    """Create the namespaces; in the hostile tenant's, Pod Security keeps pods from the folders of the node."""
    for name in (HOSTILE, ALLOWED, VICTIM):
        body = namespace(name, opted_in=name != ALLOWED)  # the chart's policy would refuse annotations there
        body["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "baseline"
        cluster.apply(body)
    cluster.apply(namespace(CLOSED, opted_in=False))
    for name in (HOSTILE, ALLOWED, CLOSED):
        cluster.apply(may_edit(name, "mallory"), *_may_snapshot(name, "mallory"))
    cluster.apply(may_edit(VICTIM, "vic"))
    some = "{version: v1, volumePolicies: [{conditions: {storageClass: [none]}, action: {type: skip}}]}"
    cluster.apply({**thing("v1", "ConfigMap", GAPPY, namespace=VELERO), "data": {"policy.yaml": some}})


def _may_snapshot(name: str, who: str) -> tuple[Json, Json]:
    """Return the Role and RoleBinding for VolumeSnapshots, which `edit` does not have and many clusters add."""
    group = "rbac.authorization.k8s.io"
    rule = {"apiGroups": ["snapshot.storage.k8s.io"], "resources": ["volumesnapshots"], "verbs": ["*"]}
    role = {**thing(f"{group}/v1", "Role", "snapshots", namespace=name), "rules": [rule]}
    bound = {
        **thing(f"{group}/v1", "RoleBinding", "snapshots", namespace=name),
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "snapshots"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": who}],
    }
    return role, bound


def _place_canaries(world: NodeWorld) -> None:
    """Put canaries into the victim's volumes, Velero's pods and credentials, and the folders of the node."""
    cluster, canaries = world.cluster, world.canaries
    secret = new_canary("secret")
    claims = {"csi": claim(f"{VAULT}-csi"), "files": claim(f"{VAULT}-files", claim_spec(None))}
    world.admin.create(path("secrets", VICTIM), {**thing("v1", "Secret", VAULT), "stringData": {"canary": secret}})
    for body in claims.values():
        world.victim.create(path("persistentvolumeclaims", VICTIM), body)
    volumes = {name: from_claim(body["metadata"]["name"]) for name, body in claims.items()}
    volumes |= {"scratch": {"emptyDir": {}}, "secret": {"secret": {"secretName": VAULT}}}
    world.victim.create(path("pods", VICTIM), pod(VAULT, pod_spec(volumes)))
    world.runs(VAULT, VICTIM)
    canaries.texts["secret"] = secret
    for volume in volumes_of(world.admin, VICTIM):
        name, folder = volume["spec"]["claimRef"]["name"], volume_folder(cluster, volume)
        canaries.place(name, folder / "canary")
        canaries.folders[name] = folder
    vault = world.admin.get(path("pods", VICTIM, VAULT)) or {}
    canaries.place("scratch", pod_folder(cluster, vault) / "kubernetes.io~empty-dir" / "scratch" / "canary")
    for server in world.admin.items(f"{path('pods', VELERO)}?labelSelector=deploy=velero"):
        canaries.place("velero", pod_folder(cluster, server) / "kubernetes.io~empty-dir" / "scratch" / "canary")
    canaries.place("kubelet", programs.folder(cluster.site) / "kubelet" / "canary")
    keys = (cluster.site.folder / "s3" / "credentials").read_text()
    canaries.texts["credentials"] = keys.split("aws_secret_access_key=")[1].strip()
    assert {f"{VAULT}-csi", f"{VAULT}-files", "velero"} <= canaries.files.keys()


def _furnish(world: NodeWorld) -> None:
    """Make the backups and snapshots that attacks are about."""
    target = path(NAB, HOSTILE)
    until(lambda: world.hostile.get(target) is not None, 120, "the built-in role edit has our rules")
    canary = body_of(NAB, "canary", {"backupSpec": {}}, labels={"foresail.dev/canary": "x"})
    until(
        lambda: world.hostile.create(f"{target}?dryRun=All", canary).code >= 400, 60, "admission policies are in force"
    )
    world.victim.create(path(NAB, VICTIM), body_of(NAB, TREASURE, {"backupSpec": {"snapshotMoveData": True}}))
    assert condition_of(world.finished(NAB, TREASURE, VICTIM, 300)) == "True", "the victim has a backup"
    source = {"volumeSnapshotClassName": csi.CLASS, "source": {"persistentVolumeClaimName": f"{VAULT}-csi"}}
    world.admin.create(  # after the backup: this driver knows only the last snapshot of a volume
        path("volumesnapshots", VICTIM), thing("snapshot.storage.k8s.io/v1", "VolumeSnapshot", VAULT, source)
    )
    until(lambda: snapshot_of_victim(world), 60, "the victim has a snapshot")
    _keep_relics(world)


def condition_of(request: Json) -> str:
    """Return whether a request has succeeded."""
    return tenants.condition(request.get("status", {}), "Succeeded")[0]


def snapshot_of_victim(world: NodeWorld) -> tuple[str, str] | None:
    """Return the VolumeSnapshotContent of the victim's snapshot and its handle; None until it is there."""
    found = world.admin.get(path("volumesnapshots", VICTIM, VAULT)) or {}
    name = found.get("status", {}).get("boundVolumeSnapshotContentName", "")
    content = world.admin.get(path("volumesnapshotcontents", name=name)) if name else None
    handle = (content or {}).get("status", {}).get("snapshotHandle", "")
    return (name, handle) if handle else None


def give_back(world: NodeWorld, namespace: str) -> None:
    """Delete claims and their volumes of a namespace, whose data stays."""
    volumes = volumes_of(world.admin, namespace)
    empty(world.admin, "persistentvolumeclaims", namespace)
    for volume in volumes:
        world.admin.delete(path("persistentvolumes", name=volume["metadata"]["name"]))
    until(lambda: not volumes_of(world.admin, namespace), 60, f"the volumes are no longer those of {namespace}")


def _keep_relics(world: NodeWorld) -> None:
    """Back up two volumes of the hostile tenant that stay; then delete their claims, and give them to somebody else."""
    folder = programs.folder(world.cluster.site) / RELIC
    folder.mkdir()
    claim_ref = {"namespace": HOSTILE, "name": f"{RELIC}-path"}
    volume = {
        "capacity": {"storage": "8Mi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "hostPath": {"path": str(folder)},
        "claimRef": claim_ref,
    }
    world.admin.create(path("persistentvolumes"), thing("v1", "PersistentVolume", f"{RELIC}-path", volume))
    world.hold(claim(f"{RELIC}-path", claim_spec("", volumeName=f"{RELIC}-path")))
    world.hold(claim(f"{RELIC}-csi"))
    until(lambda: len(volumes_of(world.admin, HOSTILE)) == 2, 60, "both volumes are there")
    volumes = {each["spec"]["claimRef"]["name"]: each for each in volumes_of(world.admin, HOSTILE)}
    kept = volumes[f"{RELIC}-csi"]["metadata"]["name"]
    world.admin.patch(path("persistentvolumes", name=kept), {"spec": {"persistentVolumeReclaimPolicy": "Retain"}})
    claims = path("persistentvolumeclaims", HOSTILE)
    until(lambda: {_phase(each) for each in world.admin.items(claims)} == {"Bound"}, 60, "both claims are bound")
    assert condition_of(world.back_up(RELIC, snapshotVolumes=False)) == "True"
    give_back(world, HOSTILE)
    for name, each in volumes.items():
        world.canaries.place(name, volume_folder(world.cluster, each) / "canary")
        world.canaries.folders[name] = volume_folder(world.cluster, each)
