"""What becomes of an Event when the server cannot be reached, refuses it, or has it already."""

import asyncio
import logging
from typing import NamedTuple

import pytest

from foresail.kube.events import EVENT, Events
from foresail.plan import Key, Note
from tests.cluster.things import THING
from tests.worlds import virtual_time
from tests.worlds.virtual_time import WallClock
from tests.worlds.visitor import Visitor
from tests.worlds.world import Definition, World


class Told(NamedTuple):
    outcomes: dict[str, int]
    there: int  # Events that the server has
    seconds: float


def told(*, unsent: int = 0, too_many: int = 0, lost: int = 0, namespace: str = "default") -> Told:
    """Say one thing while so many writes go wrong, and return what became of it."""

    async def tell() -> Told:
        world = World(WallClock(), Definition(EVENT, status=False, generation=False))
        visitor = Visitor(world, unsent_writes=unsent, one_too_many=too_many, lost_answers=lost)
        events = Events(visitor, "foresail", "pod-1", world.clock)
        telling = asyncio.create_task(events.run())
        begun = asyncio.get_running_loop().time()
        events.emit(Note(THING, Key(namespace, "a"), "uid-1", "Made", "It was made."))
        await events.flushed()
        took = asyncio.get_running_loop().time() - begun
        telling.cancel()
        await asyncio.wait([telling])
        return Told(dict(events.outcomes), len(world.history.present(EVENT)), took)

    return virtual_time.run(tell())


@pytest.mark.parametrize("attempt", [1, 2, 3])
def test_an_event_that_does_not_arrive_is_sent_again_a_few_times(attempt: int) -> None:
    for what in (told(unsent=attempt), told(too_many=attempt)):
        assert (what.outcomes, what.there) == ({"written": 1}, 1)
        assert what.seconds == pytest.approx((1.0, 6.0, 21.0)[attempt - 1], abs=0.1)


def test_an_event_that_never_arrives_is_dropped_counted_and_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        what = told(unsent=4)
    assert (what.outcomes, what.there) == ({"dropped": 1}, 0)
    assert "dropped Event Made for Thing default/a: Unreachable" in caplog.text


def test_an_event_whose_answer_was_lost_is_not_sent_twice() -> None:
    what = told(lost=1)
    assert (what.outcomes, what.there) == ({"repeated": 1}, 1)


def test_an_event_that_is_refused_for_good_is_dropped_at_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        what = told(namespace="nowhere")
    assert (what.outcomes, what.there) == ({"dropped": 1}, 0)
    assert what.seconds < 1
    assert "dropped Event Made for Thing nowhere/a" in caplog.text


def there_after(*seconds: float, busy_for: float, notes: int = 1, ends: bool = False) -> list[int]:
    """Say things while there is work for so long, with room for a hundred; return how many are there and when."""

    async def tell() -> list[int]:
        world = World(WallClock(), Definition(EVENT, status=False, generation=False))
        time = asyncio.get_running_loop().time
        begun = time()

        def is_busy() -> bool:
            return time() - begun < busy_for

        events = Events(Visitor(world), "foresail", "pod-1", world.clock, is_busy=is_busy, queue_size=100)
        telling = asyncio.create_task(events.run())
        for number in range(notes):
            events.emit(Note(THING, Key("default", f"a{number}"), "uid-1", "Made", "It was made."))
        if ends:
            await events.flushed()
        there = []
        for instant in seconds:
            await asyncio.sleep(instant - (time() - begun))
            there.append(len(world.history.present(EVENT)))
        telling.cancel()
        await asyncio.wait([telling])
        return there

    return virtual_time.run(tell())


def test_an_event_waits_behind_work_but_not_for_ever() -> None:
    assert there_after(1, busy_for=0) == [1]
    assert there_after(4, 6, busy_for=5) == [0, 1]
    assert there_after(19, 21, busy_for=1000) == [0, 1]


def test_where_many_events_wait_they_are_written_beside_the_work_so_that_none_is_dropped() -> None:
    early, late = there_after(1, 21, busy_for=1000, notes=99)
    assert 40 <= early <= 60, "half of the room stays free"
    assert late == 99


def test_at_the_end_of_the_process_no_event_waits_for_work() -> None:
    assert there_after(1, busy_for=1000, ends=True) == [1]
