"""What coverage, plan and doctor say about CSI snapshots, beside what Velero really stores and restores."""

import gzip
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from testbed import Cluster
from testbed.node.csi import CLASS, HOSTPATH, WAITING_CLASS
from tests.cluster.schedules import schedule
from tests.node.data_paths import SNAPSHOTS
from tests.node.nodes import claim, eventually, foresail, ignore_delayed_binding, namespace, pod, wait_ready

MIXED = "mixed"
DOWNLOADS = "/apis/velero.io/v2alpha1/namespaces/velero/datadownloads"
WRITES = "test -e /data/done || { echo kept > /data/file; echo kept > /logs/file; touch /data/done; }; sleep 3600"
READS = "cat /data/file; cat /logs/file 2> /dev/null || echo empty"


@pytest.fixture(scope="module")
def mixed(node_cluster: Cluster) -> Iterator[Cluster]:
    """A namespace whose pod has a volume with snapshots and one without, and a Schedule for it."""
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("data", "logs")]
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("data", "logs")]
    probe = {"exec": {"command": ["test", "-e", "/data/done"]}, "periodSeconds": 1}
    container = {"volumeMounts": mounts, "readinessProbe": probe}
    node_cluster.apply(
        namespace(MIXED),
        claim("data", MIXED, CLASS),
        claim("logs", MIXED),
        pod("store", MIXED, WRITES, container=container, volumes=volumes),
        schedule("nights", "0 3 * * *", {"includedNamespaces": [MIXED], **SNAPSHOTS.template}),
    )
    wait_ready(node_cluster, "pod/store", MIXED)
    yield node_cluster
    node_cluster.kubectl("delete", "schedules.velero.io", "nights", "--namespace=velero")
    node_cluster.kubectl("delete", "namespace", MIXED, "--timeout=120s")


def back_up(cluster: Cluster, name: str, *words: str) -> dict[str, dict[str, Any]]:
    """Back up, and return what Velero stores about the volume of each claim."""
    cluster.velero("backup", "create", name, *words, "--wait")
    assert cluster.get("backups.velero.io", name, "--namespace=velero")["status"]["phase"] == "Completed"
    file = cluster.site.bucket / "backups" / name / f"{name}-volumeinfo.json.gz"
    return {each["pvcName"]: each for each in json.loads(gzip.decompress(file.read_bytes())) or []}


def asked(cluster: Cluster, *words: str) -> Any:  # noqa: ANN401 - JSON is any
    """Return the JSON that a command prints; hints may follow it."""
    said = foresail(cluster, *words, "--output=json")
    start = min(place for place in (said.find("{"), said.find("[")) if place >= 0)
    return json.JSONDecoder().raw_decode(said, start)[0]


def covered(cluster: Cluster) -> dict[str, tuple[str, str, list[str]]]:
    """Return what coverage says of each claim: the method, its newest backup with the data, and the gaps."""
    (found,) = asked(cluster, "coverage", f"--namespace={MIXED}")["namespaces"]
    return {
        each["name"]: (
            each["method"],
            (each["newestGoodBackup"] or {}).get("name", ""),
            [gap["reason"] for gap in each["gaps"]],
        )
        for each in found["claims"]
    }


