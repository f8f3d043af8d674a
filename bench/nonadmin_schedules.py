"""How ten thousand NonAdminSchedules fare: `make bench-tenant-schedules`, at a tenth `SIZE=0.1`.

The last line is one JSON object. It fails if a figure misses its bound; below the full size only those bounds hold
that do not depend on it.
"""

import argparse
import json
import sys
import time
from datetime import datetime, timedelta
from typing import Any

from bench.arrivals import Arrivals
from bench.figures import Bounds, verdict
from bench.operator import SELF_SERVICE_USER, operator
from bench.selfservice.world import FLAGS, create_namespaces, install_policy, tenant, world
from bench.silence import heard, silence_of
from bench.writing import create_all
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_SCHEDULE
from foresail.kube.clock import now
from foresail.plan import Body, Key
from testbed import Cluster

MANY, DUE, IDLE_SECONDS = 10_000, 1_000, 120.0
NEVER = "0 3 1 1 *"  # not while we measure
AHEAD = timedelta(seconds=60)  # in which the operator reads the schedules that will be due

AT_ANY_SIZE: Bounds = {
    "idle_writes is 0": lambda f: f["idle_writes"] == 0,
    "lag_p99_s is at most 8": lambda f: f["lag_p99_s"] <= 8,
    "twice is 0": lambda f: f["twice"] == 0,
}
AT_FULL_SIZE: Bounds = {"resident_mib is at most 512": lambda f: f["resident_mib"] <= 512}


def schedules(count: int, text: str, word: str) -> list[tuple[Key, Body]]:
    """Return so many NonAdminSchedules, spread over all tenants."""
    spec = {"schedule": text, "template": {"backupSpec": {"ttl": "24h"}}}
    kind = {"apiVersion": NON_ADMIN_SCHEDULE.api_version, "kind": NON_ADMIN_SCHEDULE.name}
    keys = [Key(tenant(number), f"{word}-{number:05}") for number in range(count)]
    return [(key, {**kind, "metadata": {"name": key.name, "namespace": key.namespace}, "spec": spec}) for key in keys]


def measure(cluster: Cluster, many: int, due: int, idle: float) -> dict[str, Any]:
    """Let many wait in silence, and then some be due in the same minute."""
    install_policy(cluster, "measured", schedules={"minimumInterval": "1s", "maximum": 1_000_000})
    create_namespaces(cluster, sorted({tenant(number) for number in range(many)}))
    create_all(cluster, NON_ADMIN_SCHEDULE, schedules(many - due, NEVER, "idle"))
    with operator(cluster, *FLAGS, settled="selfservice") as process:
        process.wait_events()
        before = len(heard(cluster, SELF_SERVICE_USER))
        time.sleep(idle)
        quiet = silence_of(heard(cluster, SELF_SERVICE_USER)[before:])
        tick = (now() + AHEAD + timedelta(minutes=1)).replace(second=0, microsecond=0)
        text = f"{tick.minute} {tick.hour} {tick.day} {tick.month} *"
        create_all(cluster, NON_ADMIN_SCHEDULE, schedules(due, text, "due"))
        lags = _lags(cluster, due, tick)
        resident = process.memory_mib()
    found = cluster.get("nonadminbackups.oadp.openshift.io", "--all-namespaces")["items"]
    return {
        "schedules": many,
        "idle_seconds": idle,
        **quiet,
        "due": due,
        "created": len(found),
        "twice": len(found) - due,
        "lag_p50_s": round(lags[len(lags) // 2], 3),
        "lag_p99_s": round(lags[max(int(len(lags) * 0.99) - 1, 0)], 3),
        "resident_mib": round(resident, 1),
    }


def _lags(cluster: Cluster, due: int, tick: datetime) -> list[float]:
    with Arrivals(cluster, NON_ADMIN_BACKUP, "") as arrivals:
        time.sleep(max((tick - now()).total_seconds(), 0.0))
        arrivals.wait(due, 120)
        return sorted(arrivals.lags(tick))


def main() -> int:
    """Measure, print, and say which bounds are missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.nonadmin_schedules", description=__doc__)
    parser.add_argument("--size", type=float, default=1.0, help="the part of the full size, such as 0.1")
    size = parser.parse_args().size
    with world(audit=True) as cluster:
        figures = measure(cluster, int(MANY * size), int(DUE * size), IDLE_SECONDS * max(size, 0.25))
    print(json.dumps({"size": size, **figures}), flush=True)
    return verdict({"size": size, **figures}, AT_ANY_SIZE | (AT_FULL_SIZE if size >= 1 else {}))


if __name__ == "__main__":
    sys.exit(main())
