"""One process among equals: it watches always, works while it leads, and when told to end hands over in order."""

import asyncio
import gc
import logging
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.registry import Collector

from foresail.kube.aimed_kill import AimedKill
from foresail.kube.candidate import Terms
from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.kube.connect import Connection
from foresail.kube.controller import Controller
from foresail.kube.debug import debugging
from foresail.kube.events import Events
from foresail.kube.execute import Executor
from foresail.kube.health import serving
from foresail.kube.lease import Leadership
from foresail.kube.loop import Loop
from foresail.kube.metrics import Metrics
from foresail.kube.requests import Requests
from foresail.kube.tracing import Tracer
from foresail.kube.watch import STALE_SECONDS
from foresail.plan import Key

_log = logging.getLogger(__name__)
_WARM_UP = 30.0  # seconds after which a replica stands for the Lease though a kind is missing: the others need it
_LAST_EVENTS = 2.0  # seconds for Events that still wait at the end


@dataclass(frozen=True, slots=True)
class Place:
    """Who this process is among its equals, what they share, and where it answers."""

    name: str  # who reports Events
    identity: str  # unlike that of any other running process; a pod's name is one
    lease: Key
    terms: Terms = field(default_factory=Terms)
    host: str | None = None  # all addresses, old and new: the kubelet and Prometheus come from outside
    port: int = 8081
    drain: float = 10.0
    stale: float = STALE_SECONDS  # unready when a store has not been confirmed for so long


async def run(
    connection: Connection,
    controllers: Sequence[Controller[Any]],
    place: Place,
    *,
    figures: Sequence[Collector] = (),
    before_write: Callable[[], None] = lambda: None,
    tracer: Tracer | None = None,
) -> None:
    """Run the controllers until SIGTERM or SIGINT; then finish what was begun, release the Lease, and return."""
    kill = AimedKill.asked_for(os.environ)

    def about_to_write() -> None:
        before_write()
        kill.before_write()

    requests = Requests()
    async with (
        Client(connection, requests=requests, tracer=tracer) as client,
        Client(connection, requests=requests) as for_events,
        # Its own connections and limiter: nothing else may delay a renewal.
        Client(connection, requests=requests) as for_lease,
    ):
        leadership = Leadership(for_lease, place.lease, place.identity, now, place.terms)
        loops: list[Loop[Any]] = []
        events = Events(
            for_events, place.name, place.identity, now, is_busy=lambda: any(len(each.queue) for each in loops)
        )
        executor = Executor(
            client,
            may_write=lambda: leadership.is_leader,
            before_write=about_to_write,
            after_write=kill.after_write,
        )
        for each in controllers:
            beside = tuple(loops)
            loop = Loop(
                client, each, executor, now, election=leadership, emit=events.emit, siblings=beside, tracer=tracer
            )
            loops.append(loop)
        metrics = Metrics(
            loops, executor, events, lambda: leadership.is_leader, figures, lease=place.lease.name, requests=requests
        )
        async with serving(loops, metrics, place.host, place.port, stale_seconds=place.stale) as port:
            _log.info("%s answers on port %d", place.identity, port)
            telling = asyncio.create_task(events.run())
            try:
                with debugging(loops):
                    await _work_until_told_to_end(leadership, loops, place.drain)
            finally:
                # Nothing is written any more, whether it ended in order or a watch died: another may take over.
                await leadership.release()
                await asyncio.wait([asyncio.create_task(events.flushed())], timeout=_LAST_EVENTS)
                telling.cancel()


async def _work_until_told_to_end(leadership: Leadership, loops: Sequence[Loop[Any]], drain: float) -> None:
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    async with asyncio.TaskGroup() as group:
        standing = group.create_task(_stand(leadership, loops))
        working = [group.create_task(loop.run()) for loop in loops]
        await told.wait()
        _log.info("told to end: finishing what was begun")
        for loop in loops:
            loop.drain()
        _, late = await asyncio.wait(working, timeout=drain)
        if late:
            _log.warning("not everything that was begun is done after %g s; the next leader takes it from there", drain)
        for task in (standing, *late):
            task.cancel()


async def _stand(leadership: Leadership, loops: Sequence[Loop[Any]]) -> None:
    """Stand for the Lease once warm: a replica that has read nothing yet must not keep a warm one from working."""
    warming = [asyncio.create_task(loop.synced()) for loop in loops]
    try:
        await asyncio.wait(warming, timeout=_WARM_UP)
    finally:
        for task in warming:
            task.cancel()
    # What has been read stays for long: the collector of cycles need not go through all of it again and again while
    # nothing else runs. What goes is freed as before, for rows are in no cycle.
    gc.collect()
    gc.freeze()
    await leadership.run()