def planned(cluster: Cluster, backup: str, target: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Return what a plan says about each item of a backup."""
    items = asked(cluster, "plan", backup, f"--to={target}")["items"]
    return {(each["resource"], each["name"]): each for each in items}


def restored(cluster: Cluster, backup: str, target: str) -> str:
    """Restore into another namespace, and return what its pod reads from both volumes."""
    words = (f"--from-backup={backup}", f"--namespace-mappings={MIXED}:{target}", "--wait")
    cluster.velero("restore", "create", target, *words)
    assert cluster.get("restores.velero.io", target, "--namespace=velero")["status"]["phase"] == "Completed"
    wait_ready(cluster, "pod/store", target)
    return cluster.kubectl("exec", "store", f"--namespace={target}", "--", "sh", "-c", READS)


def test_a_volume_without_snapshots_beside_one_with_them_is_reported(mixed: Cluster) -> None:
    infos = back_up(mixed, "moved", "--from-schedule=nights")
    assert infos["data"]["backupMethod"] == "CSISnapshot"
    assert (infos["data"]["snapshotDataMoved"], infos["data"]["result"]) == (True, "succeeded")
    assert infos["logs"]["skipped"] is True
    assert covered(mixed) == {"data": ("Snapshot", "moved", []), "logs": ("None", "", ["VolumeLeftOut"])}
    plan = planned(mixed, "moved", "moved-back")
    assert restored(mixed, "moved", "moved-back").split() == ["kept", "empty"]
    assert_plan(mixed, plan, "moved-back")


def test_a_plain_snapshot_is_restored_and_covered(mixed: Cluster) -> None:
    infos = back_up(mixed, "plain", f"--include-namespaces={MIXED}")
    assert (infos["data"]["backupMethod"], infos["data"]["snapshotDataMoved"]) == ("CSISnapshot", False)
    assert infos["logs"]["skipped"] is True
    assert covered(mixed)["data"][:2] == ("Snapshot", "plain")
    plan = planned(mixed, "plain", "plain-back")
    assert restored(mixed, "plain", "plain-back").split() == ["kept", "empty"]
    assert_plan(mixed, plan, "plain-back")


def assert_plan(cluster: Cluster, plan: dict[tuple[str, str], dict[str, Any]], target: str) -> None:
    """See that what the plan creates is there, and that it promises no old volume."""
    for name in ("data", "logs"):
        assert plan["persistentvolumeclaims", name]["outcome"] in ("create", "not predictable"), plan
        assert cluster.get("persistentvolumeclaims", name, f"--namespace={target}")["status"]["phase"] == "Bound"
    assert plan["pods", "store"]["outcome"] == "create"
    volumes = [each for (resource, _), each in plan.items() if resource == "persistentvolumes"]
    assert {each["outcome"] for each in volumes} == {"not restored"}, volumes
    uploads = [each for (resource, _), each in plan.items() if resource == "datauploads.velero.io"]
    assert {each["outcome"] for each in uploads} <= {"not restored"}


def test_a_driver_that_is_restarted_makes_snapshots_again(mixed: Cluster) -> None:
    mixed.fault.restart(HOSTPATH)
    infos = back_up(mixed, "after-restart", f"--include-namespaces={MIXED}", "--csi-snapshot-timeout=2m")
    assert infos["data"]["backupMethod"] == "CSISnapshot"


@contextmanager
def without_csi(cluster: Cluster) -> Iterator[None]:
    """Let Velero's server run without the feature until the block ends."""

    def switch(before: str, after: str) -> None:
        body = json.dumps(cluster.get("deployment", "velero", "--namespace=velero")["spec"]["template"])
        template = json.loads(body.replace(before, after))
        patch = json.dumps({"spec": {"template": template}})
        cluster.kubectl("patch", "deployment", "velero", "--namespace=velero", "--type=merge", f"--patch={patch}")
        cluster.kubectl("rollout", "status", "deployment/velero", "--namespace=velero", "--timeout=180s")

    switch("--features=EnableCSI", "--features=")
    try:
        yield
    finally:
        switch("--features=", "--features=EnableCSI")


def test_without_csi_a_completed_backup_has_no_data_and_nobody_calls_it_good(mixed: Cluster) -> None:
    with without_csi(mixed):
        assert "data" not in {
            name for name, each in back_up(mixed, "hollow", "--from-schedule=nights").items() if not each["skipped"]
        }
        assert covered(mixed)["data"][0] == "None"
    method, newest, gaps = covered(mixed)["data"]
    assert (method, gaps) == ("Snapshot", ["VolumeLeftOut"])
    assert newest != "hollow"


def phase_of(cluster: Cluster, restore: str) -> str:
    """Return the phase of the one DataDownload of a restore."""
    (found,) = [
        each for each in cluster.listed(DOWNLOADS) if each["metadata"]["labels"]["velero.io/restore-name"] == restore
    ]
    return str(found.get("status", {}).get("phase", ""))


def begin_restore(cluster: Cluster, backup: str) -> str:
    """Restore the claims of a backup, without pods, into a namespace named after the restore; do not wait."""
    name = f"{backup}-{time.monotonic_ns() % 1_000_000}"
    what = "--include-resources=persistentvolumeclaims,persistentvolumes"
    cluster.velero("restore", "create", name, f"--from-backup={backup}", what, f"--namespace-mappings={backup}:{name}")
    eventually(lambda: f'"{name}"' in json.dumps(cluster.listed(DOWNLOADS)), 60, "there is a DataDownload")
    return name


def test_a_claim_without_a_pod_blocks_other_restores_unless_velero_ignores_delayed_binding(installed: Cluster) -> None:
    mount = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    for name, storage_class in (("waits", WAITING_CLASS), ("binds", CLASS)):
        store = pod("store", name, "echo kept > /data/file; sleep 3600", container=mount, volumes=[volume])
        installed.apply(namespace(name), claim("data", name, storage_class), store)
        wait_ready(installed, "pod/store", name)
        back_up(installed, name, f"--include-namespaces={name}", SNAPSHOTS.option)
    assert WAITING_CLASS in doctor(installed)
    blocking = begin_restore(installed, "waits")
    eventually(lambda: phase_of(installed, blocking) == "Accepted", 60, "the worker has taken it")
    blocked = begin_restore(installed, "binds")
    time.sleep(15)
    assert (phase_of(installed, blocking), phase_of(installed, blocked)) == ("Accepted", "")
    ignore_delayed_binding(installed)
    assert WAITING_CLASS not in doctor(installed)
    restores = (blocking, blocked)
    eventually(lambda: {phase_of(installed, each) for each in restores} == {"Completed"}, 180, "both have their data")


def doctor(cluster: Cluster) -> str:
    """Return what the doctor says about volumes."""
    found = asked(cluster, "doctor")
    return " ".join(each["says"] for each in found if each["about"] == "volumes")
