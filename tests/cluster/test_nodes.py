from collections.abc import Callable
from datetime import datetime

import pytest

from testbed import Cluster
from testbed.nodes import RUN_SECONDS


@pytest.mark.parametrize(("annotations", "runs"), [({RUN_SECONDS: "4"}, 4), ({}, 1)])
def test_the_pod_of_a_job_runs_as_long_as_its_annotation_says_and_succeeds(
    velero_cluster: Cluster,
    eventually: Callable[[Callable[[], object], float], None],
    annotations: dict[str, str],
    runs: int,
) -> None:
    cluster, name = velero_cluster, f"runs-{runs}"
    cluster.apply(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "template": {
                    "metadata": {"annotations": annotations},
                    "spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work:1"}]},
                }
            },
        }
    )
    eventually(lambda: cluster.get("job", name).get("status", {}).get("succeeded") == 1, 120)
    (pod,) = cluster.get("pods", f"--selector=job-name={name}")["items"]
    ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    ran = datetime.fromisoformat(ended["finishedAt"]) - datetime.fromisoformat(ended["startedAt"])
    assert runs - 1 <= ran.total_seconds() <= runs + 10  # whole seconds, on a busy machine
    assert pod["status"]["phase"] == "Succeeded"
