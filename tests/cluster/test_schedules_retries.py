"""Further attempts at a slot on the real Velero: a bucket that fails twice, then a Velero that is killed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from foresail.kube.clock import now
from testbed import Cluster
from tests.cluster.operators import Operator, running
from tests.cluster.schedules import Eventually, Figure, backups, clear, phase, reasons, schedule, show

CRD = Path(__file__).parents[2] / "charts" / "foresail-crds" / "templates" / "schedulepolicies.yaml"
MINUTE = timedelta(minutes=1)
POLICY = {
    "apiVersion": "foresail.dev/v1alpha1",
    "kind": "SchedulePolicy",
    "metadata": {"name": "stubborn"},
    "spec": {
        "selector": {"names": ["surf"]},
        "retry": {"attempts": 5, "backoff": "10s", "backoffType": "Fixed"},
    },
}


@pytest.fixture(scope="module")
def cluster(schedule_cluster: Cluster) -> Iterator[Cluster]:
    clear(schedule_cluster)
    schedule_cluster.kubectl("apply", "--server-side", f"--filename={CRD}")
    schedule_cluster.wait_for_kinds()
    yield schedule_cluster
    schedule_cluster.kubectl("delete", "schedulepolicies.foresail.dev", "--all")
    clear(schedule_cluster)


@pytest.fixture(scope="module", autouse=True)
def operator(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with running(cluster, tmp_path_factory.mktemp("operator")) as found:
        yield found


def phases(cluster: Cluster) -> dict[str, str]:
    """Return the phases of the attempts, by what their names add to the name of the first one."""
    found = sorted((each["metadata"]["name"], phase(each)) for each in backups(cluster, "surf"))
    return {name.removeprefix(found[0][0]): each for name, each in found}


def foresail(cluster: Cluster, *words: str) -> str:
    command = [sys.executable, "-m", "foresail", "schedule", *words]
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120).stdout


def location(cluster: Cluster) -> Any:  # noqa: ANN401 - JSON
    return cluster.get("backupstoragelocations.velero.io", "default", "--namespace=velero")["status"]


def set_validation(cluster: Cluster, frequency: str) -> None:
    """Let Velero check the location that often; with 0s it stays Available, whatever becomes of the bucket.

    Velero checks it once more because of the change.
    """
    cluster.kubectl(
        "patch", "backupstoragelocations.velero.io", "default", "--namespace=velero", "--type=merge",
        f'--patch={{"spec":{{"validationFrequency":"{frequency}"}}}}',
    )  # fmt: skip


def test_slot_gets_one_good_backup_though_the_bucket_fails_twice_and_velero_is_killed(
    cluster: Cluster, operator: Operator, eventually: Eventually, figure: Figure
) -> None:
    checked = location(cluster)["lastValidationTime"]
    set_validation(cluster, "0s")
    eventually(lambda: location(cluster)["lastValidationTime"] > checked, 60)
    try:
        cluster.fault.kill("s3")
        tick = (now() + MINUTE / 6).replace(second=0, microsecond=0) + MINUTE
        cluster.apply(POLICY, schedule("surf", f"{tick.minute} {tick.hour} * * *"))
        eventually(lambda: phases(cluster).get("-r1") == "Failed", 300)
        cluster.fault.start("s3")
        cluster.fault.stop("s3")  # it answers nothing, so the next attempt is under way when Velero ends
        eventually(lambda: phases(cluster).get("-r2") == "InProgress", 120)
        assert operator.figures("surf")["attempts"] == 3
        cluster.fault.kill("velero")
        cluster.fault.cont("s3")
        cluster.fault.start("velero")
        eventually(lambda: "Completed" in phases(cluster).values(), 300)
    finally:
        set_validation(cluster, "1m0s")
    expected = {"": "Failed", "-r1": "Failed", "-r2": "Failed", "-r3": "Completed"}
    assert phases(cluster) == expected
    assert {each["metadata"]["annotations"]["foresail.dev/slot"] for each in backups(cluster, "surf")} == {
        f"{tick:%Y-%m-%dT%H:%M:%SZ}"
    }
    name = f"{backups(cluster, 'surf')[0]['metadata']['name'].split('-r')[0]}-r3"
    assert f"backups/{name}/{name}.tar.gz" in cluster.bucket_objects()
    eventually(lambda: show(cluster, "surf")["status"]["lastBackup"] == f"{tick:%Y-%m-%dT%H:%M:%SZ}", 30)
    assert "4 of 6" in foresail(cluster, "get", "surf", "-o", "wide")
    assert "4 of 6 attempts made" in foresail(cluster, "explain", "surf")
    assert operator.figures()["foresail_schedule_retries_total"] == 3
    assert "attempt 4 of 6 starts" in reasons(cluster, "surf")["Retrying"]
    before = set(phases(cluster))
    operator.kill()
    operator.start()
    eventually(lambda: operator.figures("surf")["attempts"] == 4, 60)
    assert set(phases(cluster)) == before
    figure(f"attempts at one slot with a bucket that fails twice and a killed Velero: {len(before)}, good: 1")
