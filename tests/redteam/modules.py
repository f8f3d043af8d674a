"""The parts of the red team: which attacks belong together, and in which world they are tried."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from tests.redteam import (
    annotations,
    checks,
    data_path,
    direct,
    exhaustion,
    fence,
    identity,
    load,
    locations,
    namespaces,
    records,
    replays,
    schedules,
)
from tests.redteam.attack import ATTACKS, Attack
from tests.redteam.load_watch import run_batches
from tests.redteam.score import Score, run_each
from tests.redteam.world import World, attacked

FIELDS_AND_OBJECTS, LOAD, DATA_PATH, STOLEN_TOKENS = "fields and objects", "load", "data path", "stolen tokens"


@dataclass(frozen=True)
class Part:
    """Modules with attacks: importing one registers them. Parts with the same world share one cluster."""

    name: str
    modules: tuple[ModuleType, ...] = ()
    world: Callable[[Path], AbstractContextManager[World]] = attacked
    run: Callable[[World, list[Attack], Score], None] = run_each

    def attacks(self) -> list[Attack]:
        """Return the attacks that its modules define."""
        names = {module.__name__ for module in self.modules}
        return [one for one in ATTACKS if one.act.__module__ in names]


PARTS = (
    Part(
        FIELDS_AND_OBJECTS,
        (
            annotations,
            checks,
            data_path,
            direct,
            exhaustion,
            fence,
            identity,
            locations,
            namespaces,
            records,
            replays,
            schedules,
        ),
    ),
    Part(LOAD, (load,), run=run_batches),
    Part(DATA_PATH),  # on a real node
    Part(STOLEN_TOKENS),
)
