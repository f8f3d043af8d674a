"""Attacks on Velero's data path that share backups and restores on a real node, each with its own volumes."""

import http.client
import time
from collections.abc import Callable, Generator
from typing import Any

from testbed.node import programs
from testbed.node.csi import CLASS
from testbed.site import NODE_NAME
from tests.redteam.canaries import new_canary, volumes_of
from tests.redteam.cycles import in_cycle
from tests.redteam.data_path import CACHE, OPTED_IN, SNAPSHOTS, WORKLOADS, copied, workload
from tests.redteam.node_world import (
    ALLOWED,
    AS_VELERO,
    VAULT,
    NodeWorld,
    claim,
    claim_spec,
    condition_of,
    from_claim,
    pod,
    pod_spec,
    snapshot_of_victim,
    thing,
)
from tests.redteam.world import CLOSED, HOSTILE, NAB, NAR, VELERO, VICTIM, Json, path, until

Steps = Generator[None, None, list[str]]
RUNS = {"runs": "true"}
"""The label of pods that must run before the backup."""

_PVC = "persistentvolumeclaims"


def _all_run(world: NodeWorld, namespace: str = HOSTILE) -> None:
    """Wait until the pods run that fill volumes, and have filled them."""

    def is_so() -> bool:
        pods = world.admin.items(f"{path('pods', namespace)}?labelSelector=runs=true")
        return all(pod["status"].get("phase") == "Running" for pod in pods)

    until(is_so, 120, f"the pods of namespace {namespace} run")
    time.sleep(1)


def _stored(world: NodeWorld, plural: str, name: str) -> Json:
    return world.admin.get(path(plural, HOSTILE, name)) or {}


def _leaked(world: NodeWorld, name: str) -> list[str]:
    """Return which canaries are where the name of an attack's objects is."""
    return [f"{place} {', '.join(held)}" for place, held in world.held(HOSTILE).items() if name in place]


# Snapshots whose data is moved into the bucket and back


def moved(world: NodeWorld, step: Callable[[], None]) -> None:
    """Back up by snapshots whose data is moved, lose everything, and restore."""
    step()
    _all_run(world)
    name = world.number("moved")
    settings = {"parallelFilesUpload": 1}
    request = world.back_up(name, snapshotMoveData=True, uploaderConfig=settings, csiSnapshotTimeout="5m")
    assert world.made_for("backups", HOSTILE, name), request
    world.clear(HOSTILE)
    world.restore(name, name, uploaderConfig={"parallelFilesDownload": 1, "writeSparseFiles": True})
    assert world.made_for("restores", HOSTILE, name), "it is restored"


def own_data_comes_back(world: NodeWorld) -> list[str]:
    """Move the tenant's own data: Velero's objects, its pods, and the file in the new volume are all seen."""
    text = new_canary("own")
    world.hold(claim("own"))
    world.hold(pod("own", pod_spec({"data": from_claim("own")}, f"echo {text} > /data/file"), labels=RUNS))
    hosts, moves = len(world.hosts()), len(world.moves(HOSTILE))
    moved(world, lambda: None)
    is_seen = len(world.hosts()) >= hosts + 2 and len(world.moves(HOSTILE)) >= moves + 2
    until(lambda: text in world.file_of(HOSTILE, "own", "file"), 60, "the own file is back")
    return ["the own file is back"] if is_seen else []


@in_cycle(moved, own_data_comes_back)
def node_moves_symbolic_links(world: NodeWorld) -> Steps:
    """Fill a volume with links to the folders that Velero's pods and the node have."""
    targets = ["/", "/host_pods", "/credentials", "/credentials/cloud", "/var/lib/kubelet", "/scratch/canary"]
    targets += ["../../../../../..", str(world.canaries.files[f"{VAULT}-csi"]), str(world.canaries.files["kubelet"])]
    script = "\n".join(f"ln -s {target} /data/link-{number}" for number, target in enumerate(targets))
    world.hold(claim("links"))
    world.hold(pod("links", pod_spec({"data": from_claim("links")}, script), labels=RUNS))
    yield
    return _leaked(world, "links")


