"""Failures that end nothing: each is in the log and in a metric, until it is over."""

import asyncio
import logging
from typing import Any

import pytest
from one_child_each import OneChildEach

from foresail.kube.execute import Executor, Outcome
from foresail.kube.failures import Cause, failure
from foresail.plan import Create, Key, Plan
from tests.cluster.things import THING
from tests.worlds import virtual_time
from tests.worlds.process import Process, Turnover
from tests.worlds.scene import Scene
from tests.worlds.virtual_time import WallClock
from tests.worlds.visitor import Visitor
from tests.worlds.world import Definition, World, done

A = Key("red", "a")
MARK = {"foresail.dev/owner": "us"}


def test_a_write_that_is_never_found_is_reported_and_counted_until_it_is(caplog: pytest.LogCaptureFixture) -> None:
    async def live() -> list[int]:
        scene = Scene()
        scene.make_parent(A)
        merge = scene.world.merge
        scene.world.merge = lambda *_: failure(404, "NotFound", "the server could not find the requested resource")  # type: ignore[method-assign]
        process = scene.start()
        await asyncio.sleep(1)
        found = [process.loop.queue.failing]
        await asyncio.sleep(60)
        found.append(process.loop.queue.failing)
        scene.world.merge = merge  # type: ignore[method-assign]
        await scene.settle()
        found.append(process.loop.queue.failing)
        await process.kill()
        return found

    with caplog.at_level(logging.WARNING):
        assert virtual_time.run(live()) == [0, 1, 0]
    messages = [record.getMessage() for record in caplog.records]
    assert any("red/a failed, retrying in" in each and "could not find" in each for each in messages), messages


def test_an_object_of_that_name_that_may_not_be_read_is_reported_with_the_cause() -> None:
    async def run() -> tuple[Outcome, Cause, int]:
        world = World(WallClock(), Definition(THING))
        done(world.create(THING, {"metadata": {"name": "a"}}, "somebody", "default"))
        world.get = lambda *_: failure(403, "Forbidden", "the operator may not get things")  # type: ignore[method-assign]
        executor = Executor(Visitor(world))
        result = await executor.execute(Plan((Create(THING, Key("default", "a"), {}, MARK),)))
        assert result.failure is not None
        return result.outcome, result.failure.cause, executor.refused.total()

    assert virtual_time.run(run()) == (Outcome.FAILED, Cause.FORBIDDEN, 1)


class _Forgetful(OneChildEach):
    """Fails when a parent is deleted, as a bug would."""

    def settled(self, key: Key, *_: Any) -> Any:  # noqa: ANN401 - as the loop calls it
        raise KeyError(key.name)


def test_a_deletion_that_a_follower_cannot_process_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def live() -> int:
        scene = Scene()
        scene.make_parent(A)
        process = Process(Visitor(scene.world), _Forgetful(), election=Turnover())
        await asyncio.sleep(1)
        scene.delete_parent(A)
        await asyncio.sleep(1)
        failed = process.loop.failed_changes.total()
        process.loop.failed_changes.clear()
        await process.kill()
        return failed

    assert virtual_time.run(live()) == 1
    assert "cannot process a change of Parent red/a" in caplog.text
