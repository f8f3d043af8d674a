"""A restore plan on the real cluster: beside a real restore, without a trace, and interrupted."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from bench import plan_oracle
from foresail.cli.errors import INTERRUPTED
from testbed import Cluster

Eventually = Callable[[Callable[[], object], float], None]


def test_a_plan_says_what_the_restore_then_does_and_writes_nothing(
    schedule_cluster: Cluster, eventually: Eventually
) -> None:
    cluster = schedule_cluster
    planner = plan_oracle.prepare_cluster(cluster)
    score = plan_oracle.run(cluster, planner, range(3, 5), is_loud=False)
    assert score.mispredicted == []
    assert score.items > score.unpredictable
    assert plan_oracle.foreign_writes(cluster) == []

    # a signal while the scratch namespace exists; a thousand items give it time
    foresail, kubeconfig = [sys.executable, "-m", "foresail", "plan"], f"--kubeconfig={planner}"
    plan_oracle.speed(cluster, planner)
    # CI runs its parts in the background, where a shell has SIGINT ignored
    here = ["env", "--default-signal=INT", *foresail]
    long = [*here, "backup-many", "--namespace-mappings=many:nowhere", kubeconfig]
    for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        eventually(lambda: not plan_oracle.scratch_namespaces(cluster), 60)
        with subprocess.Popen(long, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            eventually(lambda: plan_oracle.scratch_namespaces(cluster), 60)
            process.send_signal(how)
            process.communicate(timeout=60)
        assert process.returncode == INTERRUPTED, f"{how.name} came after the plan"
    eventually(lambda: not plan_oracle.scratch_namespaces(cluster), 60)
    cluster.kubectl("delete", "namespace", "many", "--wait=false")
    assert plan_oracle.foreign_writes(cluster) == []

    # a plan for a user without rights: everything is refused by RBAC, and --fail-on reports it
    done = subprocess.run(
        [
            *(*foresail, "backup-world-3", "--namespace-mappings=world-3:nowhere", kubeconfig),
            *("--as=nobody", "--output=json", "--fail-on=refused"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    refused = {each.get("refusedBy") for each in found["items"] if each["outcome"] == "refused"}
    assert refused <= {"RBAC", "namespace"}
    assert refused
