"""RestoreChecks of many tenants at once: how long until everybody's has ended, in virtual time.

`python -m tests.worlds.check_queue 1000` prints one JSON object for each number of checks at a time and for a Velero
that restores one after the other, or all at once; `1000 2` gives two checks to each tenant.
"""

import asyncio
import json
import sys
from dataclasses import dataclass, field

from foresail.api.restore_check import RESTORE_CHECK
from foresail.plan import Key
from tests.worlds import virtual_time
from tests.worlds.garbage import NAMESPACE
from tests.worlds.history import Happening
from tests.worlds.tenant_checks import TenantScene
from tests.worlds.world import done

_LONGEST = 14 * 86_400


@dataclass
class Queue:
    """What became of the checks of all tenants."""

    results: dict[str, str] = field(default_factory=dict)  # by namespace
    seconds: float = 0.0
    most: int = 0  # checks that ran at a time
    most_of_one: int = 0  # of one namespace
    running: set[Key] = field(default_factory=set)

    @property
    def out_of_turn(self) -> int:
        """How many checks of tenants with a result ended before the first one of every tenant."""
        namespaces = [text.partition("/")[0] for text in self.results]
        firsts = len(set(namespaces))
        return firsts - len(set(namespaces[:firsts]))


def queued(tenants: int, at_once: int, *, lasts: float = 20.0, one_at_a_time: bool = True, each: int = 1) -> Queue:
    """Let so many tenants have checks that are due at the same moment, and wait until all have ended."""
    return virtual_time.run(_queued(tenants, at_once, lasts, each, one_at_a_time=one_at_a_time))


async def _queued(tenants: int, at_once: int, lasts: float, each: int, *, one_at_a_time: bool) -> Queue:
    scene, queue, ended = TenantScene(), Queue(), asyncio.Event()
    scene.at_once, scene.lasts, scene.one_at_a_time = at_once, lasts, one_at_a_time
    scene.weather.bookmark_every = 86_400.0
    keys = [Key(f"team-{number}", f"own-{which}") for number in range(tenants) for which in range(each)]
    for namespace in dict.fromkeys(key.namespace for key in keys):
        done(scene.world.create(NAMESPACE, {"metadata": {"name": namespace}}, "admin"))
        scene.back_up_own("monday", namespace)
    for key in keys:
        scene.ask(key)

    def heard(happening: Happening) -> None:
        if happening.kind != RESTORE_CHECK or happening.after is None:
            return
        status = happening.after.get("status", {})
        (queue.running.add if status.get("run") else queue.running.discard)(happening.key)
        queue.most = max(queue.most, len(queue.running))
        of_one = sum(each.namespace == happening.key.namespace for each in queue.running)
        queue.most_of_one = max(queue.most_of_one, of_one)
        if status.get("last") and str(happening.key) not in queue.results:
            queue.results[str(happening.key)] = status["last"]["reason"]
            queue.seconds = asyncio.get_running_loop().time()
        if len(queue.results) == len(keys):
            ended.set()

    scene.world.history.listeners.append(heard)
    scene.start(workers=16)
    async with asyncio.timeout(_LONGEST):
        await ended.wait()
    await scene.stop()
    return queue


def main() -> None:
    """Print how long the checks of so many tenants take."""
    tenants = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    each = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    for one_at_a_time, lasts in ((True, 3.0), (False, 20.0)):
        for at_once in (1, 4, 16):
            queue = queued(tenants, at_once, lasts=lasts, one_at_a_time=one_at_a_time, each=each)
            figures = {
                "tenants": tenants,
                "checks": len(queue.results),
                "at_once": at_once,
                "restore_seconds": lasts,
                "velero_restores": "one at a time" if one_at_a_time else "all at once",
                "seconds": round(queue.seconds),
                "most_at_once": queue.most,
                "most_of_one_tenant": queue.most_of_one,
                "out_of_turn": queue.out_of_turn,
                "passed": sum(each == "Complete" for each in queue.results.values()),
            }
            print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
