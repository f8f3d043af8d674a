"""Whether a reconcile costs more among ten times as many objects: without a cluster, in one process, side by side.

`python -m bench.burst` puts self-service into two worlds, with 1,000 finished backups and with 10,000. Bursts of
requests come to both in turns, so that other work on the machine meets both. The last line is one JSON object: CPU time
of a reconcile, the simulated API server included; calls of functions of the product; time in the garbage collector.
"""

import argparse
import asyncio
import cProfile
import gc
import json
import pstats
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import foresail
from bench.selfservice.scale import name_of, namespace_of
from foresail.api import velero
from foresail.api.nonadmin import NON_ADMIN_BACKUP
from foresail.plan import Key
from foresail.tenancy.records import nacuuid_of
from tests.worlds import virtual_time
from tests.worlds.documents import Document
from tests.worlds.garbage import NAMESPACE
from tests.worlds.tenancy import VELERO, Tenancy

FIRST = Key("red", "nab-first")
REQUESTS = 100
_READ, _SERVED = 100.0, 30.0  # virtual seconds until all is read, and until a burst is served
_PRODUCT = str(Path(foresail.__file__).parent)


@dataclass
class Cost:
    """What a burst has cost, for each reconcile."""

    cpu_ms: float
    gc_ms: float
    calls: float


class Collector:
    """A stopwatch for the garbage collector."""

    def __init__(self) -> None:
        self.seconds = self._began = 0.0
        gc.callbacks.append(self._heard)

    def _heard(self, phase: str, _: object) -> None:
        if phase == "start":
            self._began = time.process_time()
        else:
            self.seconds += time.process_time() - self._began


class Crowd:
    """A world with so many finished backups, and an operator that has read them."""

    def __init__(self, backups: int, collector: Collector) -> None:
        self._backups, self._collector = backups, collector
        self._scene = Tenancy()
        self._bursts = self._reconciles = 0

    async def begin(self) -> None:
        """Have one backup served, multiply it, and let an operator read all of them."""
        scene = self._scene
        scene.start()
        scene.back_up(FIRST)
        await asyncio.sleep(5)
        scene.velero_says(FIRST, velero.COMPLETED, startTimestamp=scene.now(), completionTimestamp=scene.now())
        await scene.settle()
        await scene.stop()
        self._multiply()
        scene.start().loop.on_reconciled = self._reconciled
        await asyncio.sleep(_READ)

    async def burst(self, profile: cProfile.Profile | None = None) -> Cost:
        """Let requests come at once, and wait until all are served."""
        collected, reconciles, number = self._collector.seconds, self._reconciles, self._bursts
        self._bursts += 1
        began = time.process_time()
        if profile is not None:
            profile.enable()
        keys = [Key("blue", f"burst-{number:03}-{each:03}") for each in range(REQUESTS)]
        for key in keys:
            self._scene.back_up(key)
        await asyncio.sleep(_SERVED)
        if profile is not None:
            profile.disable()
        spent = time.process_time() - began
        if any(self._scene.status(key).get("phase") != "Created" for key in keys):
            raise SystemExit("not every request of a burst was served")
        count = self._reconciles - reconciles
        calls = sum(_calls(profile)) if profile is not None else 0
        return Cost(spent * 1e3 / count, (self._collector.seconds - collected) * 1e3 / count, calls / count)

    async def end(self) -> None:
        """Stop the operator."""
        await self._scene.stop()

    def _reconciled(self, _outcome: str, _seconds: float) -> None:
        self._reconciles += 1

    def _multiply(self) -> None:
        history = self._scene.world.history
        request, space = history.present(NON_ADMIN_BACKUP)[FIRST], history.present(NAMESPACE)[Key("", FIRST.namespace)]
        (made,) = history.present(velero.BACKUP).values()
        uids = [each["metadata"]["uid"] for each in (request, made, space)]
        listeners, history.listeners = history.listeners, []  # they would copy and note each of them
        for number in range(self._backups):
            namespace, name = namespace_of(number), name_of(number)
            own = [_uid(name), _uid(f"velero of {name}"), _uid(namespace)]
            backup = nacuuid_of(namespace, name, own[0])
            new = {made["metadata"]["name"]: backup, FIRST.name: name, f'"{FIRST.namespace}"': f'"{namespace}"'}
            new |= dict(zip(uids, own, strict=True))
            history.put(NAMESPACE, Key("", namespace), _copy(space, new))
            history.put(NON_ADMIN_BACKUP, Key(namespace, name), _copy(request, new))
            history.put(velero.BACKUP, Key(VELERO, backup), _copy(made, new))
        history.compact()
        history.listeners = listeners


def _uid(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def _copy(document: Document, new: dict[str, str]) -> Document:
    text = json.dumps(document)
    for old, replacement in new.items():
        text = text.replace(old, replacement)
    copied: Document = json.loads(text)
    return copied


def _calls(profile: cProfile.Profile) -> Iterator[int]:
    """Yield how often each function of the product was called."""
    found: Any = pstats.Stats(profile)
    for (path, _, _), (_, calls, *_) in found.stats.items():
        if path.startswith(_PRODUCT):
            yield calls


async def measure(backups: int, factor: int, rounds: int) -> dict[str, object]:
    """Let bursts come to a small and to a large world in turns."""
    collector = Collector()
    crowds = Crowd(backups, collector), Crowd(backups * factor, collector)
    for crowd in crowds:
        await crowd.begin()
        await crowd.burst()  # what is done only once
    gc.collect()
    gc.freeze()  # as an operator does that has read everything
    calls = [round((await crowd.burst(cProfile.Profile())).calls, 1) for crowd in crowds]
    small, large = list[Cost](), list[Cost]()
    for number in range(rounds):
        for costs, crowd in list(zip((small, large), crowds, strict=True))[:: 1 if number % 2 else -1]:
            costs.append(await crowd.burst())
    for crowd in crowds:
        await crowd.end()
    return {
        "backups": [backups, backups * factor],
        "calls": calls,
        "cpu_ms": [round(median(each.cpu_ms for each in costs), 3) for costs in (small, large)],
        "gc_ms": [round(median(each.gc_ms for each in costs), 3) for costs in (small, large)],
        "cpu_ratio": round(median(b.cpu_ms / a.cpu_ms for a, b in zip(small, large, strict=True)), 2),
    }


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m bench.burst", description=__doc__)
    parser.add_argument("--backups", type=int, default=1000, help="in the small world")
    parser.add_argument("--factor", type=int, default=10, help="how many times as many are in the large one")
    parser.add_argument("--rounds", type=int, default=40, help="bursts in each world")
    arguments = parser.parse_args()
    print(json.dumps(virtual_time.run(measure(arguments.backups, arguments.factor, arguments.rounds))))


if __name__ == "__main__":
    main()