@in_cycle(moved)
def node_moves_pipes_and_devices(world: NodeWorld) -> Steps:
    """Fill a volume with what is no file: pipes, and nodes of devices as far as the pod may make them."""
    script = "mkfifo /data/pipe; mknod /data/null c 1 3; mknod /data/loop b 7 0; echo own > /data/file"
    world.hold(claim("pipes"))
    world.hold(pod("pipes", pod_spec({"data": from_claim("pipes")}, script), labels=RUNS))
    yield
    return _leaked(world, "pipes")


@in_cycle(moved)
def node_changes_a_volume_while_it_is_moved(world: NodeWorld) -> Steps:
    """Write into a volume all the time, so that what Velero checks and what it reads could differ."""
    script = "(while :; do date > /data/now; mv /data/now /data/then; done) &"
    world.hold(claim("changing"))
    world.hold(pod("changing", pod_spec({"data": from_claim("changing")}, script), labels=RUNS))
    yield
    return _leaked(world, "changing")


@in_cycle(moved)
def node_moves_a_part_of_a_volume(world: NodeWorld) -> Steps:
    """Restore a pod that mounts a part of a volume, where the part is a link."""
    world.hold(claim("part"))
    world.hold(pod("part", pod_spec({"data": from_claim("part")}, "ln -s /var/lib/kubelet /data/sub"), labels=RUNS))
    world.runs("part")
    spec = pod_spec({"data": from_claim("part")}, "cat /data/canary /data/*/canary")
    spec["containers"][0]["volumeMounts"][0]["subPath"] = "sub"
    world.hold(pod("part-reader", spec))
    yield
    return _leaked(world, "part")


@in_cycle(moved)
def node_names_the_upload_of_another(world: NodeWorld) -> Steps:
    """Annotate a claim without snapshots with the name of the victim's DataUpload."""
    uploads = [each["metadata"]["name"] for each in world.velero("datauploads")]
    assert uploads
    notes = {"velero.io/data-upload-name": uploads[0], "velero.io/volume-snapshot-name": VAULT}
    labels = {"velero.io/pvc-namespace-name": f"{VICTIM}.{VAULT}-csi", "velero.io/volume-snapshot-name": VAULT}
    body = claim("uploaded", claim_spec(None), annotations=notes, labels=labels)
    admitted = ["the annotations are admitted"] if world.hold(body) else []
    assert admitted or world.hold(body, **AS_VELERO), "the claim is older than self-service"
    yield
    downloads = [
        f"{each['metadata']['name']} exists"
        for each in world.velero("datadownloads")
        if "uploaded" in str(each["spec"])
    ]
    return admitted + downloads + _leaked(world, "uploaded")


@in_cycle(moved)
def node_selects_the_node_of_velero(world: NodeWorld) -> Steps:
    """Annotate a claim and a pod so that Velero's pods would run on a node of the tenant's choice."""
    notes = {"volume.kubernetes.io/selected-node": "mine", "velero.io/node": "mine"}
    world.hold(claim("selected", annotations=notes))
    spec = pod_spec({"data": from_claim("selected")}, nodeSelector={"kubernetes.io/hostname": NODE_NAME})
    world.hold(pod("selected", spec, labels=RUNS))
    yield
    hosts = [
        each
        for each in world.hosts()
        if "mine" in str(each["spec"].get("nodeSelector")) + str(each["spec"].get("affinity"))
    ]
    return [f"pod {each['metadata']['name']} runs where the tenant likes" for each in hosts]


@in_cycle(moved)
def node_restores_the_settings_of_plugins(world: NodeWorld) -> Steps:
    """Keep ConfigMaps with the labels of Velero's plugins in the own namespace, and restore them."""
    labels = {"velero.io/plugin-config": "", "velero.io/change-storage-class": "RestoreItemAction"}
    world.hold({**thing("v1", "ConfigMap", "storage", labels=labels), "data": {CLASS: "mine"}})
    labels = {"velero.io/resource-usage": "DataUpload", "velero.io/pvc-namespace-name": f"{HOSTILE}.links"}
    world.hold({**thing("v1", "ConfigMap", "result", labels=labels), "data": {"x": "{}"}})
    yield
    found = [each["metadata"]["name"] for each in world.admin.items(path("configmaps", VELERO))]
    classes = {each["spec"].get("storageClassName") for each in world.admin.items(path(_PVC, HOSTILE))}
    return [f"{name} is beside Velero" for name in {"storage", "result"} & set(found)] + (
        ["claims have another class"] if "mine" in classes else []
    )


