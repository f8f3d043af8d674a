"""Attacks on Velero's data path on a real node that need no backup of their own: most are refused at once.

In the hostile tenant's namespace files are not copied. Whatever comes of an attack, the canaries are looked at.
"""

import http.client
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from testbed.node import programs
from testbed.node.csi import CLASS, DRIVER
from testbed.site import NODE_NAME
from tests.redteam.canaries import volumes_of
from tests.redteam.cycles import OnNode, alone
from tests.redteam.node_world import (
    ALLOWED,
    AS_VELERO,
    GAPPY,
    RELIC,
    VAULT,
    NodeWorld,
    claim,
    claim_spec,
    condition_of,
    from_claim,
    give_back,
    pod,
    pod_spec,
    snapshot_of_victim,
    thing,
)
from tests.redteam.world import (
    CLOSED,
    HOSTILE,
    NAB,
    NADR,
    NAR,
    NAS,
    TREASURE,
    VELERO,
    VICTIM,
    Json,
    body_of,
    path,
    reason,
    until,
)

OPTED_IN = {"backup.velero.io/backup-volumes": "cache"}
LEGACY = {"snapshot.velero.io/cache": "0123456789abcdef"}
HANDLES = {
    "velero.io/csi-volumesnapshot-handle": "",  # the victim's
    "velero.io/csi-driver-name": DRIVER,
    "velero.io/csi-vsc-deletion-policy": "Delete",
}
SNAPSHOTS = "snapshot.storage.k8s.io/v1"
CACHE: Mapping[str, Json] = {"cache": {"emptyDir": {}}}


def generated(name: str, tries: str, act: OnNode, control: OnNode | None = None) -> None:
    """Add an attack that differs from others in a value only."""
    act.__name__, act.__doc__ = name, tries
    alone(control)(act)


def copied(world: NodeWorld, namespace: str = HOSTILE) -> list[str]:
    """Return what shows that Velero copied files from or to the pods of a namespace, or tried to."""
    return [f"{each['kind']} {each['metadata']['name']} exists" for each in world.copies(namespace)]


def _is_admitted(world: NodeWorld, target: str, body: Json) -> list[str]:
    """Create an object as the hostile tenant, without storing it; return that it is admitted."""
    answer = world.hostile.create(f"{target}?dryRun=All", body)
    is_refusal = answer.code == http.client.FORBIDDEN
    assert is_refusal or answer.code == http.client.CREATED, answer.text
    return [] if is_refusal else [f"{body['kind']} is admitted"]


def as_administrator(act: OnNode) -> OnNode:
    """Return the same act with an administrator's credentials in a namespace without a policy."""

    return lambda world: act(replace(world, hostile=world.admin, home=CLOSED))


# Copies of files: the fields of a spec


def administrators_copy(world: NodeWorld) -> list[str]:
    """Let an administrator back up a pod that asks for a copy of its files, which Velero makes."""
    world.admin.create(path("pods", CLOSED), pod("copied", pod_spec(CACHE), annotations=OPTED_IN))
    world.runs("copied", CLOSED)
    world.velero_backup(world.number("copy"), includedNamespaces=[CLOSED])
    found = copied(world, CLOSED)
    world.clear(CLOSED)
    return found


def _ask_for_files(field: str) -> OnNode:
    def act(world: NodeWorld) -> list[str]:
        world.hold(pod("open", pod_spec(CACHE)))
        world.runs("open")
        spec: Json = {field: True}
        world.back_up(field.lower(), **spec)
        found = copied(world)
        world.clear(HOSTILE)
        return found

    return act


generated(
    "node_copies_files_by_the_spec",
    "Ask for a copy of the files of all volumes in the spec.",
    _ask_for_files("defaultVolumesToFsBackup"),
    administrators_copy,
)
generated(
    "node_copies_files_by_the_old_field",
    "Ask for a copy of files by the name that the field had in old releases.",
    _ask_for_files("defaultVolumesToRestic"),
)


@alone()
def node_copies_files_under_a_generated_name(world: NodeWorld) -> list[str]:
    """Ask for a copy of files in a request whose name the API server makes up."""
    body = body_of(NAB, "", {"backupSpec": {"defaultVolumesToFsBackup": True}}, generateName="made-up-")
    answer = world.hostile.create(path(NAB, HOSTILE), body)
    if answer.code < http.client.BAD_REQUEST:
        world.finished(NAB, answer.json()["metadata"]["name"])
    return copied(world)


