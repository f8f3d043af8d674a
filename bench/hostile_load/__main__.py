"""A hostile tenant for ten minutes by each attack, beside a normal tenant: `make hostile-load`, also `SIZE=0.1`.

On a real cluster with Velero, operator, restore checks and console run within the memory limits of the chart, Velero
within that of `velero install`. Who ends is started again, as the kubelet does. The normal tenant backs up and restores
alone and beside each attack. The last line is one JSON object; the exit code is 1 if a bound is missed.
"""

import argparse
import json
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Self

from bench.figures import Bounds, verdict
from bench.hostile_load.attacks import ATTACKS, Attack, Step
from bench.hostile_load.neighbour import Times, shown
from bench.hostile_load.scene import Scene, scene
from testbed.errors import TestbedError
from tests.redteam.world import path, until

SECONDS = 600.0
_ALONE_SECONDS = 120.0
_LEAST_SECONDS = 20.0
_CLOSED_SECONDS = 300

BOUNDS: Bounds = {
    "slowdown is at most 3": lambda f: f["slowdown"] <= 3,
    "restarts is 0": lambda f: f["restarts"] == 0,
    "peak_of_limit is at most 0.5": lambda f: f["peak_of_limit"] <= 0.5,
    "unfinished is 0": lambda f: f["unfinished"] == 0,
    "hooks_admitted is 0": lambda f: f["hooks_admitted"] == 0,
}


@dataclass
class Hands:
    """Threads that repeat a step until told to stop."""

    scene: Scene
    attack: Attack
    step: Step
    codes: Counter[int] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    _numbers: "count[int]" = field(default_factory=count)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._threads = [threading.Thread(target=self._repeat) for _ in range(self.attack.hands)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _repeat(self) -> None:
        caller = self.scene.hostile()
        while not self._stop.is_set():
            try:
                answer = self.step(caller, next(self._numbers))
            except Exception as error:  # noqa: BLE001 - a server that is down is a figure, not the end
                self.errors[type(error).__name__] += 1
                self._stop.wait(0.5)
                continue
            if answer is not None:
                self.codes[answer.code] += 1
            self._stop.wait(self.attack.pause)


def attacked(world: Scene, name: str, attack: Attack, seconds: float, alone: Times) -> dict[str, Any]:
    """Let one attack go on for so long, and return what the normal tenant and the processes had of it."""
    space = f"hostile-{name}"
    world.open(space, attack.policy)
    prepared = time.monotonic()
    step = attack.prepare(world, space)
    print(f"{name}: prepared in {time.monotonic() - prepared:.0f} s", flush=True)
    hands = Hands(world, attack, step)
    with hands:
        deadline = time.monotonic() + seconds
        times = world.neighbour.work(lambda: time.monotonic() < deadline, max(seconds, 60.0))
    seen = {label: container.looked() for label, container in world.containers.items()}
    peaks = {label: round(seen[label].peak_mib / world.containers[label].limit_mib, 2) for label in seen}
    figures = {
        "slowdown": round(times.slowdown(alone), 2),
        "backup": shown(times.backups),
        "restore": shown(times.restores),
        "unfinished": times.unfinished,
        "failed": times.failed,
        "restarts": {label: each.restarts for label, each in seen.items() if each.restarts},
        "out_of_memory": {label: each.out_of_memory for label, each in seen.items() if each.out_of_memory},
        "peak_of_limit": peaks,
        "answers": {str(code): number for code, number in sorted(hands.codes.items())},
        "errors": dict(hands.errors),
    }
    print(json.dumps({name: figures}), flush=True)
    return figures


def calm(world: Scene, name: str) -> None:
    """Take away what an attack left, and wait until everything runs again."""
    space = f"hostile-{name}"
    world.close(space)
    until(lambda: world.admin.get(path("namespaces", name=space)) is None, _CLOSED_SECONDS, f"{space} is gone")
    world.neighbour.work(lambda: False, _CLOSED_SECONDS)
    for container in world.containers.values():
        container.looked()


def measure(world: Scene, names: list[str], seconds: float) -> dict[str, Any]:
    """Measure the normal tenant alone, and then beside each attack."""
    deadline = time.monotonic() + max(_ALONE_SECONDS * world.size, _LEAST_SECONDS)
    alone = world.neighbour.work(lambda: time.monotonic() < deadline, SECONDS)
    quiet = {label: container.looked() for label, container in world.containers.items()}
    print(json.dumps({"alone": {"backup": shown(alone.backups), "restore": shown(alone.restores)}}), flush=True)
    attacks: dict[str, Any] = {}
    for name in names:
        attacks[name] = attacked(world, name, ATTACKS[name], seconds, alone)
        calm(world, name)
    codes = attacks.get("hooks", {}).get("answers", {})
    return {
        "seconds_each": seconds,
        "limited": all(container.group.is_limited for container in world.containers.values()),
        "limits_mib": {label: container.limit_mib for label, container in world.containers.items()},
        "alone": {"backup": shown(alone.backups), "restore": shown(alone.restores)},
        "alone_mib": {label: round(each.peak_mib) for label, each in quiet.items()},
        "slowdown": max(each["slowdown"] for each in attacks.values()),
        "restarts": sum(sum(each["restarts"].values()) for each in attacks.values()),
        "peak_of_limit": max(
            share for each in attacks.values() for label, share in each["peak_of_limit"].items() if label != "velero"
        ),
        "velero_peak_of_limit": max(each["peak_of_limit"]["velero"] for each in attacks.values()),
        "unfinished": sum(each["unfinished"] for each in attacks.values()),
        "hooks_admitted": sum(number for code, number in codes.items() if code.startswith("2")),
        "attacks": attacks,
    }


def main() -> int:
    """Measure, print, and say which bounds are missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.hostile_load", description=__doc__)
    parser.add_argument("--size", type=float, default=1.0, help="the part of the full size, such as 0.1")
    parser.add_argument("--attack", action="append", choices=ATTACKS, help="only this one; may be repeated")
    args = parser.parse_args()
    try:
        with scene(args.size) as world:
            figures = measure(world, args.attack or list(ATTACKS), SECONDS * args.size)
    except TestbedError as error:
        print(error, file=sys.stderr)
        return 2
    return verdict({"size": args.size, **figures}, BOUNDS)


if __name__ == "__main__":
    sys.exit(main())
