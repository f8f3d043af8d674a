"""Method CapacityBuffer with real Karpenter: warm without a pod of ours, no refill, and honest about a lost place."""

import statistics
import time
from collections.abc import Iterator

import pytest

from foresail.api.instants import stamp
from foresail.cli.main import main
from foresail.kube.clock import now
from testbed import Cluster
from tests.cluster import primers
from tests.cluster.buffer_scene import (
    BUFFERED,
    COLD,
    CONTESTED,
    FIRES,
    NODES_TAKE,
    TAKEN_BEFORE,
    BufferScene,
    contest,
    leave,
    left_behind,
    playing,
)
from tests.cluster.schedules import Eventually, Figure

PATIENCE = 300.0
REFILL_SECONDS = 60.0


@pytest.fixture(scope="module")
def scene(buffer_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BufferScene]:
    with playing(buffer_cluster, tmp_path_factory.mktemp("buffers")) as begun:
        yield begun


def test_a_pod_that_takes_the_place_is_reported_each_time(
    scene: BufferScene, eventually: Eventually, figure: Figure
) -> None:
    for number, fire in enumerate(scene.fires, start=1):
        time.sleep(max((fire - TAKEN_BEFORE - now()).total_seconds(), 0.0))
        assert contest(scene.cluster), "there is no node to contest: a warm-up of this length is too short here"
        eventually(lambda number=number: len(scene.took(CONTESTED)) == number, PATIENCE)  # type: ignore[misc]
        eventually(lambda fire=fire: stamp(fire) in scene.delays(CONTESTED), 60)  # type: ignore[misc]
        leave(scene.cluster)
        delay = scene.delays(CONTESTED)[stamp(fire)]
        assert not delay["warm"], delay
        assert "other pods took the place" in delay["note"], delay
        assert primers.primed(scene.cluster, CONTESTED)["warming"]["lost"] == "Taken"
    figure(f"CapacityBuffer: {FIRES} of {FIRES} runs whose place a stranger took are recorded as not warm, and why")


def test_a_run_that_a_buffer_held_capacity_for_starts_warm_without_a_placeholder_and_without_refill(
    scene: BufferScene, eventually: Eventually, figure: Figure, capsys: pytest.CaptureFixture[str]
) -> None:
    eventually(lambda: len(scene.took(COLD)) == len(scene.took(BUFFERED)) == FIRES, PATIENCE)
    eventually(lambda: len(scene.delays(BUFFERED)) == FIRES, 60)
    cold, warm = scene.took(COLD), scene.took(BUFFERED)
    refill = [scene.refilled(BUFFERED, fire) for fire in scene.fires]
    took = f"start delays with nodes of {NODES_TAKE} s: cold {cold}, CapacityBuffer {warm}"
    figure(f"{took}; node-seconds of refill after each fire: {refill}")
    assert min(cold) >= NODES_TAKE
    assert statistics.median(warm) <= max(statistics.median(cold) / 10, 2)
    assert all(each["warm"] for each in scene.delays(BUFFERED).values()), scene.delays(BUFFERED)
    assert primers.primed(scene.cluster, BUFFERED)["method"] == "CapacityBuffer"
    assert scene.sight.placeholders == set()
    assert max(refill) <= REFILL_SECONDS
    assert (
        main(["primer", "describe", BUFFERED, f"--kubeconfig={scene.cluster.kubeconfig}", "--namespace=default"]) == 0
    )
    assert "by CapacityBuffer buffered-warm-" in capsys.readouterr().out
    assert main(["primer", "suggest", f"--kubeconfig={scene.cluster.kubeconfig}", "--namespace=default"]) == 0
    assert COLD in capsys.readouterr().out


def test_no_buffer_and_no_node_is_left_behind(scene: BufferScene, eventually: Eventually) -> None:
    eventually(lambda: left_behind(scene.cluster) == [], PATIENCE)
    of_pool = f"labelSelector=karpenter.sh%2Fnodepool%3D{BUFFERED}"
    eventually(lambda: scene.cluster.listed(f"/api/v1/nodes?{of_pool}") == [], PATIENCE)
