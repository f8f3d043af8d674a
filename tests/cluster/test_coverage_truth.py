"""`foresail coverage` on a real cluster says what is not true: nobody runs, no bucket, a backup of another cluster."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed import Cluster
from testbed.velero import revalidate
from tests.cluster.operators import running
from tests.cluster.schedules import clear

Eventually = Callable[[Callable[[], object], float], None]
_BUCKET = '{{"spec":{{"objectStorage":{{"bucket":"{}"}}}}}}'


def coverage(cluster: Cluster, namespace: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code, and what is said of a namespace."""
    words = [
        "coverage",
        f"--kubeconfig={cluster.kubeconfig}",
        "-n",
        namespace,
        "--rpo=26h",
        "--fail-on=gaps",
        "-o=json",
    ]
    done = subprocess.run([sys.executable, "-m", "foresail", *words], capture_output=True, text=True, check=False)
    (said,) = json.loads(done.stdout)["namespaces"]
    return done.returncode, said


def reasons(cluster: Cluster, namespace: str) -> list[str]:
    return [gap["reason"] for gap in coverage(cluster, namespace)[1]["gaps"]]


def schedule_of(cluster: Cluster, namespace: str) -> dict[str, Any]:
    if cluster.kubectl("get", "namespace", namespace, "--ignore-not-found") == "":
        cluster.kubectl("create", "namespace", namespace)
        cluster.kubectl("create", "configmap", "one", f"--namespace={namespace}", "--from-literal=a=b")
    template = {"includedNamespaces": [namespace], "storageLocation": "default"}
    metadata = {"name": f"of-{namespace}", "namespace": "velero"}
    spec = {"schedule": "0 3 1 1 *", "template": template}
    cluster.apply({"apiVersion": "velero.io/v1", "kind": "Schedule", "metadata": metadata, "spec": spec})
    found: dict[str, Any] = cluster.get("schedules.velero.io", f"of-{namespace}", "--namespace=velero")
    return found


def available(cluster: Cluster) -> str:
    found = cluster.get("backupstoragelocation", "default", "--namespace=velero")
    return str(found.get("status", {}).get("phase", ""))


def test_schedules_that_nobody_runs_and_a_bucket_that_is_gone_are_gaps(
    schedule_cluster: Cluster, tmp_path: Path, eventually: Eventually
) -> None:
    cluster = schedule_cluster
    clear(cluster)
    cluster.kubectl("delete", "lease", "foresail", "--namespace=velero", "--ignore-not-found")
    schedule_of(cluster, "true-shop")
    cluster.velero("backup", "create", "true-shop-1", "--from-schedule=of-true-shop", "--wait")
    code, said = coverage(cluster, "true-shop")
    assert (code, [gap["reason"] for gap in said["gaps"]], said["nextRun"]) == (1, ["NobodyRuns"], None)
    bucket = cluster.get("backupstoragelocation", "default", "--namespace=velero")["spec"]["objectStorage"]["bucket"]
    with running(cluster, tmp_path):
        eventually(lambda: reasons(cluster, "true-shop") == [], 60)
        assert coverage(cluster, "true-shop")[0] == 0
        try:
            patch = _BUCKET.format("no-such-bucket")
            cluster.kubectl("patch", "bsl", "default", "--namespace=velero", "--type=merge", f"--patch={patch}")
            eventually(lambda: available(cluster) == "Unavailable", 180)
            assert reasons(cluster, "true-shop") == ["LocationUnavailable"]
            assert coverage(cluster, "true-shop")[0] == 1
        finally:
            patch = _BUCKET.format(bucket)
            cluster.kubectl("patch", "bsl", "default", "--namespace=velero", "--type=merge", f"--patch={patch}")
        eventually(lambda: available(cluster) == "Available", 180)


def test_a_velero_without_a_ready_pod_is_a_gap_at_once(
    schedule_cluster: Cluster, tmp_path: Path, eventually: Eventually
) -> None:
    cluster = schedule_cluster
    clear(cluster)
    schedule_of(cluster, "true-mint")
    cluster.velero("backup", "create", "true-mint-1", "--from-schedule=of-true-mint", "--wait")

    def scale(number: int) -> None:
        cluster.kubectl("scale", "deployment", "velero", "--namespace=velero", f"--replicas={number}")

    with running(cluster, tmp_path):
        eventually(lambda: coverage(cluster, "true-mint")[1]["verdict"] == "Safe", 90)
        try:
            scale(1)  # there is no node, so no pod starts
            said = coverage(cluster, "true-mint")[1]
            assert (said["verdict"], [gap["reason"] for gap in said["gaps"]]) == ("AtRisk", ["VeleroNotReady"])
            assert "0 of 1 pods" in said["message"]
        finally:
            scale(0)
        assert coverage(cluster, "true-mint")[1]["verdict"] == "AtRisk", "nothing has worked since"
        revalidate(cluster.site)  # by the server beside the cluster
        eventually(lambda: coverage(cluster, "true-mint")[1]["verdict"] == "Safe", 90)


@pytest.mark.parametrize("uid", ["00000000-0000-0000-0000-000000000001", ""])
def test_a_backup_of_another_cluster_is_no_good_backup(schedule_cluster: Cluster, uid: str, tmp_path: Path) -> None:
    cluster, name = schedule_cluster, f"true-bank-{'known' if uid else 'unknown'}"
    schedule_of(cluster, name)
    metadata: dict[str, Any] = {
        "name": f"of-{name}-20260101000000",
        "namespace": "velero",
        "labels": {"velero.io/schedule-name": f"of-{name}"},
        "annotations": {"foresail.dev/schedule-uid": uid} if uid else {},
    }
    with running(cluster, tmp_path):
        cluster.fault.stop("velero")  # it would find the Backup without an archive
        try:
            cluster.apply(
                {
                    "apiVersion": "velero.io/v1",
                    "kind": "Backup",
                    "metadata": metadata,
                    "spec": {"includedNamespaces": [name], "storageLocation": "default"},
                    "status": {
                        "phase": "Completed",
                        "startTimestamp": "2026-11-01T00:00:00Z",
                        "completionTimestamp": "2026-11-01T00:00:01Z",
                        "progress": {"itemsBackedUp": 9, "totalItems": 9},
                        "expiration": "2099-01-01T00:00:00Z",
                    },
                }
            )
            said = coverage(cluster, name)[1]
        finally:
            cluster.kubectl("delete", "backups.velero.io", metadata["name"], "--namespace=velero")
            cluster.fault.cont("velero")
    assert said["newestGoodBackup"] is None
