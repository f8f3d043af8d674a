"""Everything at once: `make bench-whole`, `SIZE=0.1` for a tenth, `python -m bench.whole --size 3` for three times.

One cluster with 10,000 namespaces, 100,000 NonAdminBackups with their Velero Backups, 10,000 Schedules under 50
policies, 1,000 NonAdminSchedules, 10,000 primed CronJobs and 1,000 RestoreChecks, and one operator of each kind. The
last line is one JSON object; it fails if a figure misses its bound.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from bench import restore_checks
from bench.arrivals import Arrivals
from bench.figures import Bounds, verdict
from bench.operator import NAMESPACE, SCHEDULES_USER, SELF_SERVICE_USER, Operator
from bench.schedules.under_policies import ZONE, lags_of_due
from bench.selfservice.scale import check
from bench.selfservice.speed import BEGUN, one, when_created
from bench.selfservice.world import create_namespaces, request
from bench.silence import asked_while_idle, silence_of
from bench.whole.world import Numbers, filled, numbers
from bench.writing import create_all
from foresail.api.marks import SELF_SERVICE_LEASE
from foresail.api.nonadmin import NON_ADMIN_BACKUP
from testbed import Cluster
from testbed.control_plane import APISERVER
from tests.cluster import operators, primers

DUE, BURST, IDLE_SECONDS, SCRAPES = 2_000, 2_000, 120.0, 20
_WITHOUT_QUEUE = ("--self-service-window=0", "--self-service-restore-window=0")
_LONGEST = 900.0

BOUNDS: Bounds = {
    "memory_mib is at most 800": lambda f: f["memory_mib"] <= 800,
    "cold_start_s is at most 60": lambda f: f["cold_start_s"] <= 60,
    "due_p99_s is at most 8": lambda f: f["due_p99_s"] <= 8,
    "throughput_ratio is at least 0.8": lambda f: f["throughput_ratio"] >= 0.8,
    "idle_writes is 0": lambda f: f["idle_writes"] == 0,
    "scrape_ms is at most 50": lambda f: f["scrape_ms"] <= 50,
}


@dataclass(frozen=True)
class Part:
    """One operator: what it serves, who it is, and its first controller."""

    flags: tuple[str, ...]
    user: str
    controller: str


PARTS = {
    "schedules": Part((), SCHEDULES_USER, "schedules"),
    "self-service": Part((*operators.SELF_SERVICE, *_WITHOUT_QUEUE), SELF_SERVICE_USER, "selfservice"),
    "primers": Part(primers.FLAGS, operators.PRIMERS_USER, "primers"),
    "restore-checks": Part(restore_checks.FLAGS, restore_checks.USER, "restore-checks"),
}

Processes = Mapping[str, Operator]


@contextmanager
def running(cluster: Cluster) -> Iterator[dict[str, Operator]]:
    """Run one operator of each kind."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(Operator(cluster, *part.flags)) for name, part in PARTS.items()}


def settle(processes: Processes) -> None:
    """Wait until everybody has written what was to be written."""
    for name, process in processes.items():
        process.wait_settled(PARTS[name].controller)
    for process in processes.values():
        process.wait_events()


def cold_start(processes: Processes) -> dict[str, Any]:
    """Return how long all of them need together, and what they hold then."""
    for process in processes.values():
        process.wait_synced()
    used = {name: round(process.wait_idle(), 1) for name, process in processes.items()}
    held = {name: round(process.memory_mib(), 1) for name, process in processes.items()}
    peaks = {name: round(process.memory_mib("VmHWM"), 1) for name, process in processes.items()}
    return {
        "cold_start_s": round(max(process.idle_after for process in processes.values()), 1),
        "cold_start_cpu_s": used,
        "memory_mib": round(sum(held.values()), 1),
        "memory_of": held,
        "memory_peak_of": peaks,
    }


def quiet(cluster: Cluster, processes: Processes, seconds: float, backups: int) -> dict[str, Any]:
    """Return what is asked and used while nothing happens, and what a scrape costs."""
    before = {name: process.cpu_seconds for name, process in processes.items()}
    time.sleep(seconds)
    used = {name: process.cpu_seconds - before[name] for name, process in processes.items()}
    scrapes = {name: _scrape(process) for name, process in processes.items()}
    asked = asked_while_idle(cluster, {PARTS[name].user: process for name, process in processes.items()}, seconds)
    cluster.fault.restart(APISERVER)  # without its audit log
    check(cluster, backups)  # it has everything in its cache again
    return {
        "idle_seconds": seconds,
        "idle_millicores": round(sum(used.values()) / seconds * 1000, 1),
        "idle_millicores_of": {name: round(each / seconds * 1000, 1) for name, each in used.items()},
        "scrape_ms": max(scrapes.values()),
        "scrape_ms_of": scrapes,
        **silence_of(asked),
    }