@in_cycle(moved)
def node_restores_a_folder_of_the_node(world: NodeWorld) -> Steps:
    """Restore a Deployment from before Pod Security whose pods mount a folder of the node."""
    folder = str(programs.folder(world.cluster.site) / "kubelet")
    spec = pod_spec({"node": {"hostPath": {"path": folder}}}, "cat /node/canary")
    body = workload("deployments", "Deployment", "apps/v1", "hosted", {}, spec)
    assert world.hold({**body, "spec": {**body["spec"], "replicas": 1}})
    yield
    pods = [each["metadata"]["name"] for each in world.admin.items(path("pods", HOSTILE))]
    return [f"pod {name} is stored" for name in pods if name.startswith("hosted")]


@in_cycle(moved)
def node_restores_an_init_container(world: NodeWorld) -> Steps:
    """Restore an older pod that Velero gives an init container, which must have nothing of the node."""
    prefix = "init.hook.restore.velero.io"
    notes = {
        f"{prefix}/container-name": "added",
        f"{prefix}/container-image": "busybox:1",
        f"{prefix}/command": '["sh", "-c", "cat /host_pods/*/*/*/*/canary /credentials/cloud"]',
    }
    assert world.hold(pod("added", pod_spec(CACHE), annotations=notes), **AS_VELERO)
    yield
    spec = _stored(world, "pods", "added").get("spec", {})
    mounts = {mount["name"] for each in spec.get("initContainers", []) for mount in each.get("volumeMounts", [])}
    strange = [name for name in mounts if name != "cache" and not name.startswith("kube-api-access")]
    return [f"the init container mounts {name}" for name in strange] + _leaked(world, "added")


@in_cycle(moved)
def node_sets_the_uploader(world: NodeWorld) -> Steps:
    """Set the uploader of files in a backup and a restore that move data; a pod with another volume is in both."""
    world.hold(pod("uploaded-files", pod_spec(CACHE), labels=RUNS))
    yield
    return copied(world)


# Snapshots that stay in the storage


def kept(world: NodeWorld, step: Callable[[], None]) -> None:
    """Back up by snapshots that stay, lose everything, and restore."""
    step()
    _all_run(world)
    name = world.number("kept")
    request = world.back_up(name, csiSnapshotTimeout="1m")
    assert world.made_for("backups", HOSTILE, name), request
    world.clear(HOSTILE)
    world.restore(name, name)
    assert world.made_for("restores", HOSTILE, name), "it is restored"


def unsaved(world: NodeWorld, step: Callable[[], None]) -> None:
    """Back up volumes of which Velero may make no snapshot, lose them, and ask for them; that may be refused."""
    step()
    name = world.number("unsaved")
    request = world.back_up(name, csiSnapshotTimeout="1m")
    assert world.made_for("backups", HOSTILE, name), request
    world.clear(HOSTILE)
    world.restore(name, name)


def own_snapshot_comes_back(world: NodeWorld) -> list[str]:
    """Restore the tenant's own data from a snapshot that stayed: the file in the new volume is seen."""
    text = new_canary("own")
    world.hold(claim("own"))
    world.hold(pod("own", pod_spec({"data": from_claim("own")}, f"echo {text} > /data/file"), labels=RUNS))
    kept(world, lambda: None)
    until(lambda: text in world.file_of(HOSTILE, "own", "file"), 60, "the own file is back")
    return ["the own file is back"]


