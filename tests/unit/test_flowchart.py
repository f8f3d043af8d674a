"""No arrow of the flowchart is without a test: in worlds, and on the real cluster."""

from importlib import import_module

import pytest

from tests.flowchart import WALKED, Arrow

WORLDS = ("tests.worlds.test_selfservice_paths", "tests.worlds.test_selfservice_lives")
CLUSTER = ("tests.cluster.test_selfservice", "tests.cluster.test_selfservice_lives")


@pytest.mark.parametrize("modules", [WORLDS, CLUSTER], ids=["in worlds", "on the cluster"])
def test_every_arrow_is_walked(modules: tuple[str, ...]) -> None:
    for each in modules:
        import_module(each)
    assert set().union(*(WALKED[each] for each in modules)) == set(Arrow)
