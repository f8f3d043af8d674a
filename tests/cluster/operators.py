"""The operator as its own process, under the ServiceAccount and the permissions that the chart gives it."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from foresail.api.marks import SCHEDULES_LEASE, SELF_SERVICE_LEASE
from testbed import Cluster
from testbed.build import program
from tests.cluster.speaking import Speaking

CHART = Path(__file__).parents[2] / "charts" / "foresail"
USER = f"system:serviceaccount:velero:{SCHEDULES_LEASE}"
SELF_SERVICE_USER = f"system:serviceaccount:velero:{SELF_SERVICE_LEASE}"
PRIMERS_USER = "system:serviceaccount:velero:foresail-primers"
SELF_SERVICE = ("--schedules=false", "--self-service", "--heed-schedules")
"""The flags of self-service beside an operator of Schedules."""

_LEASE = "--lease-name="
_READY_SECONDS = 180.0  # on a machine that does much else beside it


def install(cluster: Cluster) -> None:
    """Create what the chart renders: a ServiceAccount with just the permissions that the operator needs."""
    command = [str(program("helm", "helm")), "template", "foresail", str(CHART), "--namespace=velero"]
    rendered = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", text=rendered)


def lease_of(flags: Sequence[str]) -> str:
    """Return the Lease that flags name or mean, whose name the chart gives to the ServiceAccount too."""
    otherwise = SELF_SERVICE_LEASE if "--schedules=false" in flags else SCHEDULES_LEASE
    return next((flag.removeprefix(_LEASE) for flag in flags if flag.startswith(_LEASE)), otherwise)


class Operator(Speaking):
    """One replica, always under the same name: killed and started again as often as a test likes."""

    def __init__(
        self, cluster: Cluster, folder: Path, *flags: str, program: Sequence[str] = ("-m", "foresail")
    ) -> None:
        super().__init__(folder / ("operator.log" if lease_of(flags) == SCHEDULES_LEASE else f"{lease_of(flags)}.log"))
        self._command = [
            sys.executable, *program, "operator", "run",
            f"--kubeconfig={cluster.service_account_kubeconfig('velero', lease_of(flags))}",
            "--identity=operator", "--host=127.0.0.1", "--port=0", "--schedule-metrics-for-all", *flags,
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its process, which must run."""
        assert self._process is not None
        return self._process.pid

    def begin(self, **variables: str) -> subprocess.Popen[bytes]:
        """Start it, with further variables in its environment, and do not wait."""
        self._from = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stderr=log, env={**os.environ, **variables})
        return self._process

    def start(self) -> None:
        """Start it and return when it leads and is ready."""
        process = self.begin()
        deadline = time.monotonic() + _READY_SECONDS
        while not (self.is_ready() and self.said("became leader")):
            assert process.poll() is None, f"it ended by itself:\n{self.log.read_text()}"
            assert time.monotonic() < deadline, f"not ready within {_READY_SECONDS:g} s:\n{self.log.read_text()}"
            time.sleep(0.05)

    def kill(self) -> None:
        """End it with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End it with SIGTERM, as a rollout does, and see that it ends in order."""
        assert self._process is not None
        self._process.terminate()
        assert self._process.wait(60) == 0
        self._process = None

    def figures(self, schedule: str = "") -> dict[str, float]:
        """Return its metrics, all of them or those of one Schedule by their short names."""
        rows = [line.rsplit(" ", 1) for line in self.ask("/metrics")[1].splitlines() if not line.startswith("#")]
        found = {name: float(value) for name, value in rows}
        if not schedule:
            return found
        mine = {name: value for name, value in found.items() if f'schedule="{schedule}"' in name}
        return {_short(name): value for name, value in mine.items()}


def _short(name: str) -> str:
    """Return the name of a figure about one Schedule without what they all have in common."""
    family, _, labels = name.removeprefix("foresail_schedule_").partition("{")
    others = [each for each in labels[:-1].split(",") if not each.startswith(("namespace=", "schedule="))]
    return f"{family}{{{','.join(others)}}}" if others else family


@contextmanager
def running(cluster: Cluster, folder: Path, *flags: str) -> Iterator[Operator]:
    """Run the operator for a while; at the end it is gone, and its Lease is free."""
    operator = Operator(cluster, folder, *flags)
    try:
        operator.start()
        yield operator
    finally:
        operator.kill()
        cluster.kubectl("delete", "lease", lease_of(flags), "--namespace=velero", "--ignore-not-found")
