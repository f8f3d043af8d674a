"""A process that dies around any of its writes: the next one finishes its work, and nothing is done twice."""

import random
from collections.abc import Callable, Sequence

import pytest

from foresail.plan import Key
from tests.worlds import virtual_time
from tests.worlds.process import Moment
from tests.worlds.scene import Scene, eventually

PARENTS = [Key(namespace, name) for namespace in ("red", "blue") for name in ("a", "b", "c")]
WRITES = 2 * len(PARENTS)  # one child and one status each


def deaths(moments: Sequence[Moment], workers: int) -> int:
    """Live through a life with these deaths in it, check how it ends, and return how many of them came."""

    async def live() -> int:
        scene = Scene()
        for key in PARENTS:
            scene.make_parent(key)
        died = 0
        for moment in moments:
            process = scene.start(moment, workers)
            try:
                await eventually(lambda process=process: process.died, 5)  # type: ignore[misc]
                died += 1
            except TimeoutError:
                pass  # fewer writes were left than that
            await scene.stop()
        scene.start(workers=workers)
        await scene.settle()
        scene.check()
        await scene.check_silence()
        await scene.stop()
        assert set(scene.births_by_owner().values()) == {1}
        return died

    return virtual_time.run(live())


@pytest.mark.parametrize("workers", [1, 16])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_death_at_any_write_is_made_good(after: bool, workers: int, figure: Callable[[str], None]) -> None:
    came = [deaths([Moment(after=after, write=number)], workers) for number in range(1, WRITES + 2)]
    assert came == [1] * WRITES + [0], "every write was died at, and there is none beyond"
    figure(f"worlds: {WRITES} deaths {'after' if after else 'before'} a write with {workers} workers")


def test_two_deaths_in_a_row_at_any_two_writes_are_made_good(figure: Callable[[str], None]) -> None:
    # With one worker nothing else is under way at a death, so the next process has exactly the rest to write.
    pairs = [(first, second) for first in range(1, WRITES) for second in range(1, WRITES + 1 - first)]
    came = [deaths([Moment(after=True, write=first), Moment(after=False, write=second)], 1) for first, second in pairs]
    assert came == [2] * len(pairs)
    figure(f"worlds: {sum(came)} deaths in pairs")


def test_a_process_that_dies_at_its_first_write_every_time_still_comes_to_an_end() -> None:
    assert deaths([Moment(after=True, write=1)] * WRITES, 1) == WRITES


def test_a_process_that_finds_everything_done_writes_nothing() -> None:
    async def live(seed: int) -> None:
        scene = Scene()
        for key in PARENTS:
            scene.make_parent(key)
        scene.start()
        await scene.settle()
        process = await scene.restart()
        process.visitor.dice = random.Random(seed)  # noqa: S311 - which of its watches is first
        await scene.settle()
        assert process.visitor.writes == []
        await scene.stop()

    for seed in range(20):
        virtual_time.run(live(seed))
