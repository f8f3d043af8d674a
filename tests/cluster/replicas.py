"""The example controller as processes of their own, each with its log, as a ServiceAccount with just what it needs."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from testbed import Cluster
from tests.cluster import parents
from tests.cluster.kinds import rule
from tests.cluster.speaking import Speaking

EXAMPLE = Path(__file__).parents[2] / "examples" / "replicated.py"
ACCOUNT = "replicated"
USER = f"system:serviceaccount:default:{ACCOUNT}"
LEASE = "one-child-each"


def permit(cluster: Cluster) -> None:
    """Create the kind, and the ServiceAccount that a replica is: the Lease's rights hold in its namespace only."""
    parents.install(cluster, ACCOUNT, rule("events.k8s.io", ["events"], "create"))
    here = {"name": ACCOUNT, "namespace": "default"}
    rbac = "rbac.authorization.k8s.io"
    cluster.apply(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "Role",
            "metadata": here,
            "rules": [rule("coordination.k8s.io", ["leases"], "get", "create", "patch")],
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": here,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", **here}],
        },
    )


class Replica(Speaking):
    """A process, and what it wrote to its log."""

    def __init__(
        self,
        kubeconfig: Path,
        log: Path,
        script: Path = EXAMPLE,
        argument: str = "0",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(log)
        self.identity = log.stem
        with self.log.open("w") as stream:
            command = [sys.executable, str(script), str(kubeconfig), self.identity, argument]
            self.process = subprocess.Popen(command, stderr=stream, env={**os.environ, **(environment or {})})

    def is_stopped(self) -> bool:
        return Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def holder(cluster: Cluster) -> str:
    """Return who holds the Lease: nobody, too, as long as no replica has made it."""
    found = cluster.get("lease", f"--field-selector=metadata.name={LEASE}")["items"]
    return str(found[0]["spec"].get("holderIdentity", "")) if found else ""