@alone()
def node_copies_files_by_a_spec_that_changes(world: NodeWorld) -> list[str]:
    """Let a backup be refused for another reason, then correct it and ask for a copy of files instead."""
    world.hold(pod("open", pod_spec(CACHE)))
    world.runs("open")
    world.ask(NAB, "turned", {"backupSpec": {"includedNamespaces": [VICTIM]}})
    world.decided(NAB, "turned")
    change = {"spec": {"backupSpec": {"includedNamespaces": None, "defaultVolumesToFsBackup": True}}}
    world.hostile.patch(path(NAB, HOSTILE, "turned"), change)
    world.finished(NAB, "turned")
    found = copied(world)
    world.clear(HOSTILE)
    return found


@alone()
def node_copies_files_by_a_schedule(world: NodeWorld) -> list[str]:
    """Ask for a copy of files in the template of a schedule."""
    spec = {"schedule": "* * * * *", "template": {"backupSpec": {"defaultVolumesToFsBackup": True}}}
    answer = world.ask(NAS, "copying", spec)
    found = world.decided(NAS, "copying") if answer.code < http.client.BAD_REQUEST else {}
    world.hostile.delete(path(NAS, HOSTILE, "copying"))
    conditions = found.get("status", {}).get("conditions", [])
    accepted = [each for each in conditions if each["type"] == "Accepted" and each["status"] == "True"]
    return ["the schedule is accepted"] if accepted else []


def _with_policy(name: str, namespace: str) -> OnNode:
    def act(world: NodeWorld) -> list[str]:
        rule = {"policy.yaml": "{version: v1, volumePolicies: [{conditions: {}, action: {type: fs-backup}}]}"}
        body = {**thing("v1", "ConfigMap", name), "data": rule}
        world.hostile.create(path("configmaps", namespace), body)
        world.hostile.patch(path("configmaps", namespace, name), {"data": rule})
        request = world.back_up(
            world.number("policy"),
            resourcePolicy={"kind": "configmap", "name": name},
            includedResources=["configmaps", "pods"],
        )
        kept = world.admin.get(path("configmaps", VELERO, name)) or {}
        world.hostile.delete(path("configmaps", namespace, name))
        found = ["the ConfigMap in Velero's namespace was written"] if "fs-backup" in str(kept) else []
        found += copied(world)
        is_used = condition_of(request) == "True" and name != "foresail-snapshot-volumes"
        return [*found, "a backup uses it"] if is_used else found

    return act


for _title, _name, _namespace in (
    ("of_the_own_namespace", "mine", HOSTILE),
    ("put_beside_velero", "mine", VELERO),
    ("in_place_of_the_operators", "foresail-snapshot-volumes", VELERO),
    ("that_leaves_volumes_undecided", GAPPY, HOSTILE),
):
    generated(
        f"node_copies_files_by_a_volume_policy_{_title}",
        "Name a volume policy by which Velero would copy files, and write it where that is possible.",
        _with_policy(_name, _namespace),
    )


@alone()
def node_moves_data_by_another_mover(world: NodeWorld) -> list[str]:
    """Name another data mover, whose pods would read the volumes."""
    request = world.back_up("mover", datamover="mine", snapshotMoveData=True)
    return ["a backup with it is made"] if condition_of(request) == "True" else []


# Copies of files: annotations of pods and templates


def _annotated(plural: str, kind: str, version: str) -> OnNode:
    def act(world: NodeWorld) -> list[str]:
        body = workload(plural, kind, version, f"templated-{plural}", OPTED_IN)
        target = path(plural, world.home)
        world.hostile.create(target, body)
        stored = world.admin.get(f"{target}/templated-{plural}")
        world.admin.delete(f"{target}/templated-{plural}", propagationPolicy="Background")
        return ["the annotation is stored"] if next(iter(OPTED_IN)) in str(stored) else []

    return act


WORKLOADS = (
    ("deployments", "Deployment", "apps/v1"),
    ("statefulsets", "StatefulSet", "apps/v1"),
    ("daemonsets", "DaemonSet", "apps/v1"),
    ("replicasets", "ReplicaSet", "apps/v1"),
    ("jobs", "Job", "batch/v1"),
    ("cronjobs", "CronJob", "batch/v1"),
    ("replicationcontrollers", "ReplicationController", "v1"),
)


