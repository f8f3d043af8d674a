"""Late, lost, repeated and broken: whatever happens between the server and the watch, the end is the right one."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import pytest
from one_child_each import CHILD

from foresail.plan import Key
from tests.worlds import virtual_time
from tests.worlds.scene import Scene

A, B, C, D = Key("red", "a"), Key("red", "b"), Key("blue", "c"), Key("blue", "d")


async def eventful_day(scene: Scene) -> None:
    """Let parents come, change, go and come again under the same name, children vanish, and names be taken."""
    for key in (A, B):
        scene.make_parent(key)
    await scene.settle(1)
    scene.take_name(C)
    scene.make_parent(C)
    scene.edit_parent(A, 1)
    scene.delete_parent(B)
    await scene.settle(0.005)
    scene.make_parent(B)
    await scene.settle(2)
    scene.edit_parent(B, 2)
    if A in scene.world.history.present(CHILD):
        scene.delete_child(A)
    scene.make_parent(D)
    await scene.settle(0.003)
    scene.delete_parent(D)
    await scene.settle(3)


async def end_well(scene: Scene) -> None:
    await scene.settle()
    scene.check()
    await scene.check_silence()
    await scene.stop()


def play(story: Callable[[Scene], Awaitable[None]]) -> None:
    async def whole() -> None:
        scene = Scene()
        await story(scene)
        await end_well(scene)

    virtual_time.run(whole())


def test_a_day_without_faults_passes() -> None:
    async def story(scene: Scene) -> None:
        scene.start()
        await eventful_day(scene)

    play(story)


@pytest.mark.parametrize("behind", range(1, 9))
def test_a_store_that_is_some_events_behind_does_no_harm_and_catches_up(behind: int) -> None:
    async def story(scene: Scene) -> None:
        scene.start()
        await scene.settle(1)
        scene.weather.held_back = behind
        await eventful_day(scene)
        await scene.settle(100)
        scene.weather.held_back = 0
        scene.visitor.look()

    play(story)


@pytest.mark.parametrize("behind", range(1, 9))
def test_a_store_that_is_behind_never_makes_a_second_child_for_a_parent(behind: int) -> None:
    async def story(scene: Scene) -> None:
        scene.start()
        scene.make_parent(A)
        await scene.settle(1)
        scene.weather.held_back = behind
        for colour in range(4):
            scene.edit_parent(A, colour)
            scene.make_parent(Key("red", f"more-{colour}"))
            await scene.settle(1)
        await scene.restart()
        await scene.settle(10)
        scene.weather.held_back = 0
        scene.visitor.look()
        await scene.settle()
        assert set(scene.births_by_owner().values()) == {1}

    play(story)


@pytest.mark.parametrize("lag", [0.001, 0.01, 0.5, 5.0, 70.0])
def test_events_that_come_late_change_nothing_but_the_time(lag: float) -> None:
    async def story(scene: Scene) -> None:
        scene.weather.lag = lag
        scene.start()
        await eventful_day(scene)

    play(story)


@pytest.mark.parametrize("times", range(1, 6))
def test_events_that_come_again_change_nothing(times: int) -> None:
    async def story(scene: Scene) -> None:
        scene.weather.repeating = times
        scene.start()
        await eventful_day(scene)

    play(story)


@pytest.mark.parametrize("lost", range(1, 12))
def test_events_that_are_lost_do_no_harm_and_are_made_good_by_reading_anew(lost: int) -> None:
    async def story(scene: Scene) -> None:
        scene.start()
        await scene.settle(1)
        scene.weather.losing = lost
        await eventful_day(scene)
        scene.weather.losing = 0
        # No server loses an event and says nothing, so nothing short of a new beginning brings it back.
        _each("cut")(scene)
        scene.make_parent(Key("red", "while-nobody-watched"))
        scene.world.history.compact()

    play(story)


@dataclass(frozen=True, slots=True)
class Break:
    """A way in which a stream ends."""

    name: str
    do: Callable[[Scene], None]


def _each(name: str) -> Callable[[Scene], None]:
    def do(scene: Scene) -> None:
        for stream in list(scene.visitor.streams):
            getattr(stream, name)()

    return do


def _forget_and_cut(scene: Scene) -> None:
    scene.world.history.compact()
    _each("cut")(scene)


def _refuse_and_cut(scene: Scene) -> None:
    scene.visitor.expired_watches = 3
    _each("cut")(scene)


def _cut_and_do_not_answer(scene: Scene) -> None:
    """Break the open streams; whoever asks for the next ones has a connection, and no answer on it."""
    scene.visitor.unanswered_watches = len(scene.visitor.streams)
    _each("cut")(scene)


def _stall(scene: Scene) -> None:
    """Let the open streams fall silent for good; those that are opened after them are well."""
    for stream in scene.visitor.streams:
        stream.weather = replace(stream.weather, silent=True)


BREAKS = [
    Break("cut", _each("cut")),
    Break("torn in the middle of a line", _each("tear")),
    Break("ended by the server", _each("end")),
    Break("compacted: 410 as an event", _forget_and_cut),
    Break("refused: 410 as a status", _refuse_and_cut),
    Break("cut, and the next one not answered", _cut_and_do_not_answer),
    Break("stalled", _stall),
]


@pytest.mark.parametrize("broken", BREAKS, ids=lambda broken: broken.name)
@pytest.mark.parametrize("lag", [0.0, 0.02])
def test_a_broken_stream_is_opened_again_and_nothing_is_missed(broken: Break, lag: float) -> None:
    async def story(scene: Scene) -> None:
        scene.weather.lag = lag
        scene.start()
        scene.make_parent(Key("red", "before"))
        await scene.settle(1)
        broken.do(scene)
        await eventful_day(scene)
        broken.do(scene)
        scene.make_parent(Key("red", "after"))

    play(story)


@pytest.mark.parametrize("broken", BREAKS, ids=lambda broken: broken.name)
def test_the_very_next_event_after_a_break_is_not_missed(broken: Break) -> None:
    async def story(scene: Scene) -> None:
        scene.start()
        for key in (A, B, C, D):
            scene.make_parent(key)
            await scene.settle(1)
            broken.do(scene)

    play(story)


def test_answers_that_are_lost_leave_writes_that_are_found_again() -> None:
    async def story(scene: Scene) -> None:
        process = scene.start()
        process.visitor.lost_answers = 6
        for key in (A, B, C, D):
            scene.make_parent(key)
        await scene.settle()
        assert process.visitor.lost_answers == 0
        assert set(scene.births_by_owner().values()) == {1}

    play(story)


def test_a_server_that_ends_each_watch_at_once_is_not_asked_without_a_pause() -> None:
    async def story(scene: Scene) -> None:
        process = scene.start()
        await scene.settle(1)
        process.visitor.short_watches = True
        _each("end")(scene)
        before = process.visitor.opened
        await scene.settle(60)
        assert process.visitor.opened - before < 60
        process.visitor.short_watches = False

    play(story)


def test_a_stream_that_broke_often_but_long_ago_is_opened_again_as_fast_as_ever() -> None:
    async def story(scene: Scene) -> None:
        scene.start()
        for _ in range(10):
            await scene.settle(600)
            _each("cut")(scene)
        scene.make_parent(A)
        await scene.settle(1)
        scene.check()

    play(story)


def test_what_was_deleted_while_nobody_watched_is_noticed() -> None:
    async def story(scene: Scene) -> None:
        scene.start()
        for key in (A, B):
            scene.make_parent(key)
        await scene.settle(1)
        _each("cut")(scene)
        scene.delete_parent(A)
        scene.delete_child(B)
        scene.make_parent(C)
        scene.world.history.compact()

    play(story)


@pytest.mark.parametrize("milliseconds", range(1, 16))
def test_a_change_during_the_reconcile_of_its_parent_is_reconciled_afterwards(milliseconds: int) -> None:
    async def story(scene: Scene) -> None:
        scene.start()
        await scene.settle(1)
        scene.make_parent(A)
        while A not in scene.world.history.present(CHILD):
            await scene.settle(0.0001)
        await scene.settle(milliseconds / 1000)
        scene.delete_child(A)

    play(story)


@pytest.mark.parametrize("lag", [0.02, 0.3, 0.9])
def test_nothing_is_written_again_because_the_watch_is_late(lag: float) -> None:
    async def story(scene: Scene) -> None:
        scene.start()
        await scene.settle(1)
        scene.weather.lag = lag
        for number in range(20):
            scene.make_parent(Key("red", f"p-{number}"))
        await scene.settle()
        assert [write for write in scene.visitor.writes if write.refused] == []
        assert len(scene.visitor.writes) == 2 * 20

    play(story)