@in_cycle(kept, own_snapshot_comes_back)
def node_names_the_contents_of_anothers_snapshot(world: NodeWorld) -> Steps:
    """Name the victim's VolumeSnapshotContent in a VolumeSnapshot, and a claim that it would fill."""
    content, handle = snapshot_of_victim(world) or ("", "")
    source = {"volumeSnapshotClassName": CLASS, "source": {"volumeSnapshotContentName": content}}
    assert world.hold(thing(SNAPSHOTS, "VolumeSnapshot", "foreign", source))
    data = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "foreign"}
    world.hold(claim("foreign", claim_spec(dataSource=data)))
    yield
    contents = [
        each["metadata"]["name"]
        for each in world.admin.items(path("volumesnapshotcontents"))
        if each["spec"]["volumeSnapshotRef"].get("namespace") == HOSTILE
        and handle in str(each["spec"]["source"]) + str(each.get("status"))
    ]
    return [f"{name} has the victim's handle" for name in contents] + _leaked(world, "foreign")


def _claim_with(world: NodeWorld, name: str, **spec: Any) -> Steps:  # noqa: ANN401 - JSON
    """Back up and restore a claim that points to something of the victim."""
    world.hold(claim(name, claim_spec(**spec)))
    yield
    return _leaked(world, name)


@in_cycle(kept)
def node_names_the_volume_of_another(world: NodeWorld) -> Steps:
    """Name the victim's volume in a claim, which then stays pending."""
    (name,) = [
        each["metadata"]["name"]
        for each in volumes_of(world.admin, VICTIM)
        if each["spec"]["claimRef"]["name"] == f"{VAULT}-csi"
    ]
    leaked = yield from _claim_with(world, "pinned", volumeName=name)
    held = [set(world.contents(each["metadata"]["name"]).get("persistentvolumes", ())) for each in _backups(world)]
    return leaked + [f"{name} is in the backup" for names in held if name in names]


def _backups(world: NodeWorld) -> list[Json]:
    return [
        each
        for each in world.made_for("backups", HOSTILE)
        if (world.cluster.site.bucket / "backups" / str(each["metadata"]["name"])).exists()
    ]


@in_cycle(kept)
def node_names_the_claim_of_another_as_source(world: NodeWorld) -> Steps:
    """Name the victim's claim as the source of a claim, with its namespace."""
    source = {"apiGroup": "", "kind": "PersistentVolumeClaim", "name": f"{VAULT}-csi", "namespace": VICTIM}
    return (yield from _claim_with(world, "cloned", dataSourceRef=source))


@in_cycle(kept)
def node_names_the_snapshot_of_another_as_source(world: NodeWorld) -> Steps:
    """Name the victim's snapshot as the source of a claim, with its namespace."""
    source = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": VAULT, "namespace": VICTIM}
    return (yield from _claim_with(world, "sourced", dataSourceRef=source))


@in_cycle(kept)
def node_names_the_snapshot_of_another_backup(world: NodeWorld) -> Steps:
    """Label a claim and a VolumeSnapshot as if Velero had made them for the victim's backup."""
    (backup,) = world.made_for("backups", VICTIM)
    labels = {"velero.io/backup-name": backup["metadata"]["name"][:63], "velero.io/volume-snapshot-name": VAULT}
    world.hold(claim("labelled", annotations={"velero.io/volume-snapshot-name": VAULT}, labels=labels))
    source = {"volumeSnapshotClassName": CLASS, "source": {"persistentVolumeClaimName": "labelled"}}
    world.hold(thing(SNAPSHOTS, "VolumeSnapshot", VAULT, source, labels=labels))
    yield
    return _leaked(world, "labelled")


@in_cycle(unsaved)
def node_groups_its_claims(world: NodeWorld) -> Steps:
    """Label a claim as one of a group of volumes, with the victim's names in the label."""
    world.hold(claim("grouped", labels={"velero.io/volume-group": VICTIM}))
    yield
    return _leaked(world, "grouped")


@in_cycle(unsaved)
def node_restores_a_device(world: NodeWorld) -> Steps:
    """Back up a claim of the mode Block, and restore it."""
    world.hold(claim("device", claim_spec(volumeMode="Block")))
    yield
    return _leaked(world, "device")


