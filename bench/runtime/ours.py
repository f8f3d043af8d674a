"""The runtime as it runs in a cluster, Lease, Events and metrics included, with the example as its controller.

python -m bench.runtime.ours KUBECONFIG PORT [events]
"""

import asyncio
import json
import sys
from datetime import datetime
from typing import Any

import msgspec
from one_child_each import OneChildEach

from bench.runtime.stopwatch import Stopwatch
from bench.runtime.world import ACCOUNT
from foresail.kube import replica
from foresail.kube.connect import connect
from foresail.kube.controller import Controller
from foresail.plan import Key, Plan


class Quiet:
    """A controller that says nothing: Events are measured apart."""

    def __init__(self, inner: Controller[Any]) -> None:
        self.name = inner.name
        self.informers = inner.informers
        self.observe = inner.observe
        self._inner = inner

    def decide(self, seen: object, now: datetime) -> Plan:
        """Decide as the inner one does, without its notes."""
        return msgspec.structs.replace(self._inner.decide(seen, now), notes=())


async def main(kubeconfig: str, port: int, *, with_events: bool) -> None:
    """Run until SIGTERM, then print what was measured."""
    stopwatch = Stopwatch()
    controller: Controller[Any] = OneChildEach()
    config = replica.ReplicaConfig(controller.name, "bench", Key("default", ACCOUNT), host="127.0.0.1", port=port)
    measured = controller if with_events else Quiet(controller)
    await replica.run(await connect(kubeconfig), [measured], config, before_write=stopwatch)
    print(json.dumps(stopwatch.facts))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), with_events="events" in sys.argv[3:]))