def _scrape(process: Operator) -> float:
    """Return the milliseconds of CPU of one scrape."""
    before = process.cpu_seconds
    for _ in range(SCRAPES):
        process.figures()
    return round((process.cpu_seconds - before) / SCRAPES * 1000, 1)


def due(cluster: Cluster, process: Operator, count: int) -> dict[str, Any]:
    """Let many Schedules be due in one second; return how late their Backups are."""
    _, lags = lags_of_due(cluster, process, 0, count, ZONE)
    return {
        "due": count,
        "due_p50_s": round(lags[len(lags) // 2], 2),
        "due_p99_s": round(lags[max(int(len(lags) * 0.99) - 1, 0)], 2),
    }


def throughput(cluster: Cluster, count: int) -> dict[str, Any]:
    """Return how many requests a second a bare loop serves, and one operator, in this cluster."""
    create_namespaces(cluster, ["bare", "busy"])
    kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, SELF_SERVICE_LEASE)
    command = [sys.executable, "-m", "bench.selfservice.bare", str(kubeconfig), "bare"]
    create_all(cluster, NON_ADMIN_BACKUP, [request("bare", f"bare-{number:05}") for number in range(count)])
    with _created(cluster, "bare") as arrivals:
        subprocess.run(command, check=True)
        bare = _rate(arrivals, count)
    create_all(cluster, NON_ADMIN_BACKUP, [request("busy", f"busy-{number:05}") for number in range(count)])
    with _created(cluster, "busy") as arrivals, Operator(cluster, *PARTS["self-service"].flags):
        ours = _rate(arrivals, count)
    return {
        "burst": count,
        "bare_per_s": round(bare, 1),
        "ours_per_s": round(ours, 1),
        "throughput_ratio": round(ours / bare, 2),
    }


def _created(cluster: Cluster, namespace: str) -> Arrivals:
    """Return a stopwatch that sees nothing of the backups that are there already."""
    return Arrivals(cluster, NON_ADMIN_BACKUP, namespace, note=when_created)


def _rate(arrivals: Arrivals, count: int) -> float:
    """Return how many requests were served in a second, from the first write to the last request that is Created."""
    arrivals.wait(count + 1, _LONGEST)
    return count / arrivals.lags(arrivals.seen[BEGUN])[-1]


def failover(cluster: Cluster) -> dict[str, Any]:
    """Kill the operator of self-service, and return until a request is served by the one that waited."""
    flags = PARTS["self-service"].flags
    with ExitStack() as stack:
        leader = stack.enter_context(Operator(cluster, *flags, identity="leader"))
        leader.wait_settled("selfservice")
        follower = stack.enter_context(Operator(cluster, *flags, identity="follower"))
        follower.wait_synced()
        follower.wait_idle()
        arrivals = stack.enter_context(_created(cluster, "busy"))
        alone = one(cluster, arrivals, "busy", "before")
        leader.__exit__(None, None, None)
        return {"request_s": round(alone, 2), "failover_s": round(one(cluster, arrivals, "busy", "after"), 2)}


def measure(cluster: Cluster, size: float) -> dict[str, Any]:
    """Measure one after the other."""
    backups = numbers(size).backups
    with running(cluster) as processes:
        settle(processes)
    figures: dict[str, Any] = {}

    def add(more: dict[str, Any]) -> None:
        figures.update(more)
        print(json.dumps(more), flush=True)

    with running(cluster) as processes:
        add(cold_start(processes))
        add(quiet(cluster, processes, IDLE_SECONDS * min(max(size, 0.25), 1.0), backups))
        add(due(cluster, processes["schedules"], min(round(DUE * size), DUE)))
        processes["self-service"].end()
        add(throughput(cluster, min(round(BURST * size), BURST)))
        add(failover(cluster))
    return figures


def main() -> int:
    """Measure, print, and say which bounds are missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.whole", description=__doc__)
    parser.add_argument("--size", type=float, default=1.0, help="the part of the full size, such as 0.1")
    size = parser.parse_args().size
    wanted: Numbers = numbers(size)
    began, load = time.monotonic(), [round(os.getloadavg()[1], 1)]
    with filled(wanted) as cluster:
        filled_s = round(time.monotonic() - began)
        print(f"filled in {filled_s} s: {wanted}", flush=True)
        figures = measure(cluster, size)
    load.append(round(os.getloadavg()[1], 1))
    head = {"size": size, **msgspec.structs.asdict(wanted), "namespaces": wanted.backups // 10, "load": load}
    return verdict({**head, "filled_s": filled_s, **figures}, BOUNDS)


if __name__ == "__main__":
    sys.exit(main())
