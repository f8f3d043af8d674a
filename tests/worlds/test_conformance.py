"""The simulated API server does what every API server does."""

import pytest

from tests.cluster.things import THING, WHOLE
from tests.worlds import conformance_of_watches, conformance_of_writes, virtual_time
from tests.worlds.conformance import CONFIG, Case, Stage
from tests.worlds.garbage import NAMESPACE
from tests.worlds.visitor import Visitor
from tests.worlds.world import Definition, World

CASES = [*conformance_of_writes.case, *conformance_of_watches.case]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_simulated_server_conforms(case: Case) -> None:
    async def play() -> None:
        kinds = Definition(THING), Definition(WHOLE, status=False), Definition(CONFIG, status=False, generation=False)
        world = World(virtual_time.WallClock(), *kinds)
        world.create(NAMESPACE, {"metadata": {"name": "stage"}}, "admin")

        async def forget() -> None:
            world.history.compact()

        await case(Stage(Visitor(world), "stage", forget))

    virtual_time.run(play())
