"""A restore plan on the real cluster: beside a real restore, without a trace, and interrupted."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from bench import plan_oracle
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

    # Ctrl-C, while the scratch namespace exists
    command = [sys.executable, "-m", "foresail", "plan", "backup-world-3", "--namespace-mappings=world-3:nowhere"]
    kubeconfig = f"--kubeconfig={planner}"
    for how in (signal.SIGINT, signal.SIGTERM):
        with subprocess.Popen([*command, kubeconfig], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            until = time.monotonic() + 30
            while not plan_oracle.scratch_namespaces(cluster) and process.poll() is None and time.monotonic() < until:
                time.sleep(0.02)
            process.send_signal(how)
            process.communicate(timeout=60)
        eventually(lambda: not plan_oracle.scratch_namespaces(cluster), 30)

    # a plan for a user without rights: everything is refused by RBAC, and --fail-on reports it
    done = subprocess.run(
        [*command, kubeconfig, "--as=nobody", "--output=json", "--fail-on=refused"],
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