def workload(
    plural: str, kind: str, version: str, name: str, notes: Mapping[str, str], spec: Json | None = None
) -> Json:
    """Return an object that makes no pods yet, from a template with these annotations."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels, "annotations": dict(notes)}, "spec": spec or pod_spec(CACHE)}
    once = {"template": {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}, "suspend": True}
    specs: dict[str, Json] = {
        "jobs": once,
        "cronjobs": {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": {**once, "suspend": False}}},
        "replicationcontrollers": {"replicas": 0, "selector": labels, "template": template},
        "daemonsets": {
            "selector": {"matchLabels": labels},
            "template": {**template, "spec": {**template["spec"], "nodeSelector": {"no": "node"}}},
        },
    }
    plain = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return thing(version, kind, name, specs.get(plural, plain))


for _row in WORKLOADS:
    _act = _annotated(*_row)
    generated(
        f"node_copies_files_by_the_template_of_{_row[0]}",
        f"Annotate the pods of a {_row[1]} by its template, so that Velero copies their files.",
        _act,
        as_administrator(_act),
    )


@alone()
def node_copies_files_by_an_annotation(world: NodeWorld) -> list[str]:
    """Annotate a pod when it is created, and later by three sorts of patch; then back it up."""
    world.hold(pod("noted", pod_spec(CACHE), annotations=OPTED_IN))
    world.hold(pod("noted", pod_spec(CACHE)))
    target = path("pods", HOSTILE, "noted")
    world.hostile.patch(target, {"metadata": {"annotations": OPTED_IN}})
    world.hostile.patch(target, [{"op": "add", "path": "/metadata/annotations", "value": OPTED_IN}], "json")
    world.hostile.patch(f"{target}?fieldManager=velero&force=true", pod("noted", {}, annotations=OPTED_IN), "apply")
    stored = world.admin.get(target)
    world.clear(HOSTILE)
    return ["the annotation is stored"] if next(iter(OPTED_IN)) in str(stored) else []


@alone()
def node_copies_files_by_an_annotation_through_a_subresource(world: NodeWorld) -> list[str]:
    """Annotate a pod through its status, its containers, its resources and its binding."""
    world.hold(pod("sub", pod_spec(CACHE, schedulerName="nobody")))
    target = path("pods", HOSTILE, "sub")
    change = {"metadata": {"annotations": OPTED_IN}}
    for sub in ("status", "ephemeralcontainers", "resize"):
        world.hostile.patch(f"{target}/{sub}", change)
    binding = {**thing("v1", "Binding", "sub", annotations=OPTED_IN), "target": {"kind": "Node", "name": NODE_NAME}}
    world.hostile.create(f"{target}/binding", binding)
    stored = world.admin.get(target)
    world.clear(HOSTILE)
    return ["the annotation is stored"] if next(iter(OPTED_IN)) in str(stored) else []


def _older_pod(name: str, notes: Mapping[str, str]) -> OnNode:
    def act(world: NodeWorld) -> list[str]:
        assert world.hold(pod(name, pod_spec(CACHE), annotations=dict(notes)), **AS_VELERO), "it is there"
        world.runs(name)
        request = world.back_up(name)
        found = copied(world)
        world.clear(HOSTILE)
        if condition_of(request) == "True":
            world.restore(name, name)
            found += copied(world)
            world.clear(HOSTILE)
        return found

    return act


generated(
    "node_copies_files_of_an_older_pod",
    "Back up a pod that got its annotation before self-service, and restore it.",
    _older_pod("older", OPTED_IN),
    administrators_copy,
)
generated(
    "node_writes_files_by_a_legacy_annotation",
    "Back up and restore a pod with the annotation by which old releases of Velero wrote files.",
    _older_pod("legacy", LEGACY),
)


# Velero's own objects


def _copy_spec(world: NodeWorld, plural: str) -> Json:
    """Return the spec of an object of Velero's that reads or writes a volume of the victim."""
    vault = world.admin.get(path("pods", VICTIM, VAULT)) or {}
    meta = vault["metadata"]
    of_pod = {"kind": "Pod", "namespace": VICTIM, "name": VAULT, "uid": meta["uid"]}
    repository = {"backupStorageLocation": "default", "repoIdentifier": "x", "uploaderType": "kopia"}
    files = {"pod": of_pod, "volume": "scratch", **repository}
    moved = {"backupStorageLocation": "default", "operationTimeout": "10m", "sourceNamespace": VICTIM, "cancel": True}
    csi = {"volumeSnapshot": VAULT, "storageClass": CLASS, "snapshotClass": CLASS}
    target = {"pv": "", "pvc": "own", "namespace": HOSTILE}
    specs: dict[str, Json] = {
        "podvolumebackups": {**files, "node": "nowhere"},
        "podvolumerestores": {**files, "snapshotID": "x", "sourceNamespace": VICTIM},
        "datauploads": {**moved, "csiSnapshot": csi, "snapshotType": "CSI", "sourcePVC": f"{VAULT}-csi"},
        "datadownloads": {**moved, "snapshotID": "x", "targetVolume": target},
        "backuprepositories": {
            "backupStorageLocation": "default",
            "maintenanceFrequency": "1h",
            "repositoryType": "kopia",
            "resticIdentifier": "",
            "volumeNamespace": VICTIM,
        },
    }
    return specs[plural]


