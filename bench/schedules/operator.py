"""The operator as an administrator starts it: its own process, the chart's ServiceAccount."""

import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from bench import MeasurementError
from bench.runtime.processes import free_port
from bench.schedules.world import ACCOUNT, NAMESPACE
from testbed import Cluster

_LONGEST = 120.0


@contextmanager
def operator(cluster: Cluster) -> Iterator[None]:
    """Run the operator until the block ends; it begins when the queue of what was there at the start is empty."""
    kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, ACCOUNT)
    port = free_port()
    command = [sys.executable, "-m", "foresail", "operator", "run", f"--kubeconfig={kubeconfig}"]
    command += [f"--port={port}", "--host=127.0.0.1", "--identity=measured", "--log-level=warning"]
    with subprocess.Popen(command) as process:
        try:
            _wait_settled(process, port)
            yield
            if process.poll() is not None:
                raise MeasurementError(f"the operator ended by itself with {process.returncode}")
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        finally:
            process.kill()


def _wait_settled(process: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + _LONGEST
    empty = 0
    while empty < 3:  # a few times in a row: what was written comes back as a change
        if process.poll() is not None or time.monotonic() > deadline:
            raise MeasurementError("the operator does not settle")
        time.sleep(1)
        empty = empty + 1 if _is_settled(port) else 0


def _is_settled(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
    except (urllib.error.URLError, OSError):
        return False
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    leads = float(lines.get("foresail_leader", "0")) == 1.0
    return leads and float(lines.get('foresail_queue_depth{controller="schedules"}', "1")) == 0.0
