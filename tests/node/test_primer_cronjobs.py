"""The Jobs of primer CronJobs on a real kubelet, which takes its time to report that a container has ended."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from foresail.kube.clock import now
from testbed import Cluster
from tests.node.nodes import namespace, pod

SECONDS = 90


@pytest.fixture
def primed(installed: Cluster) -> Iterator[str]:
    """The name of a primer CronJob whose Jobs hold for almost a minute; it does not fire during the test."""
    due = (now().hour + 12) % 24
    asks = {"resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}
    template = {"spec": {**pod("work", "primed", "true", container=asks)["spec"], "restartPolicy": "Never"}}
    target = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "report", "namespace": "primed"},
        "spec": {"schedule": f"30 {due} * * *", "timeZone": "Etc/UTC", "jobTemplate": {"spec": {"template": template}}},
    }
    primer = {
        "apiVersion": "foresail.dev/v1alpha1",
        "kind": "Primer",
        "metadata": {"name": "early", "namespace": "primed"},
        "spec": {"warmUp": "1m", "method": "CronJob", "cronJob": "report"},
    }
    installed.apply(namespace("primed"), target, primer)
    deadline = time.monotonic() + SECONDS
    while not (names := [name for name in _cron_jobs(installed) if name != "report"]):
        assert time.monotonic() < deadline, installed.kubectl(
            "get", "primers", "--output=jsonpath={.items[*].status}", "--namespace=primed"
        )
        time.sleep(0.5)
    yield names[0]
    installed.kubectl("delete", "namespace", "primed", "--timeout=120s")


def _cron_jobs(cluster: Cluster) -> list[str]:
    return [each["metadata"]["name"] for each in cluster.get("cronjobs", "--namespace=primed")["items"]]


def test_the_job_of_a_primer_cronjob_completes_before_its_deadline(installed: Cluster, primed: str) -> None:
    time.sleep(60 - now().second + 0.1)  # as the controller does: at the beginning of a minute, named after it
    name = f"{primed}-{int(now().timestamp()) // 60}"
    installed.kubectl("create", "job", name, f"--from=cronjob/{primed}", "--namespace=primed")
    ended = _end(installed, name)
    assert ended == ("Complete", "CompletionsReached"), ended


def _end(cluster: Cluster, name: str) -> tuple[str, str]:
    deadline = time.monotonic() + SECONDS
    while True:
        status: dict[str, Any] = cluster.get("job", name, "--namespace=primed")["status"]
        for each in status.get("conditions", ()):
            if each["type"] in {"Complete", "Failed"} and each["status"] == "True":
                return each["type"], each["reason"]
        assert time.monotonic() < deadline, status
        time.sleep(1)
