"""Sieve's three perturbations around every event and every write of a long history, for each capability.

- *Stale*: at an event the operator fails over to an API server whose watch cache shows the state of some events ago.
- *Skipped*: the operator sees what came of some events in a row, and none of the states between them.
- *Intermediate*: the operator is killed after a write, and starts again at a stale API server.

Each history is lived through once without a perturbation. Every other life must come to the same end, start no run
twice, and delete nothing that the first one kept. `python -m tests.worlds.perturb` tries every point, the tests a
sample; the last line is JSON.
"""

import argparse
import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from foresail.api import velero
from foresail.api.marks import SCHEDULE_UID, SLOT
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_LOCATION, NON_ADMIN_RESTORE
from foresail.plan import Kind
from tests.worlds import virtual_time
from tests.worlds.history import Happening
from tests.worlds.perturb_judge import Lived, wrong
from tests.worlds.perturbed_lives import LIVES, begin
from tests.worlds.process import Moment, Process
from tests.worlds.streams import Frozen
from tests.worlds.takeover import Life, named, names, state, stuck

_WORKERS = 4
_RESTART = 0.5  # seconds from a kill to the next start
_STALE, _LONGEST = 12.0, 30.0  # seconds that a cache stands still after an event, and in all
_TAIL = 90.0  # seconds after the story in which everything must have come to its end
_BEHIND = (1, 4, 16)  # events
_JUDGED = (
    velero.BACKUP,
    velero.RESTORE,
    velero.SCHEDULE,
    velero.DELETE_REQUEST,
    velero.LOCATION,
    NON_ADMIN_BACKUP,
    NON_ADMIN_RESTORE,
    NON_ADMIN_LOCATION,
)
STALE, SKIPPED, INTERMEDIATE = "stale", "skipped", "intermediate"


@dataclass(frozen=True, slots=True)
class Point:
    """A perturbation: which, at which event or after which write, and over how many events.

    A cache stands still for all kinds or for that of the event `alone`; one that `refuses` makes its readers list.
    """

    which: str
    number: int
    behind: int
    alone: bool = False
    refuses: bool = False

    def __str__(self) -> str:
        how = (" of one kind" if self.alone else "") + (" with lists" if self.refuses else "")
        at = "after write" if self.which == INTERMEDIATE else "at event"
        return f"{self.which}{how} {at} {self.number}, {self.behind} events"


