"""The operator's image, from the project's Containerfile, installed in pods by `foresail install`."""

import json
import time
from typing import Any

import pytest

from release.image_size import layers_above
from testbed import Cluster
from testbed.node.images import base_names, base_tag, project_storage
from testbed.site import NODE_NAME
from tests.node.nodes import CHECKOUT, IMAGE

MIB = 1 << 20


def replicas(cluster: Cluster) -> list[dict[str, Any]]:
    """Return the operator's pods."""
    found: list[dict[str, Any]] = cluster.get(
        "pods", "--namespace=velero", "--selector=app.kubernetes.io/name=foresail-schedules"
    )["items"]
    return found


def is_ready(pod: dict[str, Any]) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"]["conditions"])


@pytest.mark.sample
def test_two_replicas_of_the_image_are_ready_after_install(installed: Cluster) -> None:
    pods = replicas(installed)
    assert [is_ready(each) for each in pods] == [True, True], [each["status"] for each in pods]
    assert {each["spec"]["nodeName"] for each in pods} == {NODE_NAME}
    assert {each["spec"]["containers"][0]["image"] for each in pods} == {IMAGE}


def test_a_schedule_makes_a_backup_that_velero_completes(installed: Cluster) -> None:
    installed.velero("schedule", "create", "often", "--schedule=* * * * *", "--include-namespaces=default")
    try:
        deadline = time.monotonic() + 150
        while "Completed" not in (phases := _phases(installed)):
            assert time.monotonic() < deadline, phases
            time.sleep(1)
    finally:
        installed.velero("schedule", "delete", "often", "--confirm")


def _phases(cluster: Cluster) -> list[str]:
    found = cluster.get("backups.velero.io", "--namespace=velero")["items"]
    made = [each for each in found if each["metadata"]["name"].startswith("often-")]
    return [each.get("status", {}).get("phase", "New") for each in made]


def test_the_layers_above_the_base_and_the_memory_of_a_replica_are_measured(
    installed: Cluster, measured: dict[str, float | bool | None]
) -> None:
    (base,) = base_names((CHECKOUT / "Containerfile").read_text())
    layers = layers_above(IMAGE, base_tag(base), project_storage())
    measured["layers_mib"] = round(sum(layers) / MIB, 1)
    name = replicas(installed)[0]["metadata"]["name"]
    deadline = time.monotonic() + 60
    while (memory := _memory(installed, name)) is None and time.monotonic() < deadline:
        time.sleep(1)
    assert memory is not None, "the kubelet reports no memory of the replica"
    measured["replica_mib"] = round(memory / MIB, 1)


def _memory(cluster: Cluster, pod: str) -> int | None:
    summary = json.loads(cluster.kubectl("get", "--raw", f"/api/v1/nodes/{NODE_NAME}/proxy/stats/summary"))
    for each in summary["pods"]:
        if each["podRef"]["name"] == pod and each.get("memory", {}).get("workingSetBytes"):
            return int(each["memory"]["workingSetBytes"])
    return None
