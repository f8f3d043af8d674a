"""Kills the operator of rollbacks and Velero on a real node, while a team's volumes are rolled back.

The judge compares every row of a file in the volume, the size of what uses it, and what is left behind. The last line
is one JSON object.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from foresail.api.marks import ROLLBACK_FINALIZER, ROLLBACK_IN_PROGRESS, ROLLBACK_UID
from tests.cluster.rollbacks import ENDED
from tests.redteam.canaries import volumes_of
from tests.redteam.node_world import velero_servers
from tests.redteam.rollback_volumes_world import BAD, DATA, GOOD, VolumesWorld, kept, release, rolled_volumes
from tests.redteam.rollback_world import OWN, ROLLBACKS, phase_of
from tests.redteam.world import HOSTILE, NADR, Json, body_of, path, until

KILLS = 10
PHASES = ("SafetyBackup", "Stopping", "Replacing", "Restoring", "Resuming", "Undoing")
_LONGEST = 900.0
_CLAIMS = 2


class Life:
    """One Rollback, and who is killed in which of its phases."""

    def __init__(self, world: VolumesWorld, number: int, chance: random.Random) -> None:
        self._world, self._name, self._chance = world, f"killed-{number}", chance
        self._left = {phase: chance.choice(("operator", "velero")) for phase in chance.sample(PHASES, 3)}
        self._old = ""
        self.kills: list[str] = []

    @property
    def seen(self) -> Json:
        """The Rollback."""
        return self._world.rollback(self._name)

    def live(self) -> None:
        """Run a Rollback to its end."""
        world = self._world
        world.ready()
        world.file().write_text(BAD)
        self._old = world.volume(DATA)["metadata"]["name"]
        spec = {"to": OWN, "volumes": "All", "only": ["configmaps"]}
        world.hostile.create(path(ROLLBACKS, HOSTILE), body_of(ROLLBACKS, self._name, spec))
        deadline = time.monotonic() + _LONGEST
        while phase_of(self.seen) not in ENDED and time.monotonic() < deadline:
            victim = self._left.pop(phase_of(self.seen), "")
            if victim:
                time.sleep(self._chance.uniform(0, 2))
                self._kill(victim)
            time.sleep(0.1)

    def _kill(self, victim: str) -> None:
        self.kills.append(f"{victim} in {phase_of(self.seen)}")
        rolling = self._world.rolling
        if victim == "operator" and rolling is not None:
            rolling.kill()
            rolling.start()
        for pid in velero_servers(self._world.cluster) if victim == "velero" else ():
            os.kill(pid, signal.SIGKILL)

    def judged(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong."""
        world, found = self._world, self.seen
        phase, where = phase_of(found), f"{self._name}, {', '.join(self.kills)}"
        if phase not in ENDED:
            yield "left_behind", f"{where}: it is {phase}"
            return
        is_complete = phase == "Completed"
        wanted, rows = (GOOD if is_complete else BAD).splitlines(), world.file().read_text().splitlines()
        wrong = sum(one != other for one, other in zip(wanted, rows, strict=False)) + abs(len(wanted) - len(rows))
        if wrong:
            yield "lost_volumes", f"{where}: {wrong} rows differ while it is {phase}"
        if (world.volume(DATA)["metadata"]["name"] == self._old) == is_complete:
            yield "lost_volumes", f"{where}: it is {phase} and claim data has the wrong volume"
        if is_complete and self._old not in kept(world):
            yield "lost_volumes", f"{where}: the old volume is not kept"
        yield from self._left_behind(found)

    def _left_behind(self, found: Json) -> Iterator[tuple[str, str]]:
        world = self._world
        database = world.admin.get(path("deployments", HOSTILE, "db")) or {}
        if world.replicas() != 1 or ROLLBACK_UID in database["metadata"].get("annotations", {}):
            yield "not_resumed", f"{self._name}: the database has {world.replicas()} pods, or the mark of a Rollback"

        def is_free() -> bool:
            space = (world.admin.get(path("namespaces", name=HOSTILE)) or {})["metadata"].get("labels", {})
            meta = self.seen["metadata"]
            left = ROLLBACK_IN_PROGRESS in (*space, *meta.get("labels", {}))
            return not left and ROLLBACK_FINALIZER not in meta.get("finalizers", [])

        if not _soon(is_free):
            yield "left_behind", f"{self._name}: its label or its finalizer"
        if phase_of(found) != "Completed" and not _soon(lambda: not kept(world)):
            yield "left_behind", f"{self._name}: marks on {kept(world)}"
        if world.admin.items(path(NADR, HOSTILE)):
            yield "left_behind", f"{self._name}: a request for the list of a backup"
        release(world)
        if not _soon(lambda: len(volumes_of(world.admin, HOSTILE)) == _CLAIMS):
            yield "left_behind", f"{self._name}: {len(volumes_of(world.admin, HOSTILE))} volumes for {_CLAIMS} claims"


def _soon(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while not holds() and time.monotonic() < deadline:
        time.sleep(1)
    return bool(holds())


def main() -> int:
    """Kill so often, and print what was wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.rollback_volume_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=36)
    args = parser.parse_args()
    chance = random.Random(args.seed)  # noqa: S311 - to spread, not to hide
    wrong: dict[str, list[str]] = {name: [] for name in ("lost_volumes", "not_resumed", "worse", "left_behind")}
    points, ends, began = 0, Counter[str](), time.monotonic()
    with tempfile.TemporaryDirectory() as folder, rolled_volumes(Path(folder), "rollback-volume-kills") as world:
        number = 0
        while points < args.kills:
            number += 1
            life = Life(world, number, chance)
            life.live()
            points += len(life.kills)
            ends[phase_of(life.seen)] += 1
            for kind, text in life.judged():
                wrong[kind].append(text)
                print(f"{kind}: {text}", flush=True)
            print(f"{points} of {args.kills} kills in {number} Rollbacks: {dict(ends)}; {life.kills}", flush=True)
            until(lambda: velero_servers(world.cluster), 120, "Velero runs")
    figures = {name: len(texts) for name, texts in wrong.items()}
    seconds = round(time.monotonic() - began)
    print(
        json.dumps({"points": points, "rollbacks": number, "ends": ends, **figures, "wrong": wrong, "seconds": seconds})
    )
    return 1 if any(figures.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
