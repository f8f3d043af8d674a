"""The delay that primers will remove, on a cluster that starts with no node."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from testbed import Cluster
from testbed.nodes import RUN_SECONDS

RUNS = 5
LATE = 15  # seconds, on a busy machine
POOL = "--selector=karpenter.sh/nodepool=testbed"  # others may have nodes of their own here


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _ready_since(node: dict[str, Any]) -> datetime:
    return next(_instant(c["lastTransitionTime"]) for c in node["status"]["conditions"] if c["type"] == "Ready")


def test_a_cronjob_on_a_cluster_without_nodes_gets_one_after_the_configured_delay_and_completes(
    karpenter_cluster: Cluster,
    eventually: Callable[[Callable[[], object], float], None],
    figure: Callable[[str], None],
) -> None:
    cluster = karpenter_cluster
    assert cluster.get("nodes", POOL)["items"] == []
    container = {"name": "work", "image": "work:1", "resources": {"requests": {"cpu": "2"}}}
    cluster.apply(
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": "report", "namespace": "default"},
            "spec": {
                "schedule": "* * * * *",
                "concurrencyPolicy": "Forbid",
                "jobTemplate": {
                    "metadata": {"labels": {"run": "report"}},
                    "spec": {
                        "template": {
                            "metadata": {"annotations": {RUN_SECONDS: str(RUNS)}, "labels": {"run": "report"}},
                            "spec": {"restartPolicy": "Never", "containers": [container]},
                        }
                    },
                },
            },
        }
    )
    mine = "--selector=run=report"
    eventually(lambda: cluster.get("jobs", mine)["items"], 120)
    cluster.kubectl("patch", "cronjob", "report", "--patch", '{"spec": {"suspend": true}}')
    eventually(lambda: cluster.get("jobs", mine)["items"][0].get("status", {}).get("succeeded") == 1, 240)

    # The node goes half a minute after its last pod, and the pod with it.
    (node,) = cluster.get("nodes", POOL)["items"]
    (pod,) = cluster.get("pods", mine)["items"]
    job = cluster.get("jobs", mine)["items"][0]
    finished = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    fire = _instant(job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"])
    ready_after = (_ready_since(node) - _instant(node["metadata"]["creationTimestamp"])).total_seconds()
    ran = (_instant(finished["finishedAt"]) - _instant(finished["startedAt"])).total_seconds()
    delay = (_instant(pod["status"]["startTime"]) - fire).total_seconds()

    assert pod["spec"]["nodeName"] == node["metadata"]["name"]
    wanted = cluster.site.options.node_seconds
    assert wanted - 1 <= ready_after <= wanted + LATE  # the API server's times are whole seconds
    assert RUNS - 1 <= ran <= RUNS + LATE
    assert delay >= wanted
    figure(
        f"CronJob on a cluster with no node, nodes ready after {wanted} s: node ready {ready_after:.0f} s after it was "
        f"made, pod running {delay:.0f} s after the fire"
    )
