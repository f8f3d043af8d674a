"""Thousands of CronJobs: what the operator holds and asks for when nothing is due, and how `suggest` finds the late."""

import json
import subprocess
import sys
import time

from bench.operator import operator
from bench.primers.crowd import Crowd, fill, name, world
from bench.silence import asked_while_idle, silence_of
from testbed import Cluster
from tests.cluster import primers
from tests.cluster.operators import PRIMERS_USER

QUICK, LATE = 2, 90  # seconds that runs waited
_LATE_EVERY = 20


def scale(count: int, idle_seconds: float) -> dict[str, object]:
    """Measure one operator among so many CronJobs, each with its Primer and three runs."""
    with world() as cluster:
        fill(cluster, Crowd(count, (QUICK,), primed=True), *primers.FLAGS)
        with operator(cluster, *primers.FLAGS) as process:
            synced = process.wait_synced()
            process.wait_settled("primers")
            used = process.wait_idle()
            held, peak = process.memory_mib(), process.memory_mib("VmHWM")
            print(f"synced {synced:.1f} s, {used:.1f} s of CPU, {held:.0f} MiB, at most {peak:.0f} MiB", flush=True)
            asked = asked_while_idle(cluster, {PRIMERS_USER: process}, idle_seconds)
            process.wait_settled("primers")  # one that does not lead is silent for another reason
            held_later = process.memory_mib()
    return {
        "primed": count,
        "rss_mib": round(held, 1),
        "rss_peak_mib": round(peak, 1),
        "rss_after_a_restart_of_the_api_server_mib": round(held_later, 1),
        "sync_s": round(synced, 1),
        "cold_start_cpu_s": round(used, 1),
        "idle_seconds": idle_seconds,
        **silence_of(asked),
    }


def suggest(count: int) -> dict[str, object]:
    """Let the command line find those of so many CronJobs whose runs start late: one of twenty."""
    crowd = Crowd(count, (QUICK, LATE), _LATE_EVERY)
    late = {name(number) for number in range(count) if crowd.model_of(number)}
    with world() as cluster:
        fill(cluster, crowd)
        began = time.monotonic()
        found = _suggested(cluster)
        took = time.monotonic() - began
    print(f"suggest found {len(found)} of {len(late)} among {count} CronJobs in {took:.1f} s", flush=True)
    return {
        "unprimed": count,
        "late": len(late),
        "suggest_s": round(took, 1),
        "suggest_missed": len(late - found),
        "suggest_wrong": len(found - late),
    }


def _suggested(cluster: Cluster) -> set[str]:
    command = [sys.executable, "-m", "foresail", "primer", "suggest", "--all-namespaces", "--output=json"]
    command.append(f"--kubeconfig={cluster.kubeconfig}")
    printed = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    return {each["spec"]["cronJob"] for each in json.loads(printed)["items"]}
