"""The parts of the red team: which attacks belong together, and in which world they are tried."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from testbed.node import needs
from tests.redteam import (
    annotations,
    checks,
    data_path,
    data_path_cycles,
    direct,
    exhaustion,
    fence,
    file_copies,
    identity,
    load,
    locations,
    namespaces,
    protection,
    protection_labels,
    protection_restores,
    records,
    replays,
    rollback,
    rollback_volumes,
    schedules,
    stolen_tokens,
)
from tests.redteam.attack import ATTACKS, Attack
from tests.redteam.class_world import classed
from tests.redteam.cycles import run_cycles
from tests.redteam.load_watch import run_batches
from tests.redteam.node_world import attacked_node
from tests.redteam.rollback_volumes_world import rolled_volumes
from tests.redteam.rollback_world import rolled
from tests.redteam.score import Score, run_each, run_in_groups
from tests.redteam.stolen_tokens import run_tokens, stolen
from tests.redteam.world import attacked

FIELDS_AND_OBJECTS, LOAD, DATA_PATH, STOLEN_TOKENS = "fields and objects", "load", "data path", "stolen tokens"
PROTECTION, ROLLBACK, ROLLBACK_VOLUMES = "protection", "rollback", "rollback of volumes"


@dataclass(frozen=True)
class Part:
    """Modules with attacks: importing one registers them. Parts with the same world share one cluster."""

    name: str
    modules: tuple[ModuleType, ...] = ()
    world: Callable[[Path], AbstractContextManager[Any]] = attacked
    run: Callable[[Any, list[Attack], Score], None] = run_each
    lacks: Callable[[], list[str]] = list  # what this machine does not have for it

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
            direct,
            exhaustion,
            fence,
            file_copies,
            identity,
            locations,
            namespaces,
            records,
            replays,
            schedules,
        ),
    ),
    Part(LOAD, (load,), run=run_batches),
    Part(PROTECTION, (protection, protection_labels, protection_restores), classed, run_in_groups),
    Part(ROLLBACK, (rollback,), rolled, run_in_groups),
    Part(ROLLBACK_VOLUMES, (rollback_volumes,), rolled_volumes, run_in_groups, needs.missing),
    Part(DATA_PATH, (data_path, data_path_cycles), attacked_node, run_cycles, needs.missing),
    Part(STOLEN_TOKENS, (stolen_tokens,), stolen, run_tokens),
)