class Perturbed:
    """One life with one perturbation in it, or none."""

    def __init__(self, life: Life, point: Point | None) -> None:
        self.life, self.point = life, point
        self.scene: Any = life.make()
        self.lived = Lived()
        self.processes: list[Process] = []
        self._told = False  # whether the story is over
        self._skips_from = 0
        self._dying: list[asyncio.Task[None]] = []

    async def live(self) -> Lived:
        point, world = self.point, self.scene.world
        is_killed = point is not None and point.which == INTERMEDIATE
        world.history.listeners.append(self._heard)
        self._start(Moment(after=True, write=point.number) if point is not None and is_killed else None)
        await self.life.story(self.scene)
        self._told = True
        self.lived.writes = len(self.processes[0].visitor.writes)
        await asyncio.sleep(_TAIL)
        self._judge()
        await asyncio.gather(*self._dying, *(each.kill() for each in self.processes))
        return self.lived

    def _start(self, dies: Moment | None = None) -> None:
        process, *others = begin(self.scene, dies, _WORKERS, is_first=not self.processes)
        process.on_death = self._died
        for each in (process, *others):
            each.loop.on_reconciled = self._reconciled
        self.processes = [process, *others, *self.processes[1:]]

    def _reconciled(self, outcome: str, _: float) -> None:
        self.lived.crashed += outcome == "crashed"

    # What goes wrong

    def _heard(self, happening: Happening) -> None:
        if not self._told:
            self.lived.events += 1
            self._perturb(happening)
        if happening.kind in _JUDGED:
            self._note(happening)

    def _perturb(self, happening: Happening) -> None:
        point, now = self.point, self.lived.events
        if point is None:
            return
        kind = happening.kind if point.alone else None
        if point.which == STALE and now == max(1, point.number - point.behind + 1):
            self._freeze(happening.revision - 1, kind, _LONGEST)
        if point.which == STALE and now == point.number and self.scene.weather.frozen is not None:
            self._cut()
            asyncio.get_running_loop().call_later(_STALE, self._release)
        elif point.which == SKIPPED and now == point.number:
            self._freeze(happening.revision - 1, kind, _STALE)
            self._skips_from = now
        elif self._skips_from and now == self._skips_from + point.behind:
            self._release(skips=True)

    def _freeze(self, revision: int, kind: Kind | None, seconds: float) -> None:
        point = self.point
        assert point is not None
        self.lived.came = True
        self.scene.weather.frozen = Frozen(revision, kind, point.refuses)
        asyncio.get_running_loop().call_later(seconds, lambda: self._release(skips=point.which == SKIPPED))

    def _release(self, *, skips: bool = False) -> None:
        if self.scene.weather.frozen is None:
            return
        self.scene.weather.frozen = None
        if skips:
            self.scene.weather.forgotten = self.scene.world.history.revision
            self._cut()
        for process in self.processes:
            process.visitor.look()

    def _cut(self) -> None:
        for process in self.processes:
            for stream in list(process.visitor.streams):
                stream.cut()

    def _died(self) -> None:
        point, process, revision = self.point, self.processes[0], self.scene.world.history.revision
        assert point is not None
        self._dying.append(asyncio.create_task(process.kill()))

        def restart() -> None:
            self._freeze(revision - point.behind, None, _STALE)
            self._start()

        asyncio.get_running_loop().call_later(_RESTART, restart)

    # What is seen

    def _note(self, happening: Happening) -> None:
        text = f"{happening.kind.name} {happening.key}"
        if happening.before is None and happening.after is not None:
            self.lived.born[text] += 1
            marks = happening.after["metadata"].get("annotations", {})
            if SLOT in marks and happening.kind in (velero.BACKUP, NON_ADMIN_BACKUP):
                self.lived.slots[f"{happening.kind.name} of {marks.get(SCHEDULE_UID)} for {marks[SLOT]}"] += 1
        elif happening.after is None:
            self.lived.gone[text] += 1

    def _judge(self) -> None:
        lived, world = self.lived, self.scene.world
        known = names(world.history.happenings)
        lived.state = state(world)
        for counted in (lived.born, lived.gone, lived.slots):
            renamed = {named(text, known): number for text, number in counted.items()}
            counted.clear()
            counted.update(renamed)
        lived.stuck = set(stuck(self.processes[0].loop, self.life))


def live(life: Life, point: Point | None = None) -> Lived:
    """Live through a history."""
    return virtual_time.run(_live(life, point))


async def _live(life: Life, point: Point | None) -> Lived:
    return await Perturbed(life, point).live()


def points(whole: Lived) -> list[Point]:
    """Return every point of a history, the kinds of perturbations in turn."""
    found = []
    for number in range(1, whole.events + 1):
        found += [Point(STALE, number, each) for each in _BEHIND]
        found += [Point(STALE, number, _BEHIND[0], alone=True)]
        found += [Point(SKIPPED, number, each) for each in _BEHIND[1:]]
    for number in range(1, whole.writes + 1):
        found += [Point(INTERMEDIATE, number, each, refuses=refuses) for each in _BEHIND for refuses in (False, True)]
    return found


def sample(every: list[Point], size: float) -> list[Point]:
    """Return a part of the points, the same each time."""
    return random.Random(38).sample(every, max(1, round(len(every) * size)))  # noqa: S311 - to spread, not to hide


def faults(life: Life, point: Point, whole: Lived) -> Iterator[str]:
    """Yield what is wrong after a perturbation."""
    return wrong(live(life, point), whole)


def main() -> int:
    """Try every point of every life, or a part of them; the last line is one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=1.0, help="part of the points, spread over each life")
    parser.add_argument("--life", default="", help="only the lives with this in their name")
    parser.add_argument("--point", default="", help="only this point, as it is printed")
    arguments = parser.parse_args()
    tried, missed = Counter[str](), 0
    for life in LIVES:
        if arguments.life not in life.name:
            continue
        whole = live(life)
        every = points(whole)
        chosen = sample(every, arguments.size)
        chosen = chosen if not arguments.point else [each for each in every if str(each) == arguments.point]
        bad = 0
        for point in chosen:
            tried[point.which] += 1
            found = list(faults(life, point, whole))
            bad += bool(found)
            for each in found:
                print(f"{life.name}, {point}: {each}", flush=True)
        missed += bad
        print(
            f"{life.name}: {whole.events} events, {whole.writes} writes, {len(chosen)} points, {bad} wrong", flush=True
        )
    kinds = {which: tried[which] for which in (STALE, SKIPPED, INTERMEDIATE)}
    print(json.dumps({"points": sum(tried.values()), **kinds, "wrong": missed}))
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
