"""How cost grows with the number of objects: `make bench-scale`, `python -m bench.scale --base 100` for a rehearsal.

One operator with schedules and self-service among 1, 3 and 10 times as many finished backups of tenants and Schedules
that are not due, each time on a new cluster. The last line is one JSON object; docs/draw_scale.py draws it.
"""

import argparse
import os
import sys
import time
from statistics import median
from typing import Any

from bench.arrivals import Arrivals
from bench.figures import Bounds, verdict
from bench.operator import Operator, operator
from bench.schedules.__main__ import NEVER
from bench.schedules.world import create_schedules
from bench.selfservice.scale import check, first, multiply
from bench.selfservice.speed import one, when_created
from bench.selfservice.world import create_namespaces, request, world
from bench.writing import create_all
from foresail.api.nonadmin import NON_ADMIN_BACKUP
from foresail.kube.clock import now
from testbed import Cluster, api
from testbed.ports import Port
from testbed.velero import switch_off
from tests.cluster import tenants

FACTORS = (1, 3, 10)
BACKUPS_PER_SCHEDULE = 10
BURST, SINGLE, SCRAPES = 500, 20, 50
BUSY = "busy"  # the namespace in which requests come while the others are quiet
_LONGEST = 300.0
FLAGS = ("--schedules", "--self-service", "--self-service-window=0", "--self-service-restore-window=0")
_WRITES, _SECONDS = "foresail_writes_total", "workqueue_work_duration_seconds"
_QUEUE = '{name="selfservice"}'
_ETCD = "etcd_mvcc_db_total_size_in_use_in_bytes"

BOUNDS: Bounds = {
    "scrape_cpu_ms is at most 50": lambda f: max(_rows(f, "scrape_cpu_ms")) <= 50,
    "reconcile_cpu_ms at ten times as many is at most three times as much": lambda f: _grows(f, "reconcile_cpu_ms"),
    "rss_mib at ten times as many is at most ten times as much": lambda f: (
        _rows(f, "rss_mib")[-1] <= _rows(f, "rss_mib")[0] * 10
    ),
}


def measure(backups: int) -> dict[str, Any]:
    """Measure one operator among so many finished backups, and a tenth of it as Schedules."""
    schedules = backups // BACKUPS_PER_SCHEDULE
    with world() as cluster:
        tenants.install(cluster, schedules=True)
        switch_off(cluster.site, ("schedule",))  # so that the operator serves the Schedules; Velero itself is down
        create_namespaces(cluster, [BUSY])
        create_schedules(cluster, schedules, NEVER)
        with operator(cluster, *FLAGS, settled="schedules"):
            pass  # each Schedule has its status now
        multiply(cluster, first(cluster), backups)
        check(cluster, backups)
        with operator(cluster, *FLAGS) as process:
            process.wait_synced()  # an API server that has just started refuses watches for some seconds
        row: dict[str, Any] = {
            "backups": backups,
            "schedules": schedules,
            "objects": 2 * backups + schedules + backups // 10,
        }
        with operator(cluster, *FLAGS) as process:
            row |= _cold_start(process) | _scrape(process) | _reconcile(cluster, process)
            row["etcd_mib"] = _etcd_mib(cluster)
    print(row, flush=True)
    return row


def _cold_start(process: Operator) -> dict[str, Any]:
    synced, used = process.wait_synced(), process.wait_idle()
    return {
        "rss_mib": round(process.memory_mib(), 1),
        "rss_peak_mib": round(process.memory_mib("VmHWM"), 1),
        "sync_s": round(synced, 1),
        "cold_start_s": round(process.idle_after, 1),
        "cold_start_cpu_s": round(used, 1),
    }


def _scrape(process: Operator) -> dict[str, Any]:
    took, series, before = [], 0, process.cpu_seconds
    for _ in range(SCRAPES):
        begun = time.perf_counter()
        series = len(process.figures())
        took.append(time.perf_counter() - begun)
    used = (process.cpu_seconds - before) / SCRAPES
    return {"scrape_ms": round(median(took) * 1e3, 1), "scrape_cpu_ms": round(used * 1e3, 1), "series": series}


def _reconcile(cluster: Cluster, process: Operator) -> dict[str, Any]:
    """Let many requests come at once, then some one after the other."""
    before, used = process.figures(), process.cpu_seconds
    seconds = _burst(cluster)
    after, used = process.figures(), process.cpu_seconds - used

    def more(family: str, labels: str = "") -> float:
        return sum(value - before.get(name, 0) for name, value in after.items() if name.startswith(family + labels))

    reconciles = more(f"{_SECONDS}_count", _QUEUE)
    with _arrivals(cluster) as arrivals:
        alone = [one(cluster, arrivals, BUSY, f"single-{number}") for number in range(SINGLE)]
    return {
        "burst_s": round(seconds, 1),
        "writes_per_s": round(more(_WRITES) / seconds, 1),
        "reconcile_ms": round(more(f"{_SECONDS}_sum", _QUEUE) / reconciles * 1e3, 1),
        "reconcile_cpu_ms": round(used / reconciles * 1e3, 2),
        "request_to_created_ms": round(median(alone) * 1e3, 1),
    }


def _burst(cluster: Cluster) -> float:
    """Create many requests at once; return the seconds until the last of them is seen Created."""
    with _arrivals(cluster) as arrivals:
        begun = now()
        create_all(cluster, NON_ADMIN_BACKUP, [request(BUSY, f"burst-{number:04}") for number in range(BURST)])
        arrivals.wait(BURST + 1, _LONGEST)
        return arrivals.lags(begun)[-1]


def _arrivals(cluster: Cluster) -> Arrivals:
    """Return a stopwatch that sees nothing of the backups that are there already."""
    return Arrivals(cluster, NON_ADMIN_BACKUP, BUSY, note=when_created)


def _etcd_mib(cluster: Cluster) -> float:
    page = api.request("GET", f"{cluster.site.url(Port.ETCD, 'http')}/metrics").text
    (size,) = (line.split()[1] for line in page.splitlines() if line.startswith(f"{_ETCD} "))
    return round(float(size) / 2**20, 1)


def _rows(figures: Any, name: str) -> list[float]:  # noqa: ANN401 - as JSON has them
    return [row[name] for row in figures["rows"]]


def _grows(figures: Any, name: str) -> bool:  # noqa: ANN401 - as JSON has them
    found = _rows(figures, name)
    return found[-1] <= found[0] * 3


def main() -> int:
    """Measure each size, and print all of it."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--base", type=int, default=1000, help="backups at the smallest size (default: 1000)")
    base = parser.parse_args().base
    load = [round(os.getloadavg()[1], 1)]
    rows = [measure(base * factor) for factor in FACTORS]
    load.append(round(os.getloadavg()[1], 1))
    return verdict({"base": base, "load": load, "rows": rows}, BOUNDS)


if __name__ == "__main__":
    sys.exit(main())
