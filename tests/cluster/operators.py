"""The operator as its own process, under the ServiceAccount and the permissions that the chart gives it."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed import Cluster
from testbed.build import program

CHART = Path(__file__).parents[2] / "charts" / "foresail"
USER = "system:serviceaccount:velero:foresail"
_READY_SECONDS = 180.0  # on a machine that does much else beside it


def install(cluster: Cluster) -> None:
    """Create what the chart renders: a ServiceAccount with just the permissions that the operator needs."""
    command = [str(program("helm", "helm")), "template", "foresail", str(CHART), "--namespace=velero"]
    rendered = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", text=rendered)


class Operator:
    """One replica, always under the same name: killed and started again as often as a test likes."""

    def __init__(self, cluster: Cluster, folder: Path, *flags: str) -> None:
        self.log = folder / "operator.log"
        self._command = [
            sys.executable, "-m", "foresail", "operator", "run",
            f"--kubeconfig={cluster.service_account_kubeconfig('velero', 'foresail')}",
            "--identity=operator", "--host=127.0.0.1", "--port=0", *flags,
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self._from = 0  # where in the log the running process begins

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
        while not (self.is_ready() and self.said("leads now")):
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
        assert self._process.wait(20) == 0
        self._process = None

    @property
    def lines(self) -> list[dict[str, str]]:
        """What the running process has written to its log."""
        if not self.log.exists():
            return []
        text = self.log.read_bytes()[self._from :].decode()
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def said(self, text: str) -> list[dict[str, str]]:
        """Return the lines with that text in their message."""
        return [line for line in self.lines if text in line["message"]]

    def ask(self, path: str) -> tuple[int, str]:
        """Ask the running process over HTTP; code 0 if it does not listen yet."""
        started = self.said("answers on port")
        if not started:
            return 0, ""
        port = started[-1]["message"].rpartition(" ")[2]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()
        except urllib.error.URLError:
            return 0, ""

    def is_ready(self) -> bool:
        """Tell whether it has read everything that it watches."""
        return self.ask("/readyz") == (200, "ok\n")

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
        cluster.kubectl("delete", "lease", "foresail", "--namespace=velero", "--ignore-not-found")