def _direct(plural: str, kind: str, version: str) -> OnNode:
    def act(world: NodeWorld) -> list[str]:
        body = thing(version, kind, "forged", _copy_spec(world, plural))
        return [text for namespace in (VELERO, HOSTILE) for text in _is_admitted(world, path(plural, namespace), body)]

    return act


for _row in (
    ("podvolumebackups", "PodVolumeBackup", "velero.io/v1"),
    ("podvolumerestores", "PodVolumeRestore", "velero.io/v1"),
    ("datauploads", "DataUpload", "velero.io/v2alpha1"),
    ("datadownloads", "DataDownload", "velero.io/v2alpha1"),
    ("backuprepositories", "BackupRepository", "velero.io/v1"),
):
    _act = _direct(*_row)
    generated(
        f"node_creates_{_row[0]}",
        f"Create a {_row[1]} for a volume of the victim, beside Velero and in the own namespace.",
        _act,
        as_administrator(_act),
    )


def _settings(name: str, labels: Mapping[str, str], data: Mapping[str, str]) -> OnNode:
    def act(world: NodeWorld) -> list[str]:
        body = {**thing("v1", "ConfigMap", name, labels=dict(labels)), "data": dict(data)}
        return _is_admitted(world, path("configmaps", VELERO), body)

    return act


for _name, _labels, _data in (
    (
        "change-storage-class",
        {"velero.io/plugin-config": "", "velero.io/change-storage-class": "RestoreItemAction"},
        {CLASS: "mine"},
    ),
    (
        "fs-restore-action-config",
        {"velero.io/plugin-config": "", "velero.io/pod-volume-restore": "RestoreItemAction"},
        {"image": "mine"},
    ),
    ("node-agent-config", {}, {"config.json": '{"loadAffinity": [{"nodeSelector": {"matchLabels": {"mine": "x"}}}]}'}),
):
    _act = _settings(_name, _labels, _data)
    generated(
        f"node_writes_the_settings_{_name.replace('-', '_')}",
        "Write a ConfigMap with the settings of Velero's plugins or node agent.",
        _act,
        as_administrator(_act),
    )


# Volumes and snapshots of others


