"""Runs one replica: it always watches, reconciles while it is the leader, and shuts down gracefully."""

import asyncio
import gc
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from prometheus_client.registry import Collector

from foresail.kube.candidate import LeaseTiming
from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.kube.connect import Connection
from foresail.kube.controller import Controller
from foresail.kube.crash_injection import CrashInjection
from foresail.kube.debug import debugging
from foresail.kube.events import Events
from foresail.kube.execute import Executor
from foresail.kube.health import readiness_problems, serving
from foresail.kube.lease import HistoryRewoundError, Leadership
from foresail.kube.loop import Loop
from foresail.kube.metrics import Metrics
from foresail.kube.requests import Requests
from foresail.kube.store import STALE_SECONDS
from foresail.kube.tracing import Tracer
from foresail.plan import Key

_log = logging.getLogger(__name__)
_SYNC_TIMEOUT = 30.0  # seconds; then a replica campaigns although a store is incomplete: other kinds need a leader
_FLUSH_TIMEOUT = 2.0  # seconds for queued Events at the end


@dataclass(frozen=True, slots=True)
class ReplicaConfig:
    """The identity of this replica, the Lease it shares with others, and where it serves HTTP."""

    name: str  # reportingController of Events
    identity: str  # unique among running processes, such as a pod's name
    lease: Key
    timing: LeaseTiming = field(default_factory=LeaseTiming)
    host: str | None = None  # all addresses of IPv4 and IPv6: the kubelet and Prometheus connect from outside
    port: int = 8081
    drain: float = 10.0  # seconds to finish running reconciles
    stale: float = STALE_SECONDS  # unready when a store was last confirmed longer ago
    annotations: Callable[[datetime, Sequence[str]], Mapping[str, str]] = lambda _, __: {}
    """What the Lease tells beside its holder, now, given why this replica is not ready."""


async def run(
    connection: Connection,
    controllers: Sequence[Controller[Any]],
    config: ReplicaConfig,
    *,
    figures: Sequence[Collector] = (),
    before_write: Callable[[], None] = lambda: None,
    tracer: Tracer | None = None,
) -> None:
    """Run the controllers until SIGTERM or SIGINT; then finish running reconciles, release the Lease, and return."""
    kill = CrashInjection.from_environment(os.environ)

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
        loops: list[Loop[Any]] = []

        def annotations() -> Mapping[str, str]:
            return config.annotations(now(), readiness_problems(loops, config.stale))

        leadership = Leadership(for_lease, config.lease, config.identity, now, config.timing, annotations)
        events = Events(
            for_events, config.name, config.identity, now, is_busy=lambda: any(len(loop.queue) for loop in loops)
        )
        executor = Executor(
            client,
            may_write=lambda: leadership.is_leader,
            before_write=about_to_write,
            after_write=kill.after_write,
        )
        for controller in controllers:
            beside = tuple(loops)
            loop = Loop(
                client, controller, executor, now, election=leadership, emit=events.emit, siblings=beside, tracer=tracer
            )
            loops.append(loop)
        metrics = Metrics(
            loops, executor, events, lambda: leadership.is_leader, figures, lease=config.lease.name, requests=requests
        )
        async with serving(loops, metrics, config.host, config.port, stale_seconds=config.stale) as port:
            _log.info("%s: serving on port %d", config.identity, port)
            writing_events = asyncio.create_task(events.run())
            try:
                with debugging(loops):
                    await _run_until_signalled(leadership, loops, config.drain)
            finally:
                # No more writes, after a signal as well as after a dead watch: another replica may take over.
                await leadership.release()
                await asyncio.wait([asyncio.create_task(events.flushed())], timeout=_FLUSH_TIMEOUT)
                writing_events.cancel()


async def _run_until_signalled(leadership: Leadership, loops: Sequence[Loop[Any]], drain: float) -> None:
    signalled = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, signalled.set)
    async with _unwrapped(HistoryRewoundError), asyncio.TaskGroup() as group:
        campaign = group.create_task(_campaign_when_synced(leadership, loops))
        working = [group.create_task(loop.run()) for loop in loops]
        await signalled.wait()
        _log.info("shutting down: finishing running reconciles")
        for loop in loops:
            loop.drain()
        _, late = await asyncio.wait(working, timeout=drain)
        if late:
            _log.warning("cancelled reconciles that did not finish within %g s; the next leader continues them", drain)
        for task in (campaign, *late):
            task.cancel()


@asynccontextmanager
async def _unwrapped(kind: type[Exception]) -> AsyncIterator[None]:
    """Raise an error of a kind as itself, not in the group of its task."""
    try:
        yield
    except* kind as group:
        raise group.exceptions[0] from None


async def _campaign_when_synced(leadership: Leadership, loops: Sequence[Loop[Any]]) -> None:
    """Campaign for the Lease once the stores are complete, so that a replica that cannot work does not lead."""
    syncing = [asyncio.create_task(loop.synced()) for loop in loops]
    try:
        await asyncio.wait(syncing, timeout=_SYNC_TIMEOUT)
    finally:
        for task in syncing:
            task.cancel()
    # Stores live long, so the cyclic garbage collector should not scan them again and again, which blocks the event
    # loop. Deleted rows are freed all the same, because they are in no cycle.
    gc.collect()
    gc.freeze()
    await leadership.run()
