"""The watch at a real API server, and what it makes of everything that can go wrong between the two."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.kube.connect import connect
from foresail.kube.reflector import Change, Phase, Reflector, WatchSpec
from foresail.kube.store import Store, Unreadable
from foresail.kube.watch import STALL_SECONDS, Watch
from foresail.plan import Key
from testbed import Cluster
from tests.cluster import things
from tests.cluster.things import THING, Wire

STALL = 3.0


class Watcher:
    """A watch of things, with everything it said."""

    def __init__(self, client: Client, stall: float) -> None:
        self.changes: list[Change[int]] = []
        self.unreadable: list[Unreadable] = []
        spec = WatchSpec(THING, Wire, lambda wire: wire.spec.size)
        reflector = Reflector(spec, Store[int](), self.changes.append, self.unreadable.append)
        self.watch = Watch(client, reflector, stall=stall)

    @property
    def sizes(self) -> dict[str, int]:
        store = self.watch.reflector.store
        return {key.name: size for key in store if (size := store.get(key)) is not None}

    async def until(self, holds: Callable[[], object], seconds: float = 90.0) -> None:
        async with asyncio.timeout(seconds):
            while not holds():  # noqa: ASYNC110 - what it waits for is the watch's business, not an event of ours
                await asyncio.sleep(0.02)


@asynccontextmanager
async def watching(cluster: Cluster, server: str | None = None, stall: float = STALL) -> AsyncIterator[Watcher]:
    kubeconfig = await asyncio.to_thread(cluster.service_account_kubeconfig, "default", "watcher", server)
    async with Client(await connect(str(kubeconfig))) as client:
        watcher = Watcher(client, stall)
        running = asyncio.create_task(watcher.watch.run())
        try:
            await asyncio.wait_for(watcher.watch.synced.wait(), 90)
            yield watcher
            assert not running.done(), "the watch must outlive whatever happened"
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def put(cluster: Cluster, *content: dict[str, Any]) -> None:
    await asyncio.to_thread(cluster.apply, *content)


async def gone(cluster: Cluster, name: str) -> None:
    await asyncio.to_thread(cluster.kubectl, "delete", "things", name)


@pytest.fixture
def own_cluster(doomed_cluster: Cluster) -> Cluster:
    things.install(doomed_cluster)
    return doomed_cluster


def test_it_streams_the_present_then_the_changes(own_cluster: Cluster) -> None:
    async def run() -> None:
        await put(own_cluster, things.thing("a"), things.thing("b"))
        async with watching(own_cluster) as watcher:
            assert watcher.sizes == {"a": 1, "b": 1}
            assert all(change.initial for change in watcher.changes)
            watcher.changes.clear()
            await put(own_cluster, things.thing("a", 2))
            await gone(own_cluster, "b")
            await watcher.until(lambda: watcher.sizes == {"a": 2})
            assert [(c.key.name, c.old, c.new) for c in watcher.changes] == [("a", 1, 2), ("b", 1, None)]

    asyncio.run(run())


def test_it_survives_a_killed_api_server_and_misses_nothing_that_happened_after_it(own_cluster: Cluster) -> None:
    async def run() -> None:
        await put(own_cluster, things.thing("a"), things.thing("b"))
        async with watching(own_cluster) as watcher:
            await asyncio.to_thread(own_cluster.fault.restart, "kube-apiserver")
            await gone(own_cluster, "b")
            await put(own_cluster, things.thing("c"))
            await watcher.until(lambda: watcher.sizes == {"a": 1, "c": 1})

    asyncio.run(run())


def test_after_a_compaction_during_an_outage_the_missed_deletion_comes_out(own_cluster: Cluster) -> None:
    async def run() -> None:
        await put(own_cluster, things.thing("a"), things.thing("b"))
        with own_cluster.proxy() as proxy:
            async with watching(own_cluster, proxy.url) as watcher:
                await asyncio.to_thread(proxy.stall, "watch=true")
                await gone(own_cluster, "b")
                await put(own_cluster, things.thing("c"))
                await asyncio.to_thread(own_cluster.fault.compact_etcd)
                await asyncio.to_thread(own_cluster.fault.restart, "kube-apiserver")
                watcher.changes.clear()
                await asyncio.to_thread(proxy.resume)
                await watcher.until(lambda: watcher.sizes == {"a": 1, "c": 1})
                assert ("b", 1, None) in [(c.key.name, c.old, c.new) for c in watcher.changes]
                assert watcher.watch.reflector.phase is Phase.WATCHING

    asyncio.run(run())


@pytest.mark.parametrize("fault", ["cut", "tear", "stall"])
def test_it_comes_back_from_a_broken_stream(own_cluster: Cluster, fault: str) -> None:
    async def run() -> None:
        await put(own_cluster, things.thing("a"))
        with own_cluster.proxy() as proxy:
            async with watching(own_cluster, proxy.url) as watcher:
                await asyncio.to_thread(getattr(proxy, fault), "watch=true")
                await put(own_cluster, things.thing("a", 2), things.thing("b"))
                if fault == "stall":
                    await watcher.until(lambda: watcher.watch.last_failure)
                    assert "the watch was not answered" in str(watcher.watch.last_failure)
                    await asyncio.to_thread(proxy.resume)
                await watcher.until(lambda: watcher.sizes == {"a": 2, "b": 1})

    asyncio.run(run())


def test_objects_of_the_wrong_shape_are_named_and_nothing_else_suffers(own_cluster: Cluster) -> None:
    wrong: list[object] = ["text", None, 1.5, [1], {"a": {}}, True, 10**30, "\u0000", "x" * 200_000]
    wrong_specs: list[object] = ["text", 7, 1.5, [{"size": 1}], True]

    async def run() -> None:
        async with watching(own_cluster) as watcher:
            await put(own_cluster, *(things.thing(f"wrong-{n}", size) for n, size in enumerate(wrong)))
            await put(own_cluster, *({**things.thing(f"spec-{n}"), "spec": spec} for n, spec in enumerate(wrong_specs)))
            await put(own_cluster, things.thing("right", 7))
            await watcher.until(lambda: watcher.sizes == {"right": 7})
            names = [f"wrong-{n}" for n in range(len(wrong))] + [f"spec-{n}" for n in range(len(wrong_specs))]
            assert {found.key for found in watcher.unreadable} == {Key("default", name) for name in names}
            assert watcher.watch.reflector.store.unread.keys() == {Key("default", name) for name in names}

    asyncio.run(run())


def test_a_kind_that_is_deleted_and_created_again_is_followed(own_cluster: Cluster) -> None:
    async def run() -> None:
        await put(own_cluster, things.thing("a"))
        async with watching(own_cluster) as watcher:
            await asyncio.to_thread(own_cluster.kubectl, "delete", "crd", f"things.{things.GROUP}")
            await watcher.until(lambda: watcher.sizes == {})
            await asyncio.to_thread(things.install, own_cluster)
            await put(own_cluster, things.thing("b", 4))
            await watcher.until(lambda: watcher.sizes == {"b": 4})

    asyncio.run(run())


def test_an_idle_watch_asks_for_nothing(cluster: Cluster) -> None:
    things.install(cluster)

    async def run() -> None:
        async with watching(cluster, stall=STALL_SECONDS):  # as in a real process
            since = now()  # not by count: the line about the opening of a watch may be written late
            await asyncio.sleep(2)
            asked = await asyncio.to_thread(cluster.audit, things.USER)
            assert [request for request in asked if request.at >= since] == []

    asyncio.run(run())