def _of_cluster(world: NodeWorld, plural: str) -> Json:
    content, handle = snapshot_of_victim(world) or ("", "")
    victims = next(
        each for each in volumes_of(world.admin, VICTIM) if each["spec"]["claimRef"]["name"] == f"{VAULT}-csi"
    )
    ref = {"apiVersion": SNAPSHOTS, "kind": "VolumeSnapshot", "namespace": HOSTILE, "name": "stolen"}
    volume = {
        "capacity": {"storage": "8Mi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "claimRef": {"namespace": HOSTILE, "name": "stolen"},
    }
    root = str(programs.folder(world.cluster.site) / "kubelet")
    assert content
    bodies = {
        "volumesnapshotcontents": thing(
            SNAPSHOTS,
            "VolumeSnapshotContent",
            "stolen",
            {
                "deletionPolicy": "Retain",
                "driver": DRIVER,
                "source": {"snapshotHandle": handle},
                "volumeSnapshotRef": ref,
            },
        ),
        "volumesnapshotclasses": {
            **thing(SNAPSHOTS, "VolumeSnapshotClass", "stolen", labels={"velero.io/csi-volumesnapshot-class": "true"}),
            "driver": DRIVER,
            "deletionPolicy": "Retain",
        },
        "storageclasses": {**thing("storage.k8s.io/v1", "StorageClass", "stolen"), "provisioner": DRIVER},
        "persistentvolumes by handle": thing(
            "v1", "PersistentVolume", "stolen", {**volume, "csi": victims["spec"]["csi"]}
        ),
        "persistentvolumes by path": thing("v1", "PersistentVolume", "stolen", {**volume, "hostPath": {"path": root}}),
    }
    return bodies[plural]


def _cluster_scoped(plural: str) -> OnNode:
    def act(world: NodeWorld) -> list[str]:
        return _is_admitted(world, path(plural.partition(" ")[0]), _of_cluster(world, plural))

    return act


for _plural in (
    "volumesnapshotcontents",
    "volumesnapshotclasses",
    "storageclasses",
    "persistentvolumes by handle",
    "persistentvolumes by path",
):
    _act = _cluster_scoped(_plural)
    generated(
        f"node_creates_{_plural.replace(' ', '_')}",
        "Create an object without a namespace that leads to a volume of the victim.",
        _act,
        as_administrator(_act),
    )


def administrators_handle(world: NodeWorld) -> list[str]:
    """Let an administrator use the handle of the victim's snapshot: the canary is in the new volume."""
    body = _of_cluster(world, "volumesnapshotcontents")
    body["spec"]["volumeSnapshotRef"]["namespace"] = CLOSED
    world.admin.create(path("volumesnapshotcontents"), body)
    source = {"volumeSnapshotClassName": CLASS, "source": {"volumeSnapshotContentName": "stolen"}}
    world.admin.create(path("volumesnapshots", CLOSED), thing(SNAPSHOTS, "VolumeSnapshot", "stolen", source))
    data = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "stolen"}
    world.admin.create(path("persistentvolumeclaims", CLOSED), claim("stolen", claim_spec(dataSource=data)))
    until(lambda: world.held(CLOSED), 60, "the data is there")
    found = [f"{place} {', '.join(names)}" for place, names in world.held(CLOSED).items()]
    world.clear(CLOSED)
    world.admin.delete(path("volumesnapshotcontents", name="stolen"))
    return found


def _handles(world: NodeWorld) -> dict[str, str]:
    _, handle = snapshot_of_victim(world) or ("", "")
    assert handle
    return HANDLES | {"velero.io/csi-volumesnapshot-handle": handle}


def _is_stored(world: NodeWorld, plural: str, seconds: float = 0) -> list[str]:
    """Return which objects have the handle, now or after the time that a controller needs."""
    deadline = time.monotonic() + seconds
    while True:
        stored = world.admin.items(path(plural, HOSTILE))
        found = [
            each["metadata"]["name"] for each in stored if set(HANDLES) & set(each["metadata"].get("annotations", {}))
        ]
        if found or time.monotonic() > deadline:
            return [f"{plural} {name} has the handle" for name in found]
        time.sleep(0.5)


@alone(administrators_handle)
def node_annotates_a_claim_with_a_handle(world: NodeWorld) -> list[str]:
    """Annotate a claim with the handle of the victim's snapshot, at its creation and later."""
    world.hold(claim("handled", annotations=_handles(world)))
    world.hold(claim("handled"))
    change = {"metadata": {"annotations": _handles(world)}}
    world.hostile.patch(path("persistentvolumeclaims", HOSTILE, "handled"), change)
    found = _is_stored(world, "persistentvolumeclaims")
    world.clear(HOSTILE)
    return found


@alone()
def node_annotates_a_snapshot_with_a_handle(world: NodeWorld) -> list[str]:
    """Annotate a VolumeSnapshot with the handle of the victim's snapshot, at its creation and later."""
    source = {"volumeSnapshotClassName": CLASS, "source": {"persistentVolumeClaimName": "none"}}
    world.hold(thing(SNAPSHOTS, "VolumeSnapshot", "handled", source, annotations=_handles(world)))
    world.hold(thing(SNAPSHOTS, "VolumeSnapshot", "handled", source))
    change = {"metadata": {"annotations": _handles(world)}}
    world.hostile.patch(path("volumesnapshots", HOSTILE, "handled"), change)
    found = _is_stored(world, "volumesnapshots")
    world.clear(HOSTILE)
    return found


