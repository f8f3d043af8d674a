"""How punctual Schedules are: `make bench-schedules`, at a tenth of the size `make bench-schedules SIZE=0.1`.

The last line that it prints is one JSON object with every figure. It fails if a figure misses its bound; at less
than the full size only those bounds hold that do not depend on it.
"""

import argparse
import json
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

from bench.figures import Bounds, beside_bare, measured, verdict
from bench.operator import NAMESPACE, SCHEDULES_USER, operator
from bench.schedules import policies, scrape
from bench.schedules.world import (
    BACKUP_CONTROLLERS,
    arrivals_of_backups,
    arrivals_of_last_backups,
    create_schedules,
    delete_backups,
    next_tick,
    reword_schedules,
    world,
)
from bench.silence import heard
from foresail.api.instants import whole
from foresail.api.marks import SCHEDULES_LEASE
from foresail.kube.clock import now
from testbed import Cluster

DUE, MANY, IDLE_SECONDS = 2_000, 10_000, 300.0
STARTS = (0, 20, 40)  # seconds of the minute: Velero looks once a minute, counted from its start
ROUNDS = 3
MINUTES = 2  # between two ticks; more than Velero needs for all of them
SETTLED = 120.0  # seconds in which the operator has read ten thousand new expressions and noted them
NEVER = "0 3 1 1 *"  # not while we measure
SINGLE = 10
NEAR, LOOKED = timedelta(seconds=3), timedelta(seconds=65)
PARTS = ("single", "punctual", "throughput", "silence", "scrape", "policies")

AT_ANY_SIZE: Bounds = {
    "idle_writes is 0": lambda f: f["idle_writes"] == 0,
    "lag_p99_s is at most 8": lambda f: f["lag_p99_s"] <= 8,
    "policies_memory_ratio is at most 1.1": lambda f: f["policies_memory_ratio"] <= 1.1,
    "policy_edit_reconcile_all_s is at most 60": lambda f: f["policy_edit_reconcile_all_s"] <= 60,
    "lag_p50_s is a tenth of Velero's at most": lambda f: f["lag_p50_s"] * 10 <= f["velero_lag_p50_s"],
}
AT_FULL_SIZE: Bounds = {
    "throughput_ratio is at least 0.8": lambda f: f["throughput_ratio"] >= 0.8,
    "single_lag_s is at most 0.3": lambda f: f["single_lag_s"] <= 0.3,
    "scrape_ms_10k_schedules is at most 50": lambda f: f["scrape_ms_10k_schedules"] <= 50,
    "scrape_ms_10k_namespaces is at most 50": lambda f: f["scrape_ms_10k_namespaces"] <= 50,
}


