"""Any story at all: people, deaths, weather and clocks in any order; when it is quiet, all is right."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from one_child_each import CHILD, PARENT

from foresail.plan import Key
from tests.worlds.process import Moment
from tests.worlds.scene import Scene
from tests.worlds.virtual_time import VirtualLoop

KEYS = st.sampled_from([Key(namespace, name) for namespace in ("red", "blue") for name in ("a", "b")])
MOMENTS = st.builds(Moment, after=st.booleans(), write=st.integers(1, 4))
PAUSES = st.sampled_from([0.0, 0.0005, 0.001, 0.002, 0.004, 0.01, 0.3, 1.0, 7.0])


class Story(RuleBasedStateMachine):
    """A world in which anything may happen next; between any two happenings a moment passes, or none."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualLoop)
        self.lossy = False

    def live(self, work: Coroutine[Any, Any, None]) -> None:
        self.runner.run(work)

    def do(self, act: Callable[[], object], pause: float) -> None:
        async def both() -> None:
            act()
            await asyncio.sleep(pause)

        self.live(both())

    def there(self, key: Key) -> bool:
        return key in self.scene.world.history.present(PARENT)

    @initialize()
    def begin(self) -> None:
        async def make() -> None:
            self.scene = Scene()
            self.scene.start()

        self.live(make())

    # People

    @rule(key=KEYS, colour=st.integers(0, 3), pause=PAUSES)
    def make_or_edit(self, key: Key, colour: int, pause: float) -> None:
        def act() -> None:
            if self.there(key):
                self.scene.edit_parent(key, colour)
            else:
                self.scene.make_parent(key)

        self.do(act, pause)

    @rule(key=KEYS, again=st.booleans(), pause=PAUSES)
    def delete(self, key: Key, again: bool, pause: float) -> None:
        def act() -> None:
            if self.there(key):
                self.scene.delete_parent(key)
                if again:
                    self.scene.make_parent(key)

        self.do(act, pause)

    @rule(key=KEYS, pause=PAUSES)
    def take_or_free_a_name(self, key: Key, pause: float) -> None:
        act = self.scene.free_name if key in self.scene.foreign else self.scene.take_name
        self.do(lambda: act(key), pause)

    @rule(key=KEYS, stolen=st.booleans(), pause=PAUSES)
    def delete_a_child(self, key: Key, stolen: bool, pause: float) -> None:
        def act() -> None:
            if key in self.scene.world.history.present(CHILD) and key not in self.scene.foreign:
                self.scene.delete_child(key)
                if stolen:
                    self.scene.take_name(key)

        self.do(act, pause)

    # Deaths

    @rule(moment=st.none() | MOMENTS, away=PAUSES, pause=PAUSES)
    def die_and_come_back(self, moment: Moment | None, away: float, pause: float) -> None:
        async def act() -> None:
            await self.scene.stop()
            await asyncio.sleep(away)
            self.scene.start(moment)
            await asyncio.sleep(pause)

        self.live(act())

    # Weather

    @rule(lag=st.sampled_from([0.0, 0.003, 0.5, 20.0]), held_back=st.integers(0, 4), repeating=st.integers(0, 5))
    def weather(self, lag: float, held_back: int, repeating: int) -> None:
        weather = self.scene.weather
        weather.lag, weather.held_back, weather.repeating = lag, held_back, repeating
        self.do(self.scene.visitor.look, 0.0)

    @rule(count=st.integers(1, 4))
    def lose_events(self, count: int) -> None:
        self.scene.weather.losing = count
        self.lossy = True

    @rule(count=st.integers(1, 3))
    def lose_answers(self, count: int) -> None:
        self.scene.visitor.lost_answers = count

    @rule(pause=PAUSES)
    def forget_the_past(self, pause: float) -> None:
        self.do(self.scene.world.history.compact, pause)

    @rule(how=st.sampled_from(["cut", "tear", "end"]), expired=st.booleans(), pause=PAUSES)
    def break_streams(self, how: str, expired: bool, pause: float) -> None:
        def act() -> None:
            if expired:
                self.scene.visitor.expired_watches = 1
            for stream in list(self.scene.visitor.streams):
                getattr(stream, how)()

        self.do(act, pause)

    # Clocks

    @rule(hours=st.sampled_from([-1, 1]), pause=PAUSES)
    def step_the_clock(self, hours: int, pause: float) -> None:
        self.do(lambda: self.scene.step_clock(timedelta(hours=hours)), pause)

    # What must be so

    @invariant()
    def what_is_someone_elses_is_untouched(self) -> None:
        if hasattr(self, "scene"):
            found = self.scene.world.history.present(CHILD)
            assert {key: found.get(key) for key in self.scene.foreign} == self.scene.foreign

    @precondition(lambda self: hasattr(self, "scene"))
    @rule()
    def when_it_is_quiet_all_is_right(self) -> None:
        self.live(self._calm())

    def teardown(self) -> None:
        try:
            if hasattr(self, "scene"):
                self.live(self._calm())
                self.live(self.scene.stop())
        finally:
            self.runner.close()

    async def _calm(self) -> None:
        weather = self.scene.weather
        weather.lag, weather.held_back, weather.repeating, weather.losing = 0.0, 0, 0, 0
        self.scene.visitor.look()
        if self.scene.process is None or self.scene.process.died or self.lossy:
            # What was lost without a word comes back only by reading anew, and what died only by a new beginning.
            await self.scene.restart()
            self.lossy = False
        await self.scene.settle()
        if self.scene.visitor.dead:  # its moment came late
            await self.scene.restart()
            await self.scene.settle()
        self.scene.check()
        await self.scene.check_silence()


TestStory = Story.TestCase
TestStory.settings = settings(max_examples=100, stateful_step_count=25, deadline=None, derandomize=True)