@alone()
def node_annotates_the_claim_of_an_ephemeral_volume(world: NodeWorld) -> list[str]:
    """Put the handle into the template of an ephemeral volume, whose claim a controller creates."""
    template = {"metadata": {"annotations": _handles(world)}, "spec": claim_spec()}
    world.hold(pod("ephemeral", pod_spec({"data": {"ephemeral": {"volumeClaimTemplate": template}}})))
    found = _is_stored(world, "persistentvolumeclaims", 5)
    world.clear(HOSTILE)
    return found


@alone()
def node_annotates_the_claims_of_a_stateful_set(world: NodeWorld) -> list[str]:
    """Put the handle into the claim templates of a StatefulSet, whose claims a controller creates."""
    body = workload("statefulsets", "StatefulSet", "apps/v1", "claiming", {})
    body["spec"] |= {"replicas": 1, "volumeClaimTemplates": [claim("cache", annotations=_handles(world))]}
    body["spec"]["template"]["spec"]["volumes"] = []
    world.hold(body)
    found = _is_stored(world, "persistentvolumeclaims", 5)
    world.clear(HOSTILE)
    return found


@alone()
def node_chooses_a_snapshot_class(world: NodeWorld) -> list[str]:
    """Name a VolumeSnapshotClass in the annotations of a claim, of the namespace and of the request."""
    key = "velero.io/csi-volumesnapshot-class"
    world.hold(claim("classed", annotations={key: "mine"}))
    world.hostile.patch(path("namespaces", name=HOSTILE), {"metadata": {"annotations": {key: "mine"}}})
    notes = {f"{key}_{DRIVER}": "mine", key: "mine"}
    world.ask(NAB, "classed", {"backupSpec": {"includedResources": ["configmaps"]}}, annotations=notes)
    world.finished(NAB, "classed")
    stored = [
        world.admin.get(path("persistentvolumeclaims", HOSTILE, "classed")),
        world.admin.get(path("namespaces", name=HOSTILE)),
        *world.made_for("backups", HOSTILE, "classed"),
    ]
    world.clear(HOSTILE)
    return [f"{each['kind']} has it" for each in stored if each and key in str(each["metadata"].get("annotations"))]


def _keeps_relics(restore: Mapping[str, Any]) -> OnNode:
    def act(world: NodeWorld) -> list[str]:
        name = world.number(RELIC)
        request = world.restore(name, RELIC, **restore)
        found = [f"volume {each['metadata']['name']} is back" for each in volumes_of(world.admin, HOSTILE)]
        found += [f"{place} {', '.join(names)}" for place, names in world.held(HOSTILE).items()]
        world.clear(HOSTILE)
        assert found or request, "the operator answers"
        return found

    return act


def administrators_relics(world: NodeWorld) -> list[str]:
    """Let an administrator restore the same backup into a namespace of its own: both volumes come back as they were."""
    (backup,) = world.made_for("backups", HOSTILE, RELIC)
    name = world.number(RELIC)
    world.velero_restore(
        name, backupName=backup["metadata"]["name"], namespaceMapping={HOSTILE: CLOSED}, restorePVs=True
    )
    until(lambda: volumes_of(world.admin, CLOSED), 60, "a volume is back")
    found = [f"{place} {', '.join(names)}" for place, names in world.held(CLOSED).items()]
    give_back(world, CLOSED)
    return found


generated(
    "node_restores_volumes_that_others_have_now",
    "Restore a backup of two volumes that stayed when their claims were deleted.",
    _keeps_relics({}),
    administrators_relics,
)
generated(
    "node_restores_volumes_that_others_have_now_by_name",
    "Restore only the claims and volumes of such a backup.",
    _keeps_relics({"includedResources": ["persistentvolumeclaims", "persistentvolumes"], "restorePVs": False}),
)
generated(
    "node_restores_volumes_that_others_have_now_by_a_pod",
    "Restore such a backup without claims, which pods would bring along.",
    _keeps_relics({"includedResources": ["pods"], "restorePVs": True}),
)


# Folders of the node


def _host_path(world: NodeWorld, folder: str = "") -> Json:
    """Return the spec of a pod that prints the canaries in a folder of the node."""
    where = programs.folder(world.cluster.site) / "kubelet"
    spec = pod_spec({"node": {"hostPath": {"path": folder or str(where)}}}, "cat /node/canary")
    return {**spec, "restartPolicy": "Always"}


