"""The part of the kubelet: Velero and the operator run as their Deployments say, beside the cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed import Cluster
from tests.cluster.meanwhile import meanwhile
from tests.cluster.operators import Operator

_DEPLOYMENTS = "/apis/apps/v1/namespaces/velero/deployments"


class Kubelet:
    """Looks at both Deployments, restarts Velero when its arguments change, and runs one replica of the operator."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster, self._folder = cluster, folder
        self._velero = self._arguments("velero")
        self._running: list[str] = []
        self.operator: Operator | None = None

    def look(self) -> None:
        """Bring what runs in line with the Deployments, Velero first."""
        velero, wanted = self._arguments("velero"), self._arguments("foresail")
        if velero != self._velero:
            self._cluster.fault.restart("velero")
            self._velero = velero
        if wanted != self._running and self.operator is not None:
            self.operator.stop()
            self.operator = None
        if wanted and self.operator is None:
            assert wanted[:2] == ["operator", "run"]
            self.operator = Operator(self._cluster, self._folder, *wanted[2:])
            self.operator.start()
        self._running = wanted

    def _arguments(self, name: str) -> list[str]:
        one = [each for each in self._cluster.listed(_DEPLOYMENTS) if each["metadata"]["name"] == name]
        return list(one[0]["spec"]["template"]["spec"]["containers"][0]["args"]) if one else []

    def end(self) -> None:
        """Let nothing of it run on."""
        if self.operator is not None:
            self.operator.kill()


@contextmanager
def kubelet(cluster: Cluster, folder: Path) -> Iterator[Kubelet]:
    """Play it until the block ends."""
    played = Kubelet(cluster, folder)
    try:
        with meanwhile(played.look, every=0.2):
            yield played
    finally:
        played.end()
