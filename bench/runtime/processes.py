"""A measured process of the runtime's: started as its ServiceAccount, with the example at hand."""

import sys
from pathlib import Path

from bench.processes import Process, free_port
from bench.runtime.world import ACCOUNT
from testbed import Cluster

_EXAMPLES = Path(__file__).parents[2] / "examples"


class Measured(Process):
    """One process; what it prints when it is told to end is one JSON object."""

    def __init__(self, cluster: Cluster, module: str, *arguments: str) -> None:
        port = free_port()
        kubeconfig = cluster.service_account_kubeconfig("default", ACCOUNT)
        command = [sys.executable, "-m", f"bench.runtime.{module}", str(kubeconfig), str(port), *arguments]
        super().__init__(command, port, {"PYTHONPATH": str(_EXAMPLES)})