def administrators_host_path(world: NodeWorld) -> list[str]:
    """Let an administrator run a pod with a folder of the node: the canary is in its log."""
    world.admin.create(path("pods", CLOSED), pod("reader", _host_path(world)))
    world.runs("reader", CLOSED)
    until(lambda: world.held(CLOSED), 30, "the canary is printed")
    found = [f"{place} {', '.join(names)}" for place, names in world.held(CLOSED).items()]
    world.clear(CLOSED)
    return found


@alone(administrators_host_path)
def node_mounts_a_folder_of_the_node(world: NodeWorld) -> list[str]:
    """Mount a folder of the node in a pod, which Pod Security refuses."""
    is_stored = world.hold(pod("reader", _host_path(world)))
    world.clear(HOSTILE)
    return ["the pod is stored"] if is_stored else []


def administrators_change(world: NodeWorld) -> list[str]:
    """Let an administrator write over a canary of the node: the check reports it, and the canary is put back."""
    before = world.canaries.fingerprints()
    file, text = world.canaries.files["kubelet"], world.canaries.texts["kubelet"]
    spec = pod_spec({"node": {"hostPath": {"path": str(file.parent)}}}, "echo changed > /node/canary")
    world.admin.create(path("pods", CLOSED), pod("writer", spec))
    world.runs("writer", CLOSED)
    until(lambda: text not in file.read_text(), 30, "the canary is changed")
    found = [name for name, digest in world.canaries.fingerprints().items() if digest != before[name]]
    world.canaries.place("kubelet", file, text)
    world.clear(CLOSED)
    return found


@alone(administrators_change)
def node_mounts_a_folder_of_the_node_by_a_template(world: NodeWorld) -> list[str]:
    """Mount a folder of the node in the template of a Deployment, whose pods Pod Security refuses."""
    body = workload("deployments", "Deployment", "apps/v1", "readers", {}, _host_path(world))
    world.hold({**body, "spec": {**body["spec"], "replicas": 1}})
    time.sleep(3)
    found = [each["metadata"]["name"] for each in world.admin.items(path("pods", HOSTILE))]
    world.clear(HOSTILE)
    return [f"pod {name} is stored" for name in found]


# Restores


def administrators_mapping(world: NodeWorld) -> list[str]:
    """Let an administrator restore the victim's backup into another namespace: the canary is in the new volume."""
    (backup,) = world.made_for("backups", VICTIM, TREASURE)
    name, uploads = world.number("mapped"), world.moves(VICTIM)
    world.velero_restore(
        name,
        backupName=backup["metadata"]["name"],
        namespaceMapping={VICTIM: CLOSED},
        includedResources=["persistentvolumeclaims", "persistentvolumes"],
    )
    until(lambda: world.held(CLOSED), 120, "the data is there")
    found = [f"{place} {', '.join(names)}" for place, names in world.held(CLOSED).items()]
    found = found if len(world.moves(VICTIM)) > len(uploads) and world.hosts() else []
    world.clear(CLOSED)
    return found


_INIT = {
    "resources": [
        {
            "name": "x",
            "postHooks": [{"init": {"initContainers": [{"name": "x", "image": "busybox:1", "command": ["id"]}]}}],
        }
    ]
}


def _refused_restore(backup: str, **spec: object) -> OnNode:
    def act(world: NodeWorld) -> list[str]:
        (victims,) = world.made_for("backups", VICTIM, TREASURE)
        named = {"VELERO": victims["metadata"]["name"]}.get(backup, backup)
        name = world.number("asked")
        answer = world.ask(NAR, name, {"restoreSpec": {"backupName": named, **spec}})
        request = world.decided(NAR, name) if answer.code < http.client.BAD_REQUEST else {}
        made = world.made_for("restores", HOSTILE, name)
        world.hostile.delete(path(NAR, HOSTILE, name))
        world.clear(HOSTILE)
        return [f"{each['metadata']['name']} was made: {reason(request)}" for each in made]

    return act


