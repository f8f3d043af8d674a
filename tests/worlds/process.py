"""A controller as a process of its own in a world: it can die at any write, and leaves nothing but what it wrote."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from foresail.kube.controller import Controller, Election
from foresail.kube.execute import Executor
from foresail.kube.loop import Loop, LoopTiming
from foresail.kube.tracing import Tracer
from foresail.plan import Note
from tests.worlds.visitor import Visitor

WORKERS = 16

CALM = LoopTiming(clock_check=6 * 3600.0, stall=2 * 86_400.0)
"""For stories of days in which nobody sets the clock and no watch falls silent."""


def _nothing(_: Controller[Any]) -> None:
    pass


prepare: Callable[[Controller[Any]], None] = _nothing
"""Called with each controller before it runs; a test may put something else in its place."""

tracer: Tracer | None = None
"""Traces every process; a test may put one in its place."""


class Died(BaseException):
    """The process ends here: no error, so nothing may catch it."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Before or after which write a process dies."""

    after: bool
    write: int

    def __str__(self) -> str:
        return f"{'after' if self.after else 'before'} write {self.write}"


class Turnover:
    """Follows until it is told to lead, and leads until it is told to follow."""

    def __init__(self, *, is_leader: bool = False) -> None:
        self._gained, self._lost = asyncio.Event(), asyncio.Event()
        if is_leader:
            self.lead()
        else:
            self.follow()

    @property
    def is_leader(self) -> bool:
        """Whether it leads."""
        return self._gained.is_set()

    def lead(self) -> None:
        """Lead from now on."""
        self._gained.set()
        self._lost.clear()

    def follow(self) -> None:
        """Follow from now on."""
        self._lost.set()
        self._gained.clear()

    async def until_leader(self) -> None:
        """Return when it leads."""
        await self._gained.wait()

    async def until_follower(self) -> None:
        """Return when it follows."""
        await self._lost.wait()


def _seeded(timing: LoopTiming) -> LoopTiming:
    """Return the timing with a back-off jitter that is the same in each life."""
    return replace(timing, jitter=random.Random(0).random)  # noqa: S311 - to spread, not to hide


class Process:
    """Runs one controller; its stores, its queue and its open requests go with it."""

    def __init__(  # noqa: PLR0913 - what a process is put together from
        self,
        visitor: Visitor,
        controller: Controller[Any],
        *,
        dies: Moment | None = None,
        workers: int = WORKERS,
        timing: LoopTiming | None = None,
        may_write: Callable[[], bool] = lambda: True,
        election: Election | None = None,
        emit: Callable[[Note], None] = lambda _: None,
    ) -> None:
        prepare(controller)
        self.visitor = visitor
        self.on_death: Callable[[], None] = lambda: None
        self._dies = dies
        self._begun = self._ended = 0
        self.executor = Executor(visitor, may_write=may_write, before_write=self._before, after_write=self._after)
        clock = visitor.world.clock
        self.loop = Loop(
            visitor,
            controller,
            self.executor,
            clock,
            election=election,
            emit=emit,
            workers=workers,
            timing=_seeded(timing or LoopTiming()),
            tracer=tracer,
        )
        self._task = asyncio.create_task(self.loop.run())

    @property
    def died(self) -> bool:
        """Whether it has come to its moment."""
        return self.visitor.dead

    async def kill(self) -> None:
        """End it where it stands; if it had ended by itself for any reason but its moment, say so."""
        ended_before = self._task.done()
        self.visitor.dead = True
        self._task.cancel()
        for stream in self.visitor.streams:
            stream.forget()
        (result,) = await asyncio.gather(self._task, return_exceptions=True)
        if ended_before and not (isinstance(result, BaseExceptionGroup) and result.subgroup(Died)):
            raise AssertionError(f"the process ended by itself: {result!r}")
        if self.loop.failed_changes:
            raise AssertionError(f"changes could not be processed: {self.loop.failed_changes}; the log has the error")

    def _before(self) -> None:
        self._begun += 1
        self._come_to(Moment(after=False, write=self._begun))

    def _after(self) -> None:
        self._ended += 1
        self._come_to(Moment(after=True, write=self._ended))

    def _come_to(self, moment: Moment) -> None:
        if moment == self._dies:
            self.visitor.dead = True
            self.on_death()
            raise Died(str(moment))