@in_cycle(kept)
def node_restores_an_ephemeral_volume(world: NodeWorld) -> Steps:
    """Back up a pod with an ephemeral volume and one with projected tokens, and restore them."""
    template = {"spec": claim_spec()}
    token: Json = {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    volumes = {"data": {"ephemeral": {"volumeClaimTemplate": template}}, "token": token}
    world.hold(pod("passing", pod_spec(volumes), labels=RUNS))
    yield
    return _leaked(world, "passing") + copied(world)


@in_cycle(kept)
def node_owns_its_claims(world: NodeWorld) -> Steps:
    """Let a pod own a claim and a claim name a controller, so that Velero would take or leave others."""
    world.hold(pod("owner", pod_spec(CACHE), labels=RUNS))
    uid = _stored(world, "pods", "owner")["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "owner", "uid": uid}
    world.hold(claim("owned", ownerReferences=[owner]))
    yield
    return _leaked(world, "owned")


@in_cycle(unsaved)
def node_keeps_a_claim_that_is_deleted(world: NodeWorld) -> Steps:
    """Back up a claim that is being deleted and stays because of a finalizer."""
    world.hold(claim("ending", finalizers=["x.example.com/hold"]))
    world.hostile.delete(path(_PVC, HOSTILE, "ending"))
    yield
    return _leaked(world, "ending")


@in_cycle(kept)
def node_mounts_the_secret_of_another(world: NodeWorld) -> Steps:
    """Restore a pod that mounts a Secret with the name of the victim's, and Velero's credentials."""
    volumes = {
        "one": {"secret": {"secretName": VAULT, "optional": True}},
        "two": {"secret": {"secretName": "cloud-credentials", "optional": True}},
    }
    world.hold(pod("secrets", pod_spec(volumes, "cat /one/* /two/*"), labels=RUNS))
    yield
    return _leaked(world, "secrets")


# Pods that change between the check and the read


def late(world: NodeWorld, step: Callable[[], None]) -> None:
    """Let a backup pass the check while Velero is stopped, then let pods start, and let Velero read them."""
    step()
    name = world.number("late")
    with world.velero_stopped():
        world.ask(NAB, name, {"backupSpec": {}})
        until(lambda: world.made_for("backups", HOSTILE, name), 60, "Velero has the backup")
        step()
        until(lambda: len(world.admin.items(path("pods", HOSTILE))) > 0, 60, "a pod has started")
        _all_run(world)
    world.finished(NAB, name, HOSTILE, 300)


def _starting(plural: str, kind: str, version: str) -> Callable[[NodeWorld], Steps]:
    """Return the steps of an older workload that makes its pods after the check."""
    starts: dict[str, Json] = {
        "jobs": {"spec": {"suspend": False}},
        "cronjobs": {"spec": {"suspend": False, "schedule": "* * * * *"}},
        "daemonsets": {"spec": {"template": {"spec": {"nodeSelector": None}}}},
    }

    def steps(world: NodeWorld) -> Steps:
        name = f"late-{plural}"
        body = workload(plural, kind, version, name, OPTED_IN)
        labels = body["spec"].get("jobTemplate", body)["spec"]["template"]["metadata"]["labels"]
        labels |= RUNS
        assert world.hold(body, **AS_VELERO), f"{kind} is older than self-service"
        yield
        change = starts.get(plural, {"spec": {"replicas": 1}})
        answer = world.hostile.patch(path(plural, HOSTILE, name), change)
        assert answer.code == http.client.OK, answer.text
        if plural != "cronjobs":  # its next minute may come after the backup
            until(lambda: _pods(world, name), 60, f"pods of {kind} are there")
        yield
        return [f"{each['metadata']['name']} exists" for each in world.copies(HOSTILE) if name in str(each["spec"])]

    steps.__name__ = f"node_starts_older_pods_of_{plural}"
    steps.__doc__ = f"Start the pods of an older {kind} with the annotation after the check of the operator."
    return steps


def _pods(world: NodeWorld, app: str) -> list[Json]:
    return world.admin.items(f"{path('pods', HOSTILE)}?labelSelector=app={app}")


def copies_of_older_pods(world: NodeWorld) -> list[str]:
    """Let an administrator back up the pods of an older Deployment: Velero copies their files."""
    body = workload("deployments", "Deployment", "apps/v1", "older", OPTED_IN)
    world.admin.create(path("deployments", CLOSED), {**body, "spec": {**body["spec"], "replicas": 1}})
    ready = path("deployments", CLOSED, "older")
    until(lambda: (world.admin.get(ready) or {}).get("status", {}).get("readyReplicas"), 60, "its pod runs")
    world.velero_backup(world.number("older"), includedNamespaces=[CLOSED])
    found = [
        text for text, each in zip(copied(world, CLOSED), world.copies(CLOSED), strict=True) if "older" in str(each)
    ]
    world.clear(CLOSED)
    return found


for _row in WORKLOADS:
    in_cycle(late, copies_of_older_pods if _row[0] == "deployments" else None)(_starting(*_row))


@in_cycle(late)
def node_annotates_a_pod_after_the_check(world: NodeWorld) -> Steps:
    """Annotate a running pod after the check, as the tenant and as the only one whom admission lets."""
    world.hold(pod("late", pod_spec(CACHE), labels=RUNS))
    world.runs("late")
    yield
    change = {"metadata": {"annotations": OPTED_IN}}
    target = path("pods", HOSTILE, "late")
    refused = world.hostile.patch(target, change).code == http.client.FORBIDDEN
    answer = world.admin.patch(target, change, **AS_VELERO)
    assert answer.code == http.client.OK, answer.text
    yield
    found = [f"{each['metadata']['name']} exists" for each in world.copies(HOSTILE) if '"late"' in str(each["spec"])]
    return found if refused else [*found, "the tenant may annotate it"]


@in_cycle(late)
def node_replaces_a_claim_after_the_check(world: NodeWorld) -> Steps:
    """Delete a claim after the check, and create one of its name with another source."""
    world.hold(claim("replaced"))
    yield
    world.hostile.delete(path(_PVC, HOSTILE, "replaced"))
    until(lambda: not _stored(world, _PVC, "replaced"), 60, "the claim is deleted")
    data = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": VAULT}
    world.hold(claim("replaced", claim_spec(dataSource=data)))
    yield
    return _leaked(world, "replaced")


# Files, where the policy allows them


def files(world: NodeWorld, step: Callable[[], None]) -> None:
    """Back up pods with their files where that is allowed; then let restores be asked for."""
    notes = {"backup.velero.io/backup-volumes": "data,token,keys,config"}
    world.hold({**thing("v1", "Secret", "keys"), "stringData": {"key": "own"}}, ALLOWED)
    volumes = {
        "data": from_claim("data"),
        "token": {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
        "keys": {"secret": {"secretName": "keys"}},
        "config": {"configMap": {"name": "kube-root-ca.crt"}},
    }
    world.hold(claim("data", claim_spec(None)), ALLOWED)
    script = "test -e /data/file || echo own > /data/file"
    labels = {**RUNS, "app": "store"}
    assert world.hold(pod("store", pod_spec(volumes, script), annotations=notes, labels=labels), ALLOWED)
    cache = {"backup.velero.io/backup-volumes": "cache"}
    assert world.hold(pod("cache", pod_spec(CACHE), annotations=cache, labels={**RUNS, "app": "cache"}), ALLOWED)
    _all_run(world, ALLOWED)
    for name in ("store", "cache"):
        made = world.back_up(_backup_of(world, name), ALLOWED, labelSelector={"matchLabels": {"app": name}})
        assert condition_of(made) == "True", made
    step()


_FILES: dict[str, str] = {}


def _backup_of(world: NodeWorld, name: str) -> str:
    """Return a new name for a backup of files, by which attacks find it."""
    _FILES[name] = world.number(f"files-{name}")
    return _FILES[name]


def _restored_files(world: NodeWorld, name: str, backup: str, **spec: Any) -> list[str]:  # noqa: ANN401 - JSON
    """Ask for a restore of files, and return the copies that Velero made for it."""
    world.restore(name, _FILES[backup], ALLOWED, **spec)
    made = [each["metadata"]["name"] for each in world.made_for("restores", ALLOWED, name)]
    return [
        f"{each['metadata']['name']} writes files"
        for each in world.velero("podvolumerestores")
        if each["metadata"].get("labels", {}).get("velero.io/restore-name") in made
    ]


def files_come_back(world: NodeWorld) -> list[str]:
    """Restore files into a new claim, as the policy allows: the copy is seen, and the file."""
    files(world, lambda: None)
    world.clear(ALLOWED)
    found = _restored_files(world, world.number("fresh"), "store")
    until(lambda: world.file_of(ALLOWED, "data", "file") == "own\n", 60, "the file is back")
    return found


@in_cycle(files, files_come_back)
def node_writes_files_into_a_claim_that_exists(world: NodeWorld) -> Steps:
    """Restore files of a pod that was deleted into its claim, which was not."""
    yield
    world.hostile.delete(path("pods", ALLOWED, "store"), gracePeriodSeconds="0")
    until(lambda: not world.admin.get(path("pods", ALLOWED, "store")), 60, "the pod is deleted")
    return _restored_files(world, world.number("existing"), "store")


@in_cycle(files)
def node_writes_files_into_a_claim_by_a_selector(world: NodeWorld) -> Steps:
    """Select only the pod, so that its claim would not be restored with it."""
    yield
    selector = {"matchLabels": {"app": "store"}}
    return _restored_files(world, world.number("selected"), "store", labelSelector=selector)


@in_cycle(files)
def node_writes_files_into_a_claim_that_is_left_out(world: NodeWorld) -> Steps:
    """Restore pods without their claims."""
    yield
    return [
        *_restored_files(world, world.number("without"), "store", excludedResources=[_PVC]),
        *_restored_files(world, world.number("only"), "store", includedResources=["pods"]),
    ]


@in_cycle(files)
def node_writes_files_into_a_volume_without_a_claim(world: NodeWorld) -> Steps:
    """Restore the files of an emptyDir."""
    yield
    world.hostile.delete(path("pods", ALLOWED, "cache"), gracePeriodSeconds="0")
    until(lambda: not world.admin.get(path("pods", ALLOWED, "cache")), 60, "the pod is deleted")
    return _restored_files(world, world.number("emptied"), "cache")


@in_cycle(files)
def node_writes_files_into_a_claim_that_is_deleted(world: NodeWorld) -> Steps:
    """Restore files into a claim that is being deleted and stays because of a finalizer."""
    yield
    target = path(_PVC, ALLOWED, "data")
    world.hostile.patch(target, {"metadata": {"finalizers": ["x.example.com/hold"]}})
    world.hostile.delete(target)
    return _restored_files(world, world.number("ending"), "store")


@in_cycle(files)
def node_writes_files_after_the_policy_has_changed(world: NodeWorld) -> Steps:
    """Restore a backup with files when the policy no longer allows them."""
    yield
    target = path("selfservicepolicies", name=ALLOWED)
    world.admin.patch(target, {"spec": {"backup": {"fileSystem": "Refused"}}})
    time.sleep(2)
    found = _restored_files(world, world.number("withdrawn"), "store", excludedResources=["secrets"])
    world.admin.patch(target, {"spec": {"backup": {"fileSystem": "Allowed"}}})
    return found


@in_cycle(files)
def node_copies_tokens_and_secrets(world: NodeWorld) -> Steps:
    """Ask for a copy of volumes with tokens, Secrets and ConfigMaps beside that of the claim."""
    yield
    copies = [each for each in world.copies(ALLOWED) if each["kind"] == "PodVolumeBackup"]
    return [
        f"volume {each['spec']['volume']} is copied"
        for each in copies
        if each["spec"]["volume"] not in ("data", "cache")
    ]


@in_cycle(files)
def node_restores_to_another_request(world: NodeWorld) -> Steps:
    """Restore such a backup from the namespace where files are not copied."""
    yield
    name = world.number("carried")
    world.ask(NAR, name, {"restoreSpec": {"backupName": _FILES["store"]}})
    world.decided(NAR, name)
    return [f"{each['metadata']['name']} was made" for each in world.made_for("restores", HOSTILE, name)]
