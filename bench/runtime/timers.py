"""Ten thousand instants at once, and single ones: how late the decision comes, in a process of its own.

python -m bench.runtime.timers KUBECONFIG PORT COUNT, which prints what it measured and ends.
"""

import asyncio
import json
import sys
from datetime import datetime, timedelta

import msgspec

from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.kube.connect import connect
from foresail.kube.controller import Informer
from foresail.kube.execute import Executor
from foresail.kube.loop import Loop
from foresail.kube.reflector import WatchSpec
from foresail.kube.store import Store
from foresail.plan import Key, Plan
from tests.cluster.parents import PARENT

_AHEAD = timedelta(seconds=10)
_SINGLES, _APART = 20, timedelta(seconds=0.5)


class Row(msgspec.Struct, frozen=True):
    """Of a Parent, nothing but that it is there."""


class Punctual:
    """Wants to look at each Parent at one instant, the same for all; then at the last of them again and again."""

    name = "punctual"

    def __init__(self, instant: datetime) -> None:
        self.parents = Store[Row]()
        self.informers = (Informer(WatchSpec(PARENT, Row, lambda row: row), self.parents, lambda change: [change.key]),)
        self.late: dict[Key, timedelta] = {}
        self.again = 0  # looks after the instant at what has been looked at since
        self.singles: list[timedelta] = []
        self.ended = asyncio.Event()
        self._instant = instant
        self._single: tuple[Key, datetime] | None = None

    def observe(self, key: Key, _now: datetime) -> Key | None:
        """Read whether there is such a Parent."""
        return key if key in self.parents else None

    def decide(self, key: Key, now: datetime) -> Plan:
        """Note how late it is, and say when to look again."""
        if now < self._instant:
            return Plan(wake_at=self._instant)
        if self._single is not None and self._single[0] == key:
            self.singles.append(now - self._single[1])
        elif key in self.late:
            self.again += 1
            return Plan()
        else:
            self.late[key] = now - self._instant
        if len(self.late) < len(self.parents):
            return Plan()
        if len(self.singles) == _SINGLES:
            self.ended.set()
            return Plan()
        self._single = key, now + _APART
        return Plan(wake_at=now + _APART)


async def main(kubeconfig: str, count: int) -> None:
    """Wait for all instants, and print how late the decisions were."""
    controller = Punctual(now() + _AHEAD)
    async with Client(await connect(kubeconfig)) as client:
        loop = Loop(client, controller, Executor(client), now)
        running = asyncio.create_task(loop.run())
        async with asyncio.timeout(120):
            await controller.ended.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    late = sorted(each.total_seconds() * 1000 for each in controller.late.values())
    facts = {
        "timers": len(late),
        "timers_missed": count - len(late),
        "timers_handled_twice": controller.again,
        "timer_p50_ms": round(late[len(late) // 2], 1),
        "timer_p99_ms": round(late[int(len(late) * 0.99) - 1], 1),
        "timer_max_ms": round(late[-1], 1),
        "single_timer_ms": round(max(each.total_seconds() for each in controller.singles) * 1000, 1),
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[3])))
