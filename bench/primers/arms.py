"""Start delays of three CronJobs side by side: unprimed, and primed by both methods."""

import statistics
import tempfile
from datetime import timedelta
from pathlib import Path

from bench.primers.waiting import holds_within, until
from testbed import Cluster, Options
from tests.cluster import operators, primers

ARMS = ("cold", "held", "timed")
_PERIOD, _WARM_UP = timedelta(minutes=4), timedelta(minutes=2)
_LOOK = 2.0  # seconds; a pod is there for longer than that
_FREED = 180.0  # seconds in which everything must be gone


def arms(fires: int, node_seconds: int) -> dict[str, object]:
    """Measure so many fires of each, where nodes take that long."""
    with (
        Cluster.create("bench-primers", Options(karpenter=True, node_seconds=node_seconds), owned=True) as cluster,
        tempfile.TemporaryDirectory() as folder,
    ):
        primers.install(cluster)
        cluster.apply(*[primers.node_pool(arm, node_seconds) for arm in ARMS])
        with operators.running(cluster, Path(folder), *primers.FLAGS, primers.holding(_WARM_UP)):
            jobs = [primers.cron_job(arm, f"*/{_PERIOD // timedelta(minutes=1)} * * * *", arm) for arm in ARMS]
            for job in jobs:
                job["spec"]["successfulJobsHistoryLimit"] = fires + 2
            # Half of the time is as much as one may have without asking; the first days may be more than that.
            made = [primers.primer("held", "2m"), primers.primer("timed", "2m", method="CronJob")]
            for each in made:
                each["spec"]["allowStanding"] = True
            cluster.apply(*jobs, *made)
            found = _measured(cluster, fires)
            print(f"start delays in seconds, nodes of {node_seconds} s: {found}", flush=True)
            left = _left_behind(cluster)
    cold, held, timed = (statistics.median(found[arm]) for arm in ARMS)
    return {
        "cold_p50_s": cold,
        "warm_p50_s": held,
        "warm_cronjob_p50_s": timed,
        "ratio": round(max(held, timed) / cold, 3),
        "node_seconds": node_seconds,
        "start_delays_s": found,
        "left_behind": left,
    }


def _measured(cluster: Cluster, fires: int) -> dict[str, list[float]]:
    """Return the start delays of so many fires that all three have had, but for the first one.

    That one may come before the first warm-up could. A pod goes with its node, so each is looked at while it is there.
    """
    seen: dict[str, dict[str, float]] = {arm: {} for arm in ARMS}

    def common() -> list[str]:
        for arm, by_fire in primers.delays_by_fire(cluster, ARMS).items():
            seen[arm] |= by_fire
        return sorted(set.intersection(*(set(each) for each in seen.values())))

    until(lambda: len(common()) > fires, (fires + 1) * _PERIOD.total_seconds() * 1.5, _LOOK)
    wanted = common()[1 : fires + 1]
    return {arm: [by_fire[fire] for fire in wanted] for arm, by_fire in seen.items()}


def _left_behind(cluster: Cluster) -> int:
    """Delete the CronJobs and their Primers; return how many placeholders and nodes are not gone in time."""
    cluster.kubectl("delete", "primers,cronjobs", "--all", "--namespace=default")

    def left() -> int:
        return len(primers.placeholders(cluster)) + len(cluster.listed("/api/v1/nodes"))

    holds_within(lambda: left() == 0, _FREED)
    return left()
