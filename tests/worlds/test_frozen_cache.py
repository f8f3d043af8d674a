"""An API server whose watch cache stands still confirms every watch, and sends nothing: the stores get old."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from one_child_each import CHILD, PARENT, OneChildEach

from foresail.kube.health import readiness_problems
from foresail.kube.loop import LoopTiming
from foresail.kube.store import STALE_SECONDS, Store
from foresail.plan import Key, Kind
from tests.worlds import virtual_time
from tests.worlds.garbage import NAMESPACE
from tests.worlds.process import Process
from tests.worlds.scene import Scene
from tests.worlds.streams import Frozen
from tests.worlds.visitor import Visitor
from tests.worlds.world import done

A = Key("red", "a")
STANDSTILL = 1_800


class Frost(Scene):
    """A world in which the operator's watches end at a server that may stand still, and something always happens."""

    def start(self, *_: object) -> Process:
        visitor = Visitor(self.world, weather=self.weather)
        self.process = Process(visitor, OneChildEach(), timing=LoopTiming(clock=asyncio.get_running_loop().time))
        return self.process

    def freeze(self, kind: Kind | None = None) -> None:
        self.weather.frozen = Frozen(self.world.history.revision, kind)

    def release(self) -> None:
        self.weather.frozen = None
        self.visitor.look()

    async def pass_time(self, seconds: float) -> None:
        """Let time pass while another kind is written, as a Lease is."""
        for moment in range(int(seconds / 10)):
            done(self.world.merge(NAMESPACE, Key("", "blue"), {"metadata": {"labels": {"at": str(moment)}}}, "admin"))
            await asyncio.sleep(10)

    def age(self, kind: Kind) -> float:
        assert self.process is not None
        (found,) = (one.age() for one in self.process.loop.watches if one.reflector.spec.kind == kind)
        return found

    @property
    def stores(self) -> list[Store[Any]]:
        assert self.process is not None
        return [watch.reflector.store for watch in self.process.loop.watches]

    def problems(self) -> list[str]:
        assert self.process is not None
        return readiness_problems([self.process.loop])


def play(story: Callable[[Frost], Awaitable[None]]) -> None:
    async def whole() -> None:
        scene = Frost()
        scene.start()
        await scene.pass_time(100)
        await story(scene)
        await scene.pass_time(200)
        scene.check()
        assert scene.problems() == []
        assert not any(store.is_stale for store in scene.stores)
        assert max(scene.age(PARENT), scene.age(CHILD)) <= 60
        await scene.stop()

    virtual_time.run(whole())


def test_a_write_that_its_watch_does_not_show_makes_the_store_as_old() -> None:
    async def story(scene: Frost) -> None:
        scene.freeze(CHILD)
        scene.make_parent(A)
        await scene.pass_time(STALE_SECONDS + 100)
        assert scene.age(CHILD) > STALE_SECONDS
        assert scene.age(PARENT) <= 60
        (problem,) = scene.problems()
        assert problem.startswith("one-child-each: ConfigMap is stale, last confirmed ")
        assert problem.endswith(" s ago: the API server answers and sends nothing new")
        scene.release()

    play(story)


def test_a_store_whose_version_stands_still_gets_old_although_its_server_confirms_it() -> None:
    async def story(scene: Frost) -> None:
        scene.freeze()
        scene.make_parent(A)  # which the operator does not hear of, so that it writes nothing
        await scene.pass_time(STANDSTILL + 100)
        assert min(scene.age(PARENT), scene.age(CHILD)) > STANDSTILL
        assert len(scene.problems()) == 2
        assert all(store.is_stale for store in scene.stores)
        scene.release()

    play(story)


@pytest.mark.parametrize("interval", [60, 1_320])  # seconds; the longer one is two of etcd's default, with its jitter
def test_a_quiet_kind_of_a_server_that_works_does_not_get_old(interval: int) -> None:
    async def story(scene: Frost) -> None:
        for moment in range(0, 4 * STANDSTILL, 60):
            if moment % interval == 0:
                scene.freeze()  # until etcd sends the next progress notification
            await scene.pass_time(60)
            assert max(scene.age(PARENT), scene.age(CHILD)) <= 91
        scene.release()

    play(story)


def test_a_watch_fails_over_from_a_server_that_stands_still_to_one_that_does_not() -> None:
    async def story(scene: Frost) -> None:
        scene.freeze()
        scene.make_parent(A)
        await scene.pass_time(30)
        frozen, scene.weather.frozen = scene.weather.frozen, None
        opened = scene.visitor.opened
        for stream in scene.visitor.streams:
            stream.weather = type(stream.weather)(frozen=frozen)  # these stay at the old server
        await scene.pass_time(100)
        assert scene.visitor.opened > opened
        scene.check()

    play(story)
