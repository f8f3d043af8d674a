"""What others notice of an attack: the memory of our processes, and how long another tenant waits for an answer."""

import functools
import os
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.redteam.attack import Act, attack, controlled_by
from tests.redteam.world import BYSTANDER, NAB, World, body_of, path, until

MOST_GROWTH = 32.0
"""MiB that a process may hold for a moment beyond what it held before."""

LONGEST_WAIT = 10.0
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

    def achieved(self) -> list[str]:
        """Return what an attack has achieved: the process has ended, or has held too much."""
        try:
            growth = _memory(self.pid, "VmHWM") - self.before
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


def watched(load: Load) -> Act:
    """Return the attack that puts a load on and is judged by what others notice of it."""

    @functools.wraps(load)
    def act(world: World) -> list[str]:
        with Watch(world) as watch, contextmanager(load)(world):
            watch.settle()
            return watch.achieved()

    return act


def under_load(load: Load) -> Load:
    """Add a load to the list of attacks."""
    attack(watched(load))
    return load


def read_by(target: str) -> Callable[[Load], Load]:
    """Add a load whose control is a process that reads a collection as a whole: its growth must be noticed."""

    def add(load: Load) -> Load:
        @functools.wraps(load)
        def control(world: World) -> list[str]:
            with contextmanager(load)(world):
                peak = Peak(os.getpid(), "a reader without bounds")
                world.admin.items(target)
                return peak.achieved()

        controlled_by(control)(watched(load))
        return load

    return add


def stalled(load: Load) -> Load:
    """Add a load whose control is an operator that does nothing for a while: the bystander must notice."""

    @functools.wraps(load)
    def control(world: World) -> list[str]:
        with Watch(world) as watch, contextmanager(load)(world):
            with _stopped(world):
                time.sleep(watch.longest + 1)
            watch.settle()
            return watch.achieved()

    controlled_by(control)(watched(load))
    return load


@contextmanager
def _stopped(world: World) -> Iterator[None]:
    world.operator.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            world.operator.send_signal(signal.SIGCONT)