for _title, _tries, _backup, _spec in (
    (
        "into_another_namespace",
        "Map the own namespace to the victim's.",
        RELIC,
        {"namespaceMapping": {HOSTILE: VICTIM}},
    ),
    (
        "from_another_namespace",
        "Map the victim's namespace to the own.",
        RELIC,
        {"namespaceMapping": {VICTIM: HOSTILE}},
    ),
    ("of_another_namespace", "Include the victim's namespace.", RELIC, {"includedNamespaces": [VICTIM]}),
    ("of_the_backup_of_another", "Name the victim's backup.", TREASURE, {}),
    ("of_veleros_name_of_the_backup", "Name the victim's backup as Velero does.", "VELERO", {}),
    ("with_init_containers", "Add a container to the pods by a hook.", RELIC, {"hooks": _INIT}),
    ("with_a_status", "Ask for the status of claims.", RELIC, {"restoreStatus": {"includedResources": ["*"]}}),
    ("over_existing_claims", "Ask to change what exists.", RELIC, {"existingResourcePolicy": "update"}),
    (
        "with_a_modifier",
        "Name a resource modifier.",
        RELIC,
        {"resourceModifier": {"kind": "configmap", "name": "mine"}},
    ),
):
    generated(
        f"node_restores_{_title}",
        f"{_tries}",
        _refused_restore(_backup, **_spec),
        administrators_mapping if _title == "from_another_namespace" else None,
    )


@alone()
def node_orders_the_claims_of_another(world: NodeWorld) -> list[str]:
    """List the victim's claim among the objects that Velero backs up first."""
    request = world.back_up("ordered", orderedResources={"persistentvolumeclaims": f"{VICTIM}/{VAULT}-csi"})
    world.clear(HOSTILE)
    return ["a backup is made"] if condition_of(request) == "True" else []


def _download(kind: str, target: str) -> OnNode:
    def act(world: NodeWorld) -> list[str]:
        name = world.number("got")
        answer = world.ask(NADR, name, {"target": {"kind": kind, "name": target}})
        found = world.decided(NADR, name) if answer.code < http.client.BAD_REQUEST else {}
        url = "downloadURL" in str(found.get("status", {}))
        return [f"{kind} of {target} can be downloaded"] if url else []

    return act


for _kind, _target in (("CSIBackupVolumeSnapshotContents", TREASURE), ("BackupContents", TREASURE)):
    generated(
        f"node_downloads_{_kind.lower()}_of_another",
        "Download what the victim's backup holds about its volumes.",
        _download(_kind, _target),
    )


@alone()
def node_restores_the_files_of_its_other_namespace(world: NodeWorld) -> list[str]:
    """Name a backup of the own namespace where files are copied, from the one where they are not."""
    world.hold(pod("plain", pod_spec(CACHE)), ALLOWED)
    world.runs("plain", ALLOWED)
    made = world.back_up("elsewhere", ALLOWED, includedResources=["pods"])
    assert condition_of(made) == "True", made
    (backup,) = world.made_for("backups", ALLOWED, "elsewhere")
    for name in ("elsewhere", backup["metadata"]["name"]):
        world.ask(NAR, world.number("crossed"), {"restoreSpec": {"backupName": name}})
    time.sleep(2)
    found = [each["metadata"]["name"] for each in world.made_for("restores", HOSTILE) if "crossed" in str(each)]
    world.clear(ALLOWED, HOSTILE)
    return [f"{name} was made" for name in found] + copied(world)


@alone()
def node_reads_a_volume_by_a_sub_path(world: NodeWorld) -> list[str]:
    """Mount a part of a volume that is a link to a folder outside it."""
    world.hold(claim("outer"))
    spec = pod_spec({"data": from_claim("outer")}, "ln -s /var/lib/kubelet /data/out; ln -s ../../../../.. /data/up")
    world.hold(pod("linker", spec))
    world.runs("linker")
    for part in ("out", "up", "out/pods"):
        body = pod_spec({"data": from_claim("outer")}, "cat /data/canary; cat /data/*/canary")
        body["containers"][0]["volumeMounts"][0]["subPath"] = part
        world.hold(pod(f"reader-{part.replace('/', '-')}", body))
    until(lambda: _is_stuck(world, "reader-out"), 60, "the kubelet has looked at the part")
    found = [f"{place} {', '.join(names)}" for place, names in world.held(HOSTILE).items()]
    world.clear(HOSTILE)
    return found


def _is_stuck(world: NodeWorld, name: str) -> bool:
    """Whether the kubelet has started a container, or has said why it does not."""
    status = (world.admin.get(path("pods", HOSTILE, name)) or {}).get("status", {})
    states = [state for each in status.get("containerStatuses", []) for state in each["state"].values()]
    return any("startedAt" in state or "Error" in state.get("reason", "") for state in states)
