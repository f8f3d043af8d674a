"""Primers on real clusters: start delays cold and warm, a thousand warm-ups at once: `make bench-primers`.

The last line is one JSON object.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench import MeasurementError
from testbed import Cluster, Options
from tests.cluster import operators, primers

ARMS = ("cold", "held", "timed")
_API = "/apis/foresail.dev/v1alpha1/primers"


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--fires", type=int, default=5)
    options.add_argument("--node-seconds", type=int, default=60)
    options.add_argument("--warm-ups", type=int, default=1000)
    options.add_argument("--parts", nargs="*", default=["arms", "stampede"], choices=["arms", "stampede"])
    asked = options.parse_args()
    figures: dict[str, float] = {}
    if "arms" in asked.parts:
        figures |= arms(asked.fires, asked.node_seconds)
    if "stampede" in asked.parts:
        figures |= stampede(asked.warm_ups)
    print(json.dumps(figures))
    return 0


def arms(fires: int, node_seconds: int) -> dict[str, float]:
    """Measure the start delays of three CronJobs side by side: unprimed, and by both methods."""
    # The Job of a primer CronJob ends before the fire, as `foresail hold` makes it; KWOK is told for how long it runs.
    holds = f"--primer-annotation=testbed.foresail.dev/run-seconds={120 - node_seconds - 20}"
    with (
        Cluster.create("bench-primers", Options(karpenter=True, node_seconds=node_seconds), owned=True) as cluster,
        tempfile.TemporaryDirectory() as folder,
    ):
        primers.install(cluster)
        cluster.apply(*[primers.node_pool(arm, node_seconds) for arm in ARMS])
        with operators.running(cluster, Path(folder), *primers.FLAGS, holds):
            jobs = [primers.cron_job(arm, "*/4 * * * *", arm) for arm in ARMS]
            for job in jobs:
                job["spec"]["successfulJobsHistoryLimit"] = fires + 2
            # A standing reservation is half of the time here, to the minute.
            made = [primers.primer("held", "2m"), primers.primer("timed", "2m", method="CronJob")]
            for each in made:
                each["spec"]["allowStanding"] = True
            cluster.apply(*jobs, *made)
            enough = fires + 1  # the first fire may come before the first warm-up could
            _until(lambda: all(len(each) >= enough for each in primers.delays(cluster, ARMS).values()), enough * 300)
            found = {arm: each[1:enough] for arm, each in primers.delays(cluster, ARMS).items()}
    print(f"start delays in seconds, nodes of {node_seconds} s: {found}", flush=True)
    cold, held, timed = (statistics.median(found[arm]) for arm in ARMS)
    return {
        "cold_p50_s": cold,
        "warm_p50_s": held,
        "warm_cronjob_p50_s": timed,
        "ratio": round(max(held, timed) / cold, 3),
    }


def stampede(count: int) -> dict[str, float]:
    """Measure how late placeholders are when many warm-ups are due in the same minute."""
    with (
        Cluster.create("bench-primers", Options(), owned=True) as cluster,
        tempfile.TemporaryDirectory() as folder,
    ):
        primers.install(cluster)
        flags = (f"--primer-placeholders-per-namespace={count}", f"--primer-placeholders={count}")
        with operators.running(cluster, Path(folder), *primers.FLAGS, *flags):
            begins = primers.next_minute(60 + count / 10)
            fire = begins + timedelta(minutes=10)
            schedule = f"{fire.minute} {fire.hour} {fire.day} {fire.month} *"
            names = [f"job-{number}" for number in range(count)]
            for start in range(0, count, 200):
                some = names[start : start + 200]
                cluster.apply(*[primers.cron_job(name, schedule, "none") for name in some])
                cluster.apply(*[primers.primer(name, "10m") for name in some])
            _until(lambda: _ready(cluster) == count, 120)
            if datetime.now(UTC) >= begins:  # noqa: TID251 - the clock of the real cluster
                raise MeasurementError("the Primers were not made before the first warm-up: give it more time")
            _until(lambda: len(primers.placeholders(cluster)) == count, 900)
            late = sorted(_lateness(each, begins) for each in primers.placeholders(cluster))
    print(f"{count} warm-ups at once: the median came {late[count // 2]:g} s late, the last {late[-1]:g} s", flush=True)
    return {"stampede_p99_s": late[count * 99 // 100 - 1]}


def _ready(cluster: Cluster) -> int:
    return len([each for each in primers.listed(cluster, _API) if each.get("status", {}).get("nextWarmUp")])


def _lateness(pod: dict[str, Any], begins: datetime) -> float:
    # The API server notes whole seconds, rounded down, so up to one more may have passed.
    return (datetime.fromisoformat(pod["metadata"]["creationTimestamp"]) - begins).total_seconds() + 1


def _until(holds: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise MeasurementError(f"it did not come to that within {seconds:g} s")
        time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())
