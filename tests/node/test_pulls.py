"""A Primer before a CronJob whose image has 300 MB: pulled ahead by an image volume, or not."""

import json
import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from foresail.kube.clock import now
from testbed import Cluster
from testbed.build import program
from testbed.node.images import Image
from testbed.node.needs import command
from tests.node.nodes import eventually, namespace

NAMESPACE = "pulls"
PAYLOAD = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubectl",
)  # real programs compress as images do
ARMS = ("cold", "image-volumes", "capacity-only")
OFF = "--primer-image-volumes=false"


@pytest.fixture(scope="module")
def pulling(installed: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The registry with an image for each arm, none of which the node has."""
    folder = tmp_path_factory.mktemp("images")
    for arm in ARMS:
        (folder / arm).write_text(arm)  # another layer for each, so that no pull helps another
        files = {"bin/busybox": Path(command("busybox")), "arm": folder / arm}
        files |= {f"payload/{name}": program("kube", name) for name in PAYLOAD}
        installed.push_image(Image(_image(arm), files, "0", (), ("bin/sh", "bin/sleep"), (), ("PATH=/bin",)))
    installed.apply(namespace(NAMESPACE))
    yield installed
    installed.kubectl("delete", "namespace", NAMESPACE, "--timeout=120s")


def _image(arm: str) -> str:
    return f"example.com/big:{arm}"


def test_an_image_volume_pulls_the_image_before_the_job_is_due(pulling: Cluster, figure: Callable[[str], None]) -> None:
    found = {"cold": run(pulling, "cold", primed=False)}
    found["image-volumes"] = run(pulling, "image-volumes", primed=True)
    switch(pulling, OFF)
    try:
        found["capacity-only"] = run(pulling, "capacity-only", primed=True)
    finally:
        switch(pulling)
    figure(f"a 300 MB image, from the fire to the running container: {json.dumps(found)}")
    assert found["image-volumes"]["pull_s"] == 0, found
    assert found["cold"]["pull_s"] > 0, found
    assert found["capacity-only"]["pull_s"] > 0, found
    assert found["image-volumes"]["delay_s"] <= found["cold"]["delay_s"], found


def switch(cluster: Cluster, *arguments: str) -> None:
    """Let the primers' operator run with these arguments besides the chart's, and wait for the rollout."""
    deployment = cluster.get("deployment", "foresail-primers", "--namespace=velero")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    words = [each for each in container["args"] if each != OFF] + list(arguments)
    change = {"spec": {"template": {"spec": {"containers": [{"name": container["name"], "args": words}]}}}}
    patch = ("patch", "deployment", "foresail-primers", "--namespace=velero", f"--patch={json.dumps(change)}")
    cluster.kubectl(*patch)
    status = ("rollout", "status", "deployment/foresail-primers", "--namespace=velero", "--timeout=180s")
    cluster.kubectl(*status)


def run(cluster: Cluster, arm: str, *, primed: bool) -> dict[str, float]:
    """Let a CronJob fire once; return its start delay, and how long its image was pulled after the fire."""
    fire = (now() + timedelta(minutes=3 if primed else 1, seconds=15)).replace(second=0, microsecond=0)
    cluster.apply(_cron_job(arm, fire), *([_primer(arm)] if primed else []))
    if primed:
        eventually(lambda: _warm(cluster, arm), 240, f"a placeholder for {arm} runs")
    eventually(lambda: _started(cluster, arm), (fire - now()).total_seconds() + 180, f"the Job of {arm} runs")
    started, name = _started(cluster, arm)[0]
    return {"delay_s": (started - fire).total_seconds(), "pull_s": _pull_seconds(cluster, name)}


def _cron_job(arm: str, fire: datetime) -> dict[str, Any]:
    container = {
        "name": "work",
        "image": _image(arm),
        "command": ["sleep", "5"],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
    }
    pod = {"restartPolicy": "Never", "containers": [container], "terminationGracePeriodSeconds": 1}
    template = {"metadata": {"labels": {"arm": arm}}, "spec": pod}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": arm, "namespace": NAMESPACE},
        "spec": {
            "schedule": f"{fire.minute} {fire.hour} {fire.day} {fire.month} *",
            "timeZone": "Etc/UTC",
            "jobTemplate": {"spec": {"template": template}},
        },
    }


def _primer(arm: str) -> dict[str, Any]:
    return {
        "apiVersion": "foresail.dev/v1alpha1",
        "kind": "Primer",
        "metadata": {"name": arm, "namespace": NAMESPACE},
        "spec": {"warmUp": "2m", "method": "Placeholder", "cronJob": arm},
    }


def _pods(cluster: Cluster) -> list[dict[str, Any]]:
    return cluster.listed(f"/api/v1/namespaces/{NAMESPACE}/pods")


def _warm(cluster: Cluster, arm: str) -> bool:
    found = [each for each in _pods(cluster) if each["metadata"]["name"].startswith(f"{arm}-")]
    warm = [each for each in found if "foresail.dev/primer" in each["metadata"]["labels"]]
    return any(each["status"]["phase"] == "Running" for each in warm)


def _started(cluster: Cluster, arm: str) -> list[tuple[datetime, str]]:
    found = []
    for each in _pods(cluster):
        if (
            each["metadata"]["labels"].get("arm") == arm
            and "batch.kubernetes.io/job-name" in each["metadata"]["labels"]
        ):
            for status in each["status"].get("containerStatuses", ()):
                state = status["state"]
                at = (state.get("running") or state.get("terminated") or {}).get("startedAt")
                found += [(datetime.fromisoformat(at), each["metadata"]["name"])] if at else []
    return found


def _pull_seconds(cluster: Cluster, pod: str) -> float:
    """Return how long the kubelet pulled the image of a pod; 0 if the node had it."""
    deadline = time.monotonic() + 30
    while True:
        events = cluster.get("events", f"--namespace={NAMESPACE}", f"--field-selector=involvedObject.name={pod}")[
            "items"
        ]
        said = [each["message"] for each in events if each["reason"] == "Pulled"]
        if said:
            found = re.search(r"Successfully pulled image .* in (?:(\d+)m)?([\d.]+)(ms|s) ", said[0])
            if found is None:
                assert "already present" in said[0], said
                return 0.0
            return round(60 * int(found[1] or 0) + float(found[2]) / (1000 if found[3] == "ms" else 1), 2)
        assert time.monotonic() < deadline, events
        time.sleep(0.5)
