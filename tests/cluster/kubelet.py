"""The part of the kubelet: Velero and the operator run as their Deployments say, beside the cluster."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testbed import Cluster
from tests.cluster.meanwhile import meanwhile
from tests.cluster.operators import Operator

_PODS = "/api/v1/namespaces/velero/pods?labelSelector=app.kubernetes.io%2Fpart-of%3Dforesail"
_DEPLOYMENTS = "/apis/apps/v1/namespaces/velero/deployments"

BROKEN = ["an image that cannot be pulled: its tag is broken"]
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
_WAITING = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
_CONTAINER = {"name": "operator", "image": "x", "imageID": "", "ready": False, "restartCount": 0, "state": _WAITING}
REFUSED = {"containerStatuses": [_CONTAINER]}


def _is_broken(pod: dict[str, Any]) -> bool:
    return str(pod["containers"][0]["image"]).endswith(":broken")


class Kubelet:
    """Looks at the Deployments, restarts Velero when its arguments change, and runs one replica of each operator."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster, self._folder = cluster, folder
        self._velero = self._arguments("velero")
        self._running: dict[str, list[str]] = {}
        self._operators: dict[str, Operator] = {}

    @property
    def operator(self) -> Operator | None:
        """The operator of Schedules."""
        return self._operators.get("foresail-schedules")

    @property
    def runs_any(self) -> bool:
        """Whether any operator runs."""
        return bool(self._operators)

    def look(self) -> None:
        """Bring what runs in line with the Deployments, Velero first."""
        velero = self._arguments("velero")
        if velero != self._velero:
            self._cluster.fault.restart("velero")
            self._velero = velero
        for name in ("foresail-schedules", "foresail-self-service", "foresail-primers", "foresail-rollback"):
            self._look_at(name)
        self._report_pods()

    def _report_pods(self) -> None:
        """Report on the operator's pods, which no node runs: ready, or without their image."""
        for pod in self._cluster.listed(_PODS):
            if pod["status"].get("phase") == "Running" or pod["status"].get("containerStatuses"):
                continue
            status = json.dumps({"status": REFUSED if _is_broken(pod["spec"]) else READY})
            words = ("patch", "pod", pod["metadata"]["name"], "--namespace=velero", "--subresource=status")
            self._cluster.kubectl(*words, "--type=merge", f"--patch={status}")

    def _look_at(self, name: str) -> None:
        wanted = self._arguments(name)
        if wanted is BROKEN:
            return  # what runs goes on
        if wanted != self._running.get(name, []) and name in self._operators:
            self._operators[name].stop()
            del self._operators[name]
        if wanted and name not in self._operators:
            assert wanted[:2] == ["operator", "run"]
            operator = Operator(self._cluster, self._folder, *wanted[2:])
            self._operators[name] = operator
            operator.start()
        self._running[name] = wanted

    def _arguments(self, name: str) -> list[str]:
        one = [each for each in self._cluster.listed(_DEPLOYMENTS) if each["metadata"]["name"] == name]
        if one and _is_broken(one[0]["spec"]["template"]["spec"]):
            return BROKEN
        return list(one[0]["spec"]["template"]["spec"]["containers"][0]["args"]) if one else []

    def end(self) -> None:
        """Let nothing of it run on."""
        for each in self._operators.values():
            each.kill()


@contextmanager
def kubelet(cluster: Cluster, folder: Path) -> Iterator[Kubelet]:
    """Play it until the block ends."""
    played = Kubelet(cluster, folder)
    try:
        with meanwhile(played.look, every=0.2):
            yield played
    finally:
        played.end()