def single() -> dict[str, object]:
    """Measure one Schedule alone, several runs of it."""
    lags: list[float] = []
    with world() as cluster:
        create_schedules(cluster, 1, "@every 5s")
        with operator(cluster, settled="schedules"):
            delete_backups(cluster)
            with arrivals_of_backups(cluster) as arrivals:
                while len(lags) < SINGLE:
                    arrivals.wait(1, 30)
                    (name, at), *_ = arrivals.seen.items()
                    slot = datetime.strptime(str(name).split("-")[2], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
                    lags.append((at - slot).total_seconds())
                    arrivals.seen.clear()
                    delete_backups(cluster)  # the next one is held until this one has ended
    return {"single_lag_s": round(max(lags), 3), "single_lags_s": [round(each, 3) for each in sorted(lags)]}


def punctual(cluster: Cluster, count: int) -> dict[str, object]:
    """Let Velero's controller and ours serve the same Schedules."""
    velero: list[float] = []
    for second in STARTS:
        time.sleep((second - now().timestamp()) % 60)
        cluster.restart_velero(*BACKUP_CONTROLLERS)  # its schedule controller is on
        velero += _served(cluster, count, 400.0)
    cluster.restart_velero("schedule", *BACKUP_CONTROLLERS)
    with operator(cluster, settled="schedules"):
        ours = _served(cluster, count, 120.0)
    return {
        "schedules": count,
        "lag_p50_s": round(median(ours), 3),
        "lag_p99_s": round(_p99(ours), 3),
        "velero_lag_p50_s": round(median(velero), 1),
        "velero_lag_p99_s": round(_p99(velero), 1),
    }


def throughput(cluster: Cluster, count: int) -> dict[str, object]:
    """Let a bare loop and the operator take turns over the same Schedules, all due in the same minute."""
    bare, ours = [], []
    for _ in range(ROUNDS):
        bare.append(count / _bare(cluster, count))
        delete_backups(cluster)
        with operator(cluster, settled="schedules"):
            ours.append(count / _served_once(cluster, count))
        delete_backups(cluster)
    return {"throughput_schedules": count, **beside_bare(ours, bare)}


def silence(count: int, seconds: float) -> dict[str, object]:
    """Count what the operator asks of the API server while nothing is due."""
    with world(audit=True) as cluster:
        create_schedules(cluster, count, NEVER)
        with operator(cluster, settled="schedules"):
            before = len(heard(cluster, SCHEDULES_USER))
            time.sleep(seconds)
            asked = [each for each in heard(cluster, SCHEDULES_USER)[before:] if not each.resource.startswith("leases")]
    writes = [each for each in asked if each.verb not in ("get", "list", "watch")]
    return {"idle_seconds": seconds, "idle_writes": len(writes), "idle_requests": len(asked)}


def _served(cluster: Cluster, count: int, seconds: float) -> list[float]:
    """Wait for the next tick, and return how long after it each Backup was there."""
    _let_pass(cluster, count)
    tick = next_tick(MINUTES)
    if tick - now() < NEAR:  # too near to be measured: let it pass, with whoever looks once a minute, and take the next
        time.sleep((tick - now() + LOOKED).total_seconds())
        _let_pass(cluster, count)
        tick = next_tick(MINUTES)
    time.sleep(max((tick - now()).total_seconds() - 2.0, 0.0))
    with arrivals_of_backups(cluster) as arrivals:
        arrivals.wait(count, seconds)
        lags = arrivals.lags(tick)
    print(f"{count} Backups, {lags[0]:.2f} to {lags[-1]:.2f} s after {tick:%H:%M:%S}", flush=True)
    if lags[0] < 0:
        raise SystemExit("a Backup was there before the tick: something else made it")
    return lags


def _served_once(cluster: Cluster, count: int) -> float:
    """Let all Schedules be due at one instant of the year, and return how long after it the last one says that it ran.

    A second tick that comes while ten thousand Backups of the first are made or deleted would be measured with it.
    """
    tick = now().replace(second=0, microsecond=0) + timedelta(seconds=SETTLED * count / MANY, minutes=2)
    tick = tick.replace(second=0, microsecond=0)
    reword_schedules(cluster, count, f"{tick.minute} {tick.hour} {tick.day} {tick.month} *")
    with arrivals_of_backups(cluster) as backups, arrivals_of_last_backups(cluster, tick) as said:
        said.wait(count, 400.0)
        made, seconds = backups.lags(tick), said.lags(tick)[-1]
    print(
        f"ours: {count} Backups, {made[0]:.2f} to {made[-1]:.2f} s after the tick, all said after {seconds:.2f} s",
        flush=True,
    )
    if made[0] < 0:
        raise SystemExit("a Backup was there before the tick: the Schedules were not read in time")
    return seconds


def _let_pass(cluster: Cluster, count: int) -> None:
    """Let the late runs of a tick that passed while nobody served it be made, and delete them."""
    time.sleep(5)
    with arrivals_of_backups(cluster) as arrivals:
        time.sleep(1)
        if arrivals.seen:
            arrivals.wait(count, 200)
    delete_backups(cluster)


def _bare(cluster: Cluster, count: int) -> float:
    delete_backups(cluster)
    kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, SCHEDULES_LEASE)
    with arrivals_of_last_backups(cluster, whole(now())) as said:
        command = [sys.executable, "-m", "bench.schedules.bare", str(kubeconfig)]
        begun = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        said.wait(count, 60)
        seconds = said.lags(datetime.fromisoformat(begun))[-1]
    print(f"bare: {count} Backups, all said after {seconds:.2f} s", flush=True)
    return seconds


def _p99(ordered: list[float]) -> float:
    return sorted(ordered)[max(int(len(ordered) * 0.99) - 1, 0)]


def main() -> int:
    """Measure everything, print it, and say which bounds are missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.schedules", description=__doc__)
    parser.add_argument("--size", type=float, default=1.0, help="the part of the full size, such as 0.1")
    parser.add_argument("--part", action="append", choices=PARTS, help="measure only this; may be repeated")
    args = parser.parse_args()
    size, parts = args.size, args.part or PARTS
    figures: dict[str, Any] = {"size": size}
    for part in parts:
        figures |= part_of(part, size)
        print(json.dumps(figures), flush=True)
    bounds = AT_ANY_SIZE | (AT_FULL_SIZE if size >= 1 else {})
    return verdict(figures, measured(bounds, figures))


def part_of(part: str, size: float) -> dict[str, object]:
    """Measure one part, on a cluster of its own if it needs one."""
    if part == "single":
        return single()
    if part == "scrape":
        return scrape.measure(int(MANY * size))
    if part == "policies":
        return policies.measure(int(MANY * size))
    if part == "silence":
        return silence(int(MANY * size), IDLE_SECONDS * max(size, 0.2))
    with world() as cluster:
        count = int((DUE if part == "punctual" else MANY) * size)
        create_schedules(cluster, count, f"*/{MINUTES} * * * *" if part == "punctual" else NEVER)
        return punctual(cluster, count) if part == "punctual" else throughput(cluster, count)


if __name__ == "__main__":
    sys.exit(main())
