"""Labels 5,000 namespaces at once on a real API server: `make bench-protection`, `SIZE=0.1` for a tenth.

Until when each is in a Schedule and has a Protection, what is written afterwards while nothing happens, and the memory
of one operator with Schedules beside another with Schedules and protection. The last line is one JSON object.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from bench.figures import Bounds, verdict
from bench.operator import NAMESPACE, operator
from bench.processes import Process, free_port
from bench.protection_kills import LABEL, PROTECTION, prepare
from bench.silence import asked_while_idle, silence_of
from bench.writing import create_all
from foresail.api.core import NAMESPACE as NAMESPACES
from foresail.api.protection import PROTECTION as PROTECTIONS
from foresail.api.velero import SCHEDULE
from foresail.plan import Key
from testbed import Cluster, Options

MOST, IDLE_SECONDS = 5_000, 60.0
_LONGEST = 1800.0
_ALL = "teams=all"
_ACCOUNT = f"system:serviceaccount:{NAMESPACE}:foresail-protection"

BOUNDS: Bounds = {
    "in_schedules_s is at most 60": lambda f: f["in_schedules_s"] <= 60,
    "idle_writes is 0": lambda f: f["idle_writes"] == 0,
    "memory_ratio is at most 1.25": lambda f: f["memory_ratio"] <= 1.25,
}


def measure(cluster: Cluster, count: int) -> dict[str, Any]:
    """Create so many namespaces, label them at once, and measure."""
    names = [f"team-{number:05}" for number in range(count)]
    body = {"schedule": "0 0 29 2 *", "template": {"ttl": "720h"}}
    kind = {"apiVersion": "foresail.dev/v1alpha1", "kind": "ProtectionClass", "metadata": {"name": "gold"}}
    cluster.apply({**kind, "spec": body})
    create_all(cluster, NAMESPACES, ((Key("", name), _namespace(name)) for name in names))
    _settled(cluster, count)
    found: dict[str, Any] = {"namespaces": count}
    with operator(cluster, *PROTECTION, settled="protection") as process:
        began = time.monotonic()
        cluster.kubectl("label", "namespace", f"--selector={_ALL}", f"{LABEL}=gold")  # as an administrator does
        found["labelled_s"] = round(time.monotonic() - began, 1)
        found["in_schedules_s"] = _until(began, lambda: _in_schedules(cluster) == count)
        found["protections_s"] = _until(began, lambda: _protections(cluster) == count)
        found["schedules"] = len(cluster.listed(f"/apis/velero.io/v1/namespaces/{NAMESPACE}/schedules"))
        found["rss_mib"] = round(process.memory_mib(), 1)
        process.wait_settled("protection")
        found |= silence_of(asked_while_idle(cluster, {_ACCOUNT: process}, IDLE_SECONDS))
    return found | _memory(cluster)


def _namespace(name: str) -> dict[str, Any]:
    key, _, text = _ALL.partition("=")
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {key: text}}}


def _settled(cluster: Cluster, count: int) -> None:
    """Wait until Kubernetes has put into the namespaces what each of them has."""
    began = time.monotonic()
    _until(began, lambda: len(cluster.listed("/api/v1/serviceaccounts?limit=100000")) >= count)
    time.sleep(10)


def _until(began: float, holds: Callable[[], bool]) -> float:
    while not holds():
        if time.monotonic() - began > _LONGEST:
            raise TimeoutError("it takes too long")
        time.sleep(0.5)
    return round(time.monotonic() - began, 1)


def _in_schedules(cluster: Cluster) -> int:
    schedules = cluster.listed(f"/apis/{SCHEDULE.api_version}/namespaces/{NAMESPACE}/schedules")
    return sum(len(each["spec"]["template"]["includedNamespaces"]) for each in schedules)


def _protections(cluster: Cluster) -> int:
    found = cluster.listed(f"/apis/{PROTECTIONS.api_version}/protections")
    return sum(each.get("status", {}).get("class") == "gold" for each in found)


def _memory(cluster: Cluster) -> dict[str, Any]:
    """Run both operators side by side, as an administrator: there is nothing left to write."""
    flags = {"without": ("--schedules",), "with": ("--schedules", "--record-namespaces", "--protection")}
    found: dict[str, float] = {}
    processes = {name: _operator(cluster, name, words) for name, words in flags.items()}
    try:
        for name, process in processes.items():
            process.wait_idle()
            found[name] = process.memory_mib()
    finally:
        for process in processes.values():
            process.__exit__(None, None, None)
    return {
        **{f"rss_{name}_mib": round(mib, 1) for name, mib in found.items()},
        "memory_ratio": round(found["with"] / found["without"], 3),
    }


def _operator(cluster: Cluster, name: str, flags: tuple[str, ...]) -> Process:
    port = free_port()
    command = [sys.executable, "-m", "foresail", "operator", "run", f"--kubeconfig={cluster.kubeconfig}"]
    command += [f"--port={port}", "--host=127.0.0.1", f"--identity={name}", f"--lease-name=measured-{name}"]
    return Process([*command, "--log-level=warning", *flags], port, keep=False)


def main() -> int:
    """Bring up a cluster, measure, and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.protection_scale", description=__doc__)
    parser.add_argument("--size", type=float, default=float(os.environ.get("SIZE") or 1))
    args = parser.parse_args()
    with Cluster.create(f"bench-protection-{os.getpid()}", Options(velero="velero"), owned=True) as cluster:
        prepare(cluster)
        figures = measure(cluster, max(round(MOST * args.size), 20))
    return verdict({**figures, "load": round(os.getloadavg()[1], 1)}, BOUNDS)


if __name__ == "__main__":
    sys.exit(main())
