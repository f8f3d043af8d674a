"""A cancellation is never lost, also when it comes in the same turn of the event loop as what was waited for."""

import asyncio
from datetime import timedelta

import pytest

from foresail.kube.queue import Queue
from foresail.kube.reflector import Reflector, WatchSpec
from foresail.kube.store import Store
from foresail.kube.watch import Watch
from foresail.plan import Key, Kind
from tests.worlds import virtual_time
from tests.worlds.virtual_time import WallClock
from tests.worlds.visitor import Visitor
from tests.worlds.world import Definition, World

TURNS = range(8)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("between", TURNS)
def test_a_worker_cancelled_as_a_key_arrives_ends(between: int) -> None:
    async def run() -> None:
        clock = WallClock()
        queue = Queue(clock)
        queue.add_at(Key("ns", "later"), clock() + timedelta(hours=1))
        worker = asyncio.create_task(queue.get())
        await turns(10)
        queue.add(Key("ns", "a"))
        await turns(between)
        if worker.cancel():
            await asyncio.gather(worker, return_exceptions=True)
            assert worker.cancelled()

    virtual_time.run(run())


@pytest.mark.parametrize("between", TURNS)
def test_a_watch_cancelled_as_an_event_arrives_ends(between: int) -> None:
    async def run() -> None:
        kind = Kind("worlds.foresail.dev", "v1", "things", "Thing")
        world = World(WallClock(), Definition(kind))
        spec = WatchSpec(kind, dict[str, object], len)
        watch = Watch(Visitor(world), Reflector(spec, Store[int](), lambda _: None, lambda _: None))
        running = asyncio.create_task(watch.run())
        await watch.synced.wait()
        await turns(10)
        world.create(kind, {"metadata": {"name": "a"}}, "tenant", "default")
        await turns(between)
        running.cancel()
        done, _ = await asyncio.wait([running], timeout=10)
        assert done == {running}

    virtual_time.run(run())
