"""By which annotations a placeholder keeps its node, as the cluster's autoscaler knows them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from foresail.api import pods
from foresail.plan import Create, Key
from foresail.primers.controller import Primers
from foresail.primers.decide import decide
from foresail.primers.rows import node_row
from tests.unit.primers.rows import SETTINGS, cron_job, primer, shape

KARPENTER, CLUSTER_AUTOSCALER = "karpenter.sh/do-not-disrupt", "cluster-autoscaler.kubernetes.io/safe-to-evict"
BOTH = {KARPENTER: "true", CLUSTER_AUTOSCALER: "false"}
BEFORE = datetime(2026, 1, 2, 3, tzinfo=UTC) - timedelta(minutes=1)


def kept_by(nodes: list[str], method: str = "Placeholder", **pod: Any) -> dict[str, str]:  # noqa: ANN401 - JSON
    """Return the annotations that keep the node of a placeholder in a cluster with those nodes."""
    primers, owner, cron = Primers(SETTINGS), primer(method=method), cron_job(shape=shape(**pod))
    primers.state.primers.put(owner.key, owner)
    primers.state.cron_jobs.put(cron.key, cron)
    for name in nodes:
        node = msgspec.convert({"metadata": {"name": name}}, pods.Node)
        primers.state.nodes.put(Key("", name), node_row(node))
    found = primers.observe(owner.key, BEFORE)
    assert found is not None
    (target,) = found.targets
    told = msgspec.structs.replace(found, targets=(msgspec.structs.replace(target, is_dry_run_done=True),))
    (create,) = [each for each in decide(told, BEFORE).actions if isinstance(each, Create)]
    body: Any = create.body
    whole = body if method == "Placeholder" else body["spec"]["jobTemplate"]["spec"]["template"]
    return {name: value for name, value in whole["metadata"]["annotations"].items() if name in BOTH}


@pytest.mark.parametrize("method", ["Placeholder", "CronJob"])
def test_on_gke_autopilot_no_annotation_asks_for_a_node_of_its_own(method: str) -> None:
    assert kept_by(["gk3-shop-pool-2-973644bc-np7s", "gk3-shop-nap-1-bf7bdba2-nwjt"], method) == {}
    assert kept_by(["ip-10-0-0-7.ec2.internal"], method) == BOTH
    assert kept_by([], method) == BOTH, "nothing is known of a cluster without nodes"


def test_in_a_standard_cluster_the_built_in_compute_class_tells() -> None:
    mixed = ["gke-shop-default-pool-1", "gk3-shop-nap-1"]
    assert kept_by(mixed) == BOTH
    for name in ("autopilot", "autopilot-spot"):
        assert kept_by(mixed, nodeSelector={"cloud.google.com/compute-class": name}) == {}
    assert kept_by(mixed, nodeSelector={"cloud.google.com/compute-class": "gold"}) == BOTH
