"""The operator as an administrator starts it: its own process, the chart's ServiceAccount."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.processes import Process, free_port
from foresail.api.marks import SCHEDULES_LEASE, SELF_SERVICE_LEASE
from testbed import Cluster
from tests.cluster.operators import lease_of

NAMESPACE = "velero"
_LEADER = "leader_election_master_status"
_EVENTS, _EVENT_PAUSE = "foresail_events", 10.0
SCHEDULES_USER = f"system:serviceaccount:{NAMESPACE}:{SCHEDULES_LEASE}"
SELF_SERVICE_USER = f"system:serviceaccount:{NAMESPACE}:{SELF_SERVICE_LEASE}"


class Operator(Process):
    """One replica, if nothing else is said the only one."""

    def __init__(self, cluster: Cluster, *flags: str, identity: str = "measured", log: Path | None = None) -> None:
        port = free_port()
        kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, lease_of(flags))
        command = [sys.executable, "-m", "foresail", "operator", "run", f"--kubeconfig={kubeconfig}"]
        command += [f"--port={port}", "--host=127.0.0.1", f"--identity={identity}", "--log-level=warning", *flags]
        super().__init__(command, port, keep=False, log=log)

    def wait_settled(self, controller: str) -> None:
        """Wait until the queue of what was there at the start is empty, and of what came back of it."""
        empty = 0

        def settled() -> bool:
            nonlocal empty
            empty = empty + 1 if self._is_settled(controller) else 0
            return empty > 3  # a few times in a row: what was written comes back as a change

        self.wait_for(settled)

    def wait_events(self) -> None:
        """Wait until no Event has been written for a while: they are written after everything else."""
        before, written = -1.0, 0.0
        while written != before:
            self.must_live()
            time.sleep(_EVENT_PAUSE)
            figures = self.figures()
            before, written = written, sum(figures[each] for each in figures if each.startswith(_EVENTS))

    def _is_settled(self, controller: str) -> bool:
        found = self.figures()
        leads = any(name.startswith(_LEADER) and value for name, value in found.items())
        return leads and not found[f'workqueue_depth{{name="{controller}"}}']


@contextmanager
def operator(cluster: Cluster, *flags: str, settled: str = "") -> Iterator[Operator]:
    """Run the operator until the block ends; with a controller to be settled, the block begins when it is."""
    with Operator(cluster, *flags) as process:
        if settled:
            process.wait_settled(settled)
        yield process
        process.end()
