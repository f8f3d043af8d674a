"""What the loop does not do at once, and not without asking again: refused writes, past instants, old rows."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from one_child_each import CHILD, PARENT, OneChildEach

from foresail.kube.controller import Informer, LowPriority, no_keys
from foresail.kube.failures import WRITE_REFUSED, Cause, Failure, failure
from foresail.kube.reflector import Change, WatchSpec
from foresail.plan import Key, Kind, Note, Plan
from tests.worlds import virtual_time
from tests.worlds.documents import Document
from tests.worlds.process import Process
from tests.worlds.scene import Scene, eventually
from tests.worlds.ticking import TICK, TICKER, Ticker, Ticking, ticker
from tests.worlds.virtual_time import BEGINNING, WallClock
from tests.worlds.visitor import RETRY_AFTER, Visitor
from tests.worlds.world import Answer, Definition, World, done

A, B = Key("red", "a"), Key("red", "b")


def test_a_throttled_write_is_retried_no_sooner_than_retry_after() -> None:
    async def live() -> float:
        scene = Scene()
        process = scene.start()
        process.visitor.one_too_many = 3
        scene.make_parent(A)
        await eventually(lambda: scene.world.history.present(PARENT)[A].get("status"))
        took = asyncio.get_running_loop().time()
        await scene.settle()
        scene.check()
        assert [write.verb for write in process.visitor.writes] == ["create"] * 4 + ["merge status"]
        await scene.stop()
        return took

    assert 3 * RETRY_AFTER <= virtual_time.run(live()) <= 3 * RETRY_AFTER * 1.25 + 1  # spread by up to a quarter


@pytest.mark.parametrize(
    ("refusal", "is_reported"),
    [
        (failure(422, "Invalid", "spec.ttl: Invalid value."), True),
        (failure(403, "Forbidden", "admission policy p denied it."), True),
        (failure(400, "BadRequest", "admission webhook w denied it."), True),
        (failure(403, "Forbidden", "namespace red is forbidden because it is being terminated"), False),
        (failure(500, "InternalError", "etcd is away"), False),
        (Failure(Cause.UNREACHABLE, "reset"), False),
    ],
    ids=str,
)
def test_a_write_that_is_refused_for_what_it_is_becomes_the_same_event_at_each_retry(
    refusal: Failure, *, is_reported: bool
) -> None:
    async def live() -> None:
        scene = Scene()
        notes: list[Note] = []
        process = Process(Visitor(scene.world), OneChildEach(), emit=notes.append)
        create = scene.world.create

        def refusing(kind: Kind, body: Document, by: str, namespace: str = "") -> Answer:
            return refusal if kind == CHILD else create(kind, body, by, namespace)

        scene.world.create = refusing  # type: ignore[method-assign]
        scene.make_parent(A)
        await scene.settle(30)
        assert len(process.visitor.writes) > 3
        found = {(note.kind, note.key, note.uid, note.reason, note.message) for note in notes}
        text = (
            f"The API server refused to create ConfigMap red/a: {refusal.message} "
            "The operator retries; correct what the message names."
        )
        uid = scene.world.history.present(PARENT)[A]["metadata"]["uid"]
        assert found == ({(PARENT, A, uid, WRITE_REFUSED, text)} if is_reported else set())
        counted = {(CHILD.name, refusal.cause.value): len(notes)} if is_reported else {}
        assert process.executor.refused == counted
        scene.world.create = create  # type: ignore[method-assign]
        await scene.settle()
        scene.check()
        await process.kill()

    virtual_time.run(live())


def test_a_throttled_write_is_not_retried_once_leadership_is_lost() -> None:
    async def live() -> None:
        scene = Scene()
        leads = True
        visitor = Visitor(scene.world, one_too_many=1)
        process = Process(visitor, OneChildEach(), may_write=lambda: leads)
        scene.make_parent(A)
        await eventually(lambda: visitor.writes)
        leads = False
        await scene.settle()
        assert len(visitor.writes) == 1
        leads = True
        await scene.settle()
        scene.check()
        await process.kill()

    virtual_time.run(live())


def fails_on(key: Key) -> Callable[[Change[Any]], Iterable[Key]]:
    def process(change: Change[Any]) -> Iterator[Key]:
        if change.key == key:
            raise RecursionError("too deep")
        yield change.key

    return process


@pytest.mark.parametrize("step", ["learn", "keys"])
def test_a_change_that_cannot_be_processed_stops_no_other_object(step: str, caplog: pytest.LogCaptureFixture) -> None:
    async def live() -> set[Key]:
        scene = Scene()
        scene.make_parent(A)
        controller = OneChildEach()
        parents, children = controller.informers
        failing: Any = {step: fails_on(A)}
        controller.informers = (replace(parents, **failing), replace(children, keys=no_keys))
        process = Process(Visitor(scene.world), controller)
        await scene.settle()
        scene.make_parent(B)
        scene.edit_parent(A, 1)
        await scene.settle()
        found = {key for key, parent in scene.world.history.present(PARENT).items() if parent.get("status")}
        assert process.loop.failed_changes[PARENT.name] >= 2
        process.loop.failed_changes.clear()
        await process.kill()
        return found

    assert virtual_time.run(live()) == ({A, B} if step == "learn" else {B}), "after `learn` failed, `keys` still counts"
    found = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert found == ["one-child-each: cannot process a change of Parent red/a; other objects are not affected"], "once"


class Yesterday(Ticking):
    """Asks for the next look at an instant that has long passed, until its spec says otherwise."""

    def decide(self, seen: tuple[Key, Ticker], now: datetime) -> Plan:
        self.looks.append(now)
        return Plan(wake_at=seen[1].spec.first)


def test_a_wake_up_in_the_past_is_delayed_by_a_second_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def live() -> list[datetime]:
        clock = WallClock()
        world = World(clock, Definition(TICKER))
        late = ticker(BEGINNING - timedelta(days=1), timedelta(days=1))
        done(world.create(TICKER, {"metadata": {"name": "a"}} | late, "tenant", "default"))
        controller = Yesterday()
        process = Process(Visitor(world), controller, workers=2)
        await asyncio.sleep(60.5)
        spinning = list(controller.looks)
        key = Key("default", "a")
        in_time = ticker(BEGINNING + timedelta(days=1), timedelta(days=1))
        done(world.merge(TICKER, key, in_time, "tenant"))
        await asyncio.sleep(60)
        assert len(controller.looks) - len(spinning) <= 2, "in order again, it waits for its instant"
        await process.kill()
        return spinning

    with caplog.at_level(logging.WARNING):
        looks = virtual_time.run(live())
    assert 58 <= len(looks) <= 62
    (said,) = [record.getMessage() for record in caplog.records]
    assert "the Plan for default/a has its wake-up in the past (2025-12-31" in said


def test_a_ticker_that_can_no_longer_be_read_comes_to_no_instant_until_it_can_be() -> None:
    async def live() -> tuple[int, int, int]:
        clock = WallClock()
        world = World(clock, Definition(TICKER), Definition(TICK))
        body = {"metadata": {"name": "a"}} | ticker(BEGINNING + timedelta(minutes=1), timedelta(minutes=1))
        done(world.create(TICKER, body, "tenant", "default"))
        key = Key("default", "a")
        process = Process(Visitor(world), Ticking(), workers=2)
        await asyncio.sleep(150)
        before = len(world.history.present(TICK))
        done(world.merge(TICKER, key, {"spec": {"every": "often"}}, "tenant"))
        await asyncio.sleep(600)
        during = len(world.history.present(TICK))
        done(world.merge(TICKER, key, {"spec": {"every": 60}}, "tenant"))
        await asyncio.sleep(10)
        after = len(world.history.present(TICK))
        await process.kill()
        return before, during, after

    assert virtual_time.run(live()) == (2, 2, 12)


def test_reconciles_that_write_nothing_leave_time_to_renew_the_lease() -> None:
    async def live() -> int:
        world = World(WallClock(), Definition(TICKER))
        for number in range(500):
            idle = {"metadata": {"name": f"a{number}"}} | ticker(BEGINNING + timedelta(days=1), timedelta(days=1))
            done(world.create(TICKER, idle, "tenant", "default"))
        controller = Ticking()
        process = Process(Visitor(world), controller, workers=2)
        most = before = 0
        while len(controller.looks) < 500:
            await asyncio.sleep(0)
            most, before = max(most, len(controller.looks) - before), len(controller.looks)
        await process.kill()
        return most

    assert virtual_time.run(live()) <= 2, "as many as there are workers, in one turn of the event loop"


class Crowded(Ticking):
    """Looks at everybody when the first one changes, which may wait."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    @property
    def informers(self) -> Sequence[Informer]:
        def keys(change: Change[Ticker]) -> Iterator[Key | LowPriority]:
            yield change.key
            if change.key.name == "first" and not change.initial:
                yield from map(LowPriority, self.tickers)

        return (Informer(WatchSpec(TICKER, Ticker, lambda row: row), self.tickers, keys),)

    def observe(self, key: Key, _now: datetime) -> tuple[Key, Ticker] | None:
        self.seen.append(key.name)
        return super().observe(key, _now)


def test_low_priority_keys_are_reconciled_after_later_events() -> None:
    async def live() -> list[str]:
        world = World(WallClock(), Definition(TICKER))
        for name in ("first", "last", *(f"a{number}" for number in range(100))):
            idle = {"metadata": {"name": name}} | ticker(BEGINNING + timedelta(days=1), timedelta(days=1))
            done(world.create(TICKER, idle, "tenant", "default"))
        controller = Crowded()
        process = Process(Visitor(world), controller, workers=1)
        await asyncio.sleep(5)
        controller.seen.clear()
        for name in ("first", "last"):
            later = ticker(BEGINNING + timedelta(days=2), timedelta(days=1))
            done(world.merge(TICKER, Key("default", name), later, "tenant"))
        await asyncio.sleep(5)
        await process.kill()
        return controller.seen

    seen = virtual_time.run(live())
    assert seen.index("last") <= 3, "not behind the hundred that were woken before it"
    assert set(seen) == {"first", "last", *(f"a{number}" for number in range(100))}
