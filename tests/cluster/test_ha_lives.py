"""The operator keeps its promises on a highly available control plane, whatever happens to the servers.

The full number of perturbations is `make perturb-ha`; restores of etcd are `make etcd-restore-ha`.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.ha_perturb import Count, perturb, reference
from testbed import Options
from tests.cluster import ha_disturb
from tests.cluster.conftest import created
from tests.cluster.ha_lives import AWAY, HOME, Disturb, Lane
from tests.cluster.ha_stories import STORIES, prepare
from tests.cluster.schedules import Figure
from tests.worlds.perturb_judge import Lived, wrong

SAMPLE = 2
FAULTS: dict[str, Callable[[int], Disturb]] = {
    "a frozen cache": ha_disturb.cache_frozen,
    "an etcd member cut off": ha_disturb.member_cut_off,
    "the leader of etcd moved": ha_disturb.leader_moved,
    "an API server killed": ha_disturb.server_killed,
    "a rolling restart": ha_disturb.rolled,
    "429 to everything": lambda number: ha_disturb.refused(number, 429),
    "410 to everything": lambda number: ha_disturb.refused(number, 410),
}
EVENTS = (3, 12)  # at which a fault begins


@pytest.fixture(scope="module")
def lanes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Lane]]:
    """A cluster with Velero, and the operators of both stories, which run side by side."""
    for cluster in created("ha-velero", Options(velero="velero", ha=True)):
        cluster.fault.lead_to(HOME)
        prepare(cluster)
        with ExitStack() as stack:
            pairs = zip(STORIES, AWAY, strict=True)
            yield [stack.enter_context(Lane(cluster, *each, folder(tmp_path_factory))) for each in pairs]


def folder(factory: pytest.TempPathFactory) -> Path:
    return factory.mktemp("operator")


def test_a_stale_server_a_gap_or_a_kill_changes_no_life(lanes: list[Lane], figure: Figure) -> None:
    count = Count(SAMPLE)
    with ThreadPoolExecutor() as pool:
        for each in [pool.submit(perturb, lane, count) for lane in lanes]:
            each.result()
    assert count.wrong == []
    figure(f"perturbations on a highly available control plane: {count.figures()}")


@pytest.fixture(scope="module")
def whole(lanes: list[Lane]) -> dict[str, Lived]:
    """The lives without a fault."""
    return {lane.name: reference(lane) for lane in lanes}


@pytest.mark.full
@pytest.mark.parametrize("story", [each.name for each in STORIES])
@pytest.mark.parametrize("number", EVENTS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_servers_changes_no_life(
    lanes: list[Lane], whole: dict[str, Lived], story: str, number: int, fault: str
) -> None:
    lane = next(each for each in lanes if each.name == story)
    lived = lane.live(FAULTS[fault](number), whole[story])
    if lane.stories[-1].is_spoiled:
        pytest.skip("the machine was too slow for this life to tell anything")
    unheard = "not created: DeleteBackupRequest"  # it comes and goes while no API server has the past of a watch
    assert [each for each in wrong(lived, whole[story]) if not each.startswith(unheard)] == []
