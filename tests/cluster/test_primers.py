"""Primers with the real kube-controller-manager, kube-scheduler and Karpenter, cold and by both methods."""

from pathlib import Path
from typing import Any

import pytest

from testbed import Cluster
from tests.cluster import operators, primers
from tests.cluster.schedules import Eventually, Figure

NODES_TAKE = 20
ARMS = ("cold", "held", "timed")


@pytest.fixture(scope="module")
def primed_cluster(karpenter_cluster: Cluster) -> Cluster:
    """The cluster with Karpenter, the kind Primer, and a pool of slow nodes for each arm."""
    primers.install(karpenter_cluster)
    karpenter_cluster.apply(*[primers.node_pool(arm, NODES_TAKE) for arm in ARMS])
    return karpenter_cluster


def shown(cluster: Cluster, name: str) -> dict[str, Any]:
    found = primers.listed(cluster, "/apis/foresail.dev/v1alpha1/namespaces/default/primers")
    status: dict[str, Any] = next(each for each in found if each["metadata"]["name"] == name).get("status", {})
    return status


def test_a_primed_run_starts_warm_by_either_method_and_nothing_stays_behind(
    primed_cluster: Cluster, tmp_path: Path, eventually: Eventually, figure: Figure
) -> None:
    cluster = primed_cluster
    # Pods of Jobs run as long as KWOK is told, so the holder of the CronJob arm ends before the fire as `hold` would.
    holds = "--primer-annotation=testbed.foresail.dev/run-seconds=30"
    with operators.running(cluster, tmp_path, *primers.FLAGS, holds):
        fire = primers.next_minute(90)
        schedule = f"{fire.minute} {fire.hour} * * *"
        cluster.apply(*[primers.cron_job(arm, schedule, arm) for arm in ARMS])
        cluster.apply(primers.primer("held", "1m"), primers.primer("timed", "1m", method="CronJob"))
        eventually(lambda: shown(cluster, "timed").get("cronJobs", [{}])[0].get("shifted"), 60)
        assert shown(cluster, "held")["nextFire"] == fire.strftime("%Y-%m-%dT%H:%M:%SZ")

        eventually(lambda: all(primers.delays(cluster, ARMS).values()), 300)
        eventually(lambda: primers.placeholders(cluster) == [], 30)
        eventually(lambda: shown(cluster, "held")["cronJobs"][0].get("startDelays"), 30)
        eventually(lambda: shown(cluster, "timed")["cronJobs"][0].get("startDelays"), 30)

        (cold,), (held,), (timed,) = (primers.delays(cluster, ARMS)[arm] for arm in ARMS)
        figure(
            f"start delay with nodes of {NODES_TAKE} s: cold {cold:g} s, placeholder {held:g} s, CronJob {timed:g} s"
        )
        assert cold >= NODES_TAKE
        assert held <= max(cold / 10, 2)
        assert timed <= max(cold / 10, 2)
        for arm in ("held", "timed"):
            (delay,) = shown(cluster, arm)["cronJobs"][0]["startDelays"]
            assert delay["warm"] is True, delay
        pools = "/api/v1/nodes?labelSelector=karpenter.sh%2Fnodepool%3D"
        eventually(lambda: not any(primers.listed(cluster, f"{pools}{arm}") for arm in ARMS), 120)
