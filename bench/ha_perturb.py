"""Perturbations on a real, highly available control plane: `make perturb-ha POINTS=200`.

Lives through a short story of each capability, once as the reference and then with one perturbation at a time: the
operator fails over to an API server whose cache stands still, misses states, or is killed after a write and starts
again at such an API server. The stories have an operator each and run side by side. The judge is that of
`make perturb`; a point that did not come about is not counted, and another is tried. The last line is JSON.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path

from bench import MeasurementError
from testbed import Cluster, Options
from tests.cluster.ha_disturb import perturbation
from tests.cluster.ha_lives import AWAY, HOME, Lane, Story
from tests.cluster.ha_stories import STORIES, prepare
from tests.worlds.perturb import INTERMEDIATE, SKIPPED, STALE, Point, points
from tests.worlds.perturb_faults import FAULTS
from tests.worlds.perturb_judge import Lived, wrong

_SEED = 38
_LATE = (
    0.75  # the part of the events and writes of a story after which no perturbation begins: another life may have fewer
)
_TRIES = 5
_NOT_COME = "it did not come about"


class Count:
    """How many points are left to be tried, and what came of those that were."""

    def __init__(self, left: int) -> None:
        self._lock = threading.Lock()
        self._left = left
        self.tried: Counter[str] = Counter()
        self.wrong: list[str] = []

    def take(self) -> bool:
        """Take one of those that are left."""
        with self._lock:
            self._left -= 1
            return self._left >= 0

    def stop(self) -> None:
        """Let nobody take another one."""
        with self._lock:
            self._left = 0

    def note(self, lane: Lane, point: Point, found: list[str]) -> None:
        """Count a point, unless it did not come about."""
        with self._lock:
            for each in found or ["as without it"]:
                print(f"{lane.name}, {point}: {each}", flush=True)
            if _NOT_COME in found:
                self._left += 1
                return
            self.tried[point.which] += 1
            self.wrong += [f"{lane.name}, {point}"] if found else []

    def figures(self) -> dict[str, object]:
        """Return what the last line says."""
        kinds = {which: self.tried[which] for which in (STALE, SKIPPED, INTERMEDIATE)}
        return {"points": self.tried.total(), **kinds, "wrong": len(self.wrong)}


def perturb(lane: Lane, count: Count) -> None:
    """Live through the reference, and then through one point after the other until none is left."""
    whole = reference(lane)
    print(f"{lane.name}: {whole.events} events, {whole.writes} writes", flush=True)
    lives: list[tuple[Story, Point, list[str]]] = []
    for point in _in_turn(whole):
        if not count.take():
            break
        found = list(wrong(lane.live(perturbation(point, whole), whole), whole))
        lives.append((lane.stories[-1], point, found))
        count.note(lane, point, found)
    for story, point, found in lives:  # what came after they were judged
        if not found and (late := list(wrong(story.lived(), whole))):
            count.wrong.append(f"{lane.name}, {point}, later: {late}")
            print(count.wrong[-1], flush=True)


def reference(lane: Lane) -> Lived:
    """Return a life without a perturbation; the first may find a cold Velero and a busy machine."""
    for _ in range(_TRIES):
        lane.start()
        whole = lane.live()
        whole.writes = lane.writes
        if whole.came:
            return whole
    raise MeasurementError(f"{lane.name}: no life without a perturbation was in time, out of {_TRIES}")


def _in_turn(whole: Lived) -> Iterator[Point]:
    """Yield points of each kind in turn, without end."""
    chance = random.Random(_SEED)  # noqa: S311 - to spread, not to hide
    real = [each for each in points(whole) if not each.alone and not each.refuses]
    most = {STALE: whole.events, SKIPPED: whole.events, INTERMEDIATE: whole.writes}
    early = [each for each in real if each.number <= _LATE * most[each.which]]
    while True:
        for which in (STALE, SKIPPED, INTERMEDIATE):
            yield chance.choice([each for each in early if each.which == which])


def main() -> int:
    """Try so many points; the exit code is 1 if a life ended as it must not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=200, help="how many (%(default)s)")
    parser.add_argument("--plant", default="", choices=FAULTS, help="break this guard, to see that the judge finds it")
    parser.add_argument("--keep", default="", help="the folder for the operators' logs (a new one)")
    parser.add_argument("--story", default="", help="only the stories with this in their name")
    arguments = parser.parse_args()
    count = Count(arguments.points)
    chosen = [each for each in STORIES if arguments.story in each.name]
    name, options = f"ha-perturb-{os.getpid()}", Options(velero="velero", ha=True)
    folder = arguments.keep or tempfile.mkdtemp(prefix="perturb-")
    print(f"the operators' logs are in {folder}", file=sys.stderr, flush=True)
    with Cluster.create(name, options, owned=True) as cluster:
        cluster.fault.lead_to(HOME)
        prepare(cluster)
        with ExitStack() as stack, ThreadPoolExecutor() as pool:
            lanes = [
                stack.enter_context(Lane(cluster, story, stale, Path(folder) / story.name, arguments.plant))
                for story, stale in zip(chosen, AWAY, strict=False)
            ]
            for each in as_completed([pool.submit(perturb, lane, count) for lane in lanes]):
                if error := each.exception():
                    count.stop()
                    raise error
    print(json.dumps(count.figures()))
    return int(bool(count.wrong))


if __name__ == "__main__":
    sys.exit(main())
