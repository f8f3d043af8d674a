"""The one way that data flows: watch → store → queue → observe → decide → Plan → execute → the next instant."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from foresail.kube.execute import Executor, Outcome, Result
from foresail.kube.queue import LOOK_AT_THE_CLOCK, Queue
from foresail.kube.reflector import Change, Interest, Reflector, Unreadable
from foresail.kube.server import Server
from foresail.kube.store import Store
from foresail.kube.watch import STALL_SECONDS, Watch
from foresail.plan import Key, Plan

_log = logging.getLogger(__name__)
Seen = TypeVar("Seen")
_WORKERS = 16


@dataclass(frozen=True, slots=True)
class Watched:
    """An interest, the store that it fills, and which keys of the controller a change of it concerns."""

    interest: Interest[Any, Any]
    store: Store[Any]
    keys: Callable[[Change[Any]], Iterable[Key]]


@dataclass(frozen=True, slots=True)
class Patience:
    """How many seconds the loop lets pass before it doubts: the instant it waits for, and a watch that is silent."""

    look_at_the_clock: float = LOOK_AT_THE_CLOCK
    stall: float = STALL_SECONDS


_PATIENCE = Patience()


class Controller(Protocol, Generic[Seen]):
    """What a capability brings along; everything else is the loop's."""

    @property
    def name(self) -> str:
        """The controller's name, for logs and metrics."""

    @property
    def watched(self) -> Sequence[Watched]:
        """What it must know."""

    def observe(self, key: Key) -> Seen | None:
        """Collect from the stores what a decision about the key needs; None if there is nothing to decide."""

    def decide(self, seen: Seen, now: datetime) -> Plan:
        """Say what is to be done; a pure function."""


class Loop(Generic[Seen]):
    """Runs one controller until cancelled; it ends by itself only if one of its watches does."""

    def __init__(
        self,
        client: Server,
        controller: Controller[Seen],
        executor: Executor,
        now: Callable[[], datetime],
        *,
        workers: int = _WORKERS,
        patience: Patience = _PATIENCE,
    ) -> None:
        self.controller = controller
        self.queue = Queue(now, look_at_the_clock=patience.look_at_the_clock)
        self.watches = [Watch(client, self._reflector(one), stall=patience.stall) for one in controller.watched]
        self.unreadable: dict[tuple[str, Key], str] = {}
        self._executor = executor
        self._now = now
        self._workers = workers

    async def run(self) -> None:
        """Watch, and work on what the watches bring once all of them are complete."""
        async with asyncio.TaskGroup() as group:
            for watch in self.watches:
                group.create_task(watch.run())
            await self.synced()
            for _ in range(self._workers):
                group.create_task(self._work())

    async def synced(self) -> None:
        """Return when every store has been whole once: before that, an absence means nothing."""
        for watch in self.watches:
            await watch.synced.wait()

    def _reflector(self, one: Watched) -> Reflector[Any, Any]:
        def changed(change: Change[Any]) -> None:
            for key in one.keys(change):
                self.queue.add(key, initial=change.initial)

        def unreadable(found: Unreadable) -> None:
            kind = one.interest.kind.name
            self.unreadable[kind, found.key] = found.problem
            _log.warning("%s %s cannot be read and is left alone: %s", kind, found.key, found.problem)

        return Reflector(one.interest, one.store, changed, unreadable)

    async def _work(self) -> None:
        while True:
            key = await self.queue.get()
            try:
                await self._look(key)
            except Exception:  # noqa: BLE001 - whatever a decision does wrong
                # A decision that fails on one object must not end the work on all others.
                _log.exception("%s: a look at %s failed", self.controller.name, key)
                self.queue.retry(key)
            finally:
                self.queue.done(key)

    async def _look(self, key: Key) -> None:
        seen = self.controller.observe(key)
        if seen is None:
            self.queue.add_at(key, None)
            self.queue.succeeded(key)
            return
        plan = self.controller.decide(seen, self._now())
        result = await self._executor.execute(plan)
        if result.outcome is Outcome.DONE:
            self.queue.succeeded(key)
            self.queue.add_at(key, plan.wake_at)
        else:
            self._postpone(key, result)

    def _postpone(self, key: Key, result: Result) -> None:
        wait = self.queue.retry(key)
        if result.outcome is not Outcome.LOOK_AGAIN:
            name = self.controller.name
            _log.warning("%s: %s, looking again in %g s: %s", name, key, wait, result.failure)
