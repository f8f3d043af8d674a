"""What others notice of an attack: the memory of our processes, and how long another tenant waits for an answer."""

import functools
import json
import os
import signal
import statistics
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.redteam.attack import Attack, attack
from tests.redteam.score import Score, run_each
from tests.redteam.world import BYSTANDER, NAB, World, body_of, changes, path, until

MOST_GROWTH = 16.0
"""MiB that a process may hold for a moment beyond what it held before."""

LONGEST_WAIT = 20.0
"""Seconds that another tenant may wait, or twenty times as long as before the attack, whichever is more."""

_TIMES_CALM = 20
_CALM = 3  # requests before the attack
_SECONDS = 120.0
_REFUSED = {"backupSpec": {"includedNamespaces": ["x"]}}
_RESET_PEAK = "5"


@dataclass
class Peak:
    """The most memory that a process holds from now on."""

    pid: int
    name: str
    before: float = field(init=False)

    def __post_init__(self) -> None:
        self.before = _memory(self.pid, "VmRSS")
        Path(f"/proc/{self.pid}/clear_refs").write_text(_RESET_PEAK)

    def growth(self) -> float:
        """Return what it has held at most beyond what it held before, in MiB."""
        return _memory(self.pid, "VmHWM") - self.before

    def achieved(self) -> list[str]:
        """Return what an attack has achieved: the process has ended, or has held too much."""
        try:
            growth = self.growth()
        except (OSError, StopIteration):
            return [f"{self.name} has ended"]
        return [f"{self.name} held {growth:.0f} MiB more for a moment"] if growth > MOST_GROWTH else []


def _memory(pid: int, row: str) -> float:
    """Return a row of the memory of a process in MiB; one that has ended has none."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(row)) / 1024


class Watch:
    """Looks at our processes, and lets a bystander ask again and again, until the block ends."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._numbers = iter(range(1_000_000))
        self._waits: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask_again)

    def __enter__(self) -> Self:
        self._calm = statistics.median(self._ask() for _ in range(_CALM))
        world = self._world
        self._peaks = [Peak(world.operator.pid, "the operator"), Peak(world.checks, "the replica of restore checks")]
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def longest(self) -> float:
        """Seconds that the bystander may wait."""
        return max(LONGEST_WAIT, _TIMES_CALM * self._calm)

    def settle(self) -> None:
        """Wait until a request that came after the attack has its answer: then all that came before was seen."""
        begun = len(self._waits) + 2  # one may have begun before
        until(lambda: len(self._waits) >= begun, _SECONDS, "the bystander is answered")

    def achieved(self) -> list[str]:
        """Return what the attack has achieved so far."""
        found = [text for peak in self._peaks for text in peak.achieved()]
        worst = max(self._waits, default=_SECONDS)
        if worst > self.longest:
            found.append(f"another tenant waited {worst:.1f} s for an answer, and {self._calm:.1f} s before")
        return found

    def figures(self) -> str:
        """Return what was noticed, however little."""
        grown = ", ".join(f"{peak.name} +{peak.growth():.1f} MiB" for peak in self._peaks)
        return f"{grown}; another tenant waited {max(self._waits, default=0):.1f} s at most, {self._calm:.1f} s before"

    def _ask_again(self) -> None:
        while not self._stop.is_set():
            self._waits.append(self._ask())
            self._stop.wait(0.1)

    def _ask(self) -> float:
        """Create a request that is refused; return the seconds until it is, or all of them if it is not."""
        caller, name, begun = self._world.bystander, f"asks-{next(self._numbers)}", time.monotonic()
        caller.create(path(NAB, BYSTANDER), body_of(NAB, name, _REFUSED))
        target = path(NAB, BYSTANDER, name)
        while time.monotonic() < begun + _SECONDS and not _is_answered(caller.get(target)):
            time.sleep(0.02)
        seconds = time.monotonic() - begun
        caller.delete(target)
        return seconds


def _is_answered(found: dict[str, dict[str, object]] | None) -> bool:
    return bool(found and found.get("status", {}).get("conditions"))


Load = Callable[[World], Iterator[None]]
"""Put the load on, yield, and take it away again."""

BATCHES: dict[str, dict[str, Load]] = {}
"""Loads by name in batches: those of a batch are put on together, and tried one by one if that was noticed."""


def under_load(batch: str) -> Callable[[Load], Load]:
    """Add a load to a batch and to the list of attacks."""

    def add(load: Load) -> Load:
        BATCHES.setdefault(batch, {})[load.__name__] = load

        @attack
        @functools.wraps(load)
        def act(world: World) -> list[str]:
            with Watch(world) as watch, contextmanager(load)(world):
                watch.settle()
                return watch.achieved()

        return load

    return add


@dataclass(frozen=True)
class Control:
    """What must be noticed while the load of a batch is on, by the same checks."""

    reads: Sequence[str] = ()  # by a process without bounds
    is_stalled: bool = False  # the operator does nothing for a while

    def try_all(self, world: World, watch: Watch) -> Iterator[tuple[str, bool]]:
        """Do what must be noticed; return what it was, and whether it was noticed."""
        if self.reads:
            peak = Peak(os.getpid(), "a reader without bounds")
            texts = [world.admin.send("GET", target).text for target in self.reads]
            held = [json.loads(text) for text in texts]
            yield "reading without bounds", bool(peak.achieved())
            del held, texts
        if self.is_stalled:
            with _stopped(world):
                time.sleep(watch.longest + 1)
            watch.settle()
            yield "a stopped operator", bool(watch.achieved())


CONTROLS: dict[str, Control] = {}
"""The controls of a batch."""


def run_batches(world: World, wanted: list[Attack], score: Score) -> None:
    """Put the loads of each batch on together; whatever is noticed, and what is in no batch, is tried one by one."""
    left = {one.name: one for one in wanted}
    for batch, loads in BATCHES.items():
        chosen = {name: load for name, load in loads.items() if name in left}
        achieved = _together(world, batch, chosen, score) if chosen else None
        if achieved is not None and (not achieved or len(chosen) == 1):
            for name in chosen:
                score.add(name, achieved)
                del left[name]
    run_each(world, list(left.values()), score)


def _together(world: World, batch: str, loads: Mapping[str, Load], score: Score) -> list[str] | None:
    """Put loads on together and try the controls of their batch; return what was noticed, or None if it broke."""
    began, before = time.monotonic(), world.belongings()
    try:
        with Watch(world) as watch, ExitStack() as stack:
            for load in loads.values():
                stack.enter_context(contextmanager(load)(world))
            watch.settle()
            achieved, figures = watch.achieved(), watch.figures()
            for control, is_noticed in CONTROLS.get(batch, Control()).try_all(world, watch):
                if not is_noticed:
                    score.broken.append(f"control of {batch}: {control} is not noticed")
                score.controls += is_noticed
        achieved += changes(before, world.belongings())
    except Exception:  # noqa: BLE001 - each of them is tried alone
        print(f"batch     {batch}\n{traceback.format_exc(limit=-3)}", flush=True)
        return None
    word = "NOTICED" if achieved else "unnoticed"
    print(f"batch     {batch}: {len(loads)} in {time.monotonic() - began:.1f} s, {word}: {figures}", flush=True)
    return achieved


@contextmanager
def _stopped(world: World) -> Iterator[None]:
    world.operator.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        world.operator.send_signal(signal.SIGCONT)
