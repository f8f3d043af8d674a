"""The one way that data flows: watch → store → learn → queue → observe → decide → Plan → begin → execute → settled.

`observe`, `decide` and `keys` only read. A controller's memory changes in three places, each of which runs without
an await: `learn` folds a change in, `begin` reserves what must count before the writes of a Plan are done, for other
workers decide meanwhile, and `settled` takes in what became of the Plan.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from foresail.kube.errands import SendsErrands
from foresail.kube.execute import Outcome, Result
from foresail.kube.expectations import Expectations, Written
from foresail.kube.failures import Cause, Failure
from foresail.kube.logs import DecisionLog, about
from foresail.kube.queue import LOOK_AT_THE_CLOCK, Queue
from foresail.kube.reflector import Change, Interest, Reflector
from foresail.kube.refusals import refusal_note
from foresail.kube.server import Server
from foresail.kube.store import Store, Unreadable
from foresail.kube.tracing import Tracer, Untraced
from foresail.kube.watch import STALL_SECONDS, SharedWatch, Watch
from foresail.plan import Action, Key, Kind, Level, Note, Plan, Subject

_log = logging.getLogger(__name__)
Seen = TypeVar("Seen")
WORKERS = 16
_TOO_MANY, _LONGEST_TOO_MANY = 1.0, 60.0  # seconds, if the API server does not say, and however long it says
_NO_PLAN, _DONE = Plan(), Result(Outcome.DONE)
_CUT_OFF = Result(Outcome.LOOK_AGAIN, failure=Failure(Cause.NOT_LEADING, "the Plan was cut off"))
_AFTER_THE_PAST = 1.0  # seconds until the next look at a key whose plan asked for one at an instant that had passed


def _nobody(*_: object) -> Iterable[Any]:
    return ()


@dataclass(frozen=True, slots=True)
class Later:
    """A key that a change concerns as well, and that may wait until nothing newer is to be looked at."""

    key: Key


@dataclass(frozen=True, slots=True)
class Watched:
    """An interest, the store that it fills, and how the controller maps its changes to keys.

    `learn` folds a change into the controller's memory, and returns the keys that the change of memory concerns.
    `keys` runs after it, and only reads.
    """

    interest: Interest[Any, Any]
    store: Store[Any]
    keys: Callable[[Change[Any]], Iterable[Key | Later]]
    learn: Callable[[Change[Any]], Iterable[Key | Later]] = _nobody


@dataclass(frozen=True, slots=True)
class Patience:
    """How many seconds the loop lets pass before it doubts: the instant it waits for, and a watch that is silent."""

    look_at_the_clock: float = LOOK_AT_THE_CLOCK
    stall: float = STALL_SECONDS
    jitter: Callable[[], float] = random.random  # from 0 to 1, by which back-offs are spread


_PATIENCE = Patience()


class Controller(Protocol, Generic[Seen]):
    """What a capability brings along; everything else is the loop's."""

    @property
    def name(self) -> str:
        """The controller's name, for logs and metrics."""

    @property
    def watched(self) -> Sequence[Watched]:
        """What it must know."""

    def observe(self, key: Key, now: datetime) -> Seen | None:
        """Collect what a decision about the key needs; None if there is nothing to decide."""

    def decide(self, seen: Seen, now: datetime) -> Plan:
        """Say what is to be done; a pure function."""


@runtime_checkable
class Reserves(Protocol):
    """A controller whose decisions compete, for a quota or a turn."""

    def begin(self, key: Key, seen: Any, plan: Plan, now: datetime) -> Iterable[Key]:  # noqa: ANN401 - as observed
        """Reserve what a Plan takes, before its first write; return the keys to reconcile now."""


@runtime_checkable
class Settles(Protocol):
    """A controller that remembers what became of its Plans."""

    def settled(
        self,
        key: Key,
        seen: Any,  # noqa: ANN401 - as observed, None if there is nothing to decide
        plan: Plan,
        result: Result,
        now: datetime,
    ) -> Iterable[Key]:
        """Confirm or release what was reserved; return the keys to reconcile now, the same one if need be."""


@runtime_checkable
class HasTerms(Protocol):
    """A controller that keeps what it decided, which is true only while this process leads."""

    def start_term(self) -> Iterable[Key]:
        """Forget what was decided in an earlier term; return the keys to reconcile because of it."""


class Executes(Protocol):
    """Who carries Plans out: the executor, or a dry run."""

    async def execute(self, plan: Plan) -> Result:
        """Carry out a Plan, and say what became of it."""


class Leads(Protocol):
    """Who says when to work: a Leadership, if there are several replicas."""

    async def gained(self) -> None:
        """Return when this process leads."""

    async def lost(self) -> None:
        """Return when it does not."""


class Alone:
    """Leads from the start and for ever: there is no other replica."""

    async def gained(self) -> None:
        """Return at once."""

    async def lost(self) -> None:
        """Never return."""
        await asyncio.Event().wait()


class Loop(Generic[Seen]):
    """Runs one controller until cancelled or drained; it ends by itself only if one of its watches does.

    The watches run all the time, the workers only while this process leads: a follower's stores are warm, and its
    queue holds what it has not looked at yet. What a loop beside it watches already is not streamed a second time.
    """

    def __init__(  # noqa: PLR0913 - what a loop is put together from, each part with its name
        self,
        client: Server,
        controller: Controller[Seen],
        executor: Executes,
        now: Callable[[], datetime],
        *,
        leads: Leads | None = None,
        say: Callable[[Note], None] = lambda _: None,
        workers: int = WORKERS,
        patience: Patience = _PATIENCE,
        beside: Sequence["Loop[Any]"] = (),
        tracer: Tracer | None = None,
    ) -> None:
        self.controller = controller
        self.queue = Queue(now, look_at_the_clock=patience.look_at_the_clock, jitter=patience.jitter)
        watched = tuple(controller.watched)
        self._expectations = Expectations((one.interest for one in watched), self.queue.done)
        self.watches = [self._watch(client, one, number, beside, patience) for number, one in enumerate(watched)]
        self._begin = controller.begin if isinstance(controller, Reserves) else _nobody
        self._settled = controller.settled if isinstance(controller, Settles) else _nobody
        self._start_term = controller.start_term if isinstance(controller, HasTerms) else _nobody
        self._errands = controller.errands if isinstance(controller, SendsErrands) else None
        if self._errands is not None:
            self._errands.wake = self.queue.add
            self._errands.clock = now
        self.on_reconciled: Callable[[str, float], None] = lambda _outcome, _seconds: None
        self.is_working = False
        traced = tracer or Untraced()
        self._observe = traced.step("observe", controller.observe)
        self._decide = traced.step("decide", controller.decide)
        self._execute = traced.async_step("execute", executor.execute)
        self._reconcile = traced.reconcile(controller.name, self._look)
        self._now = now
        self._leads = leads or Alone()
        self._say = say
        self._workers = workers
        self._watching: list[tuple[Kind, asyncio.Task[None]]] = []
        self._busy: set[asyncio.Task[None] | None] = set()
        self._hasty: set[Key] = set()  # whose last plan asked for an instant that had passed
        self._decisions = DecisionLog()
        self._draining = asyncio.Event()

    async def run(self) -> None:
        """Watch, and while this process leads work on what the watches bring once all of them are complete."""
        async with asyncio.TaskGroup() as group:
            for watch in self.watches:
                self._watching.append((watch.reflector.interest.kind, group.create_task(watch.run())))
            await _first(self.synced(), self._draining.wait())
            while not self._draining.is_set():
                await _first(self._leads.gained(), self._draining.wait())
                if not self._draining.is_set():
                    await self._lead()
            for _, task in self._watching:
                task.cancel()

    async def synced(self) -> None:
        """Return when every store has been whole once: before that, an absence means nothing."""
        for watch in self.watches:
            await watch.synced.wait()

    def drain(self) -> None:
        """Begin nothing new: `run` returns when what has been begun is done."""
        self._draining.set()

    @property
    def ended_watches(self) -> list[Kind]:
        """The kinds whose watch has ended while it should run: what is known of them grows old."""
        return [] if self._draining.is_set() else [kind for kind, task in self._watching if task.done()]

    async def _lead(self) -> None:
        for watch in self.watches:
            for found in watch.reflector.store.unread.values():  # whoever led before may not have come to say it
                self._say(_unreadable(watch.reflector.interest.kind, found))
        for key in self._start_term():
            self.queue.add(key, initial=True)
        async with asyncio.TaskGroup() as group:
            team = [group.create_task(self._work()) for _ in range(self._workers)]
            away = [group.create_task(self._errands.work())] if self._errands is not None else []
            self.is_working = True
            self.queue.attended_since = asyncio.get_running_loop().time()
            try:
                await _first(self._leads.lost(), self._draining.wait())
            finally:
                self.is_working = False
                self._decisions = DecisionLog()
            # To drain, those at work finish their plan, for they lead still. When the lead is lost they are cut
            # off in the middle of it, as a crash would: the next leader finds what they wrote, and goes on from it.
            for worker in team:
                if not self._draining.is_set() or worker not in self._busy:
                    worker.cancel()
            for errand in away:  # it writes nothing, so nothing is lost by ending it
                errand.cancel()

    def _watch(
        self, client: Server, one: Watched, number: int, beside: Sequence["Loop[Any]"], patience: Patience
    ) -> Watch[Any, Any] | SharedWatch:
        """Return a watch for one interest: that of another loop if it brings the same objects, else a new one."""
        reflector, reached = self._reflector(one), partial(self._expectations.observed, number)
        for watch in (watch for loop in beside for watch in loop.watches):
            if isinstance(watch, Watch) and watch.reflector.interest.may_share(one.interest):
                return watch.join(reflector, reached)
        return Watch(client, reflector, reached, stall=patience.stall, jitter=patience.jitter)

    def _reflector(self, one: Watched) -> Reflector[Any, Any]:
        kind = one.interest.kind

        def changed(change: Change[Any]) -> None:
            unlooked: list[Key] = []
            for each in chain(one.learn(change), one.keys(change)):  # there may be thousands
                key, may_wait = (each.key, True) if isinstance(each, Later) else (each, change.initial)
                self.queue.add(key, initial=may_wait)
                if change.new is None and not self.is_working:
                    unlooked.append(key)
            for key in unlooked:
                self._pass_over(key)

        def unreadable(found: Unreadable) -> None:
            with about(self.controller.name, found.key):
                _log.warning("%s %s cannot be read and is left alone: %s", kind.name, found.key, found.problem)
            if self.is_working and found.uid:
                self._say(_unreadable(kind, found))

        return Reflector(one.interest, one.store, changed, unreadable)

    def _pass_over(self, key: Key) -> None:
        """Let go of what went while nobody works here: a follower would keep the key of all that has ever been."""
        with suppress(Exception):  # if it cannot be told, whoever works looks at it, and says what is wrong
            now = self._now()
            if self.controller.observe(key, now) is None:
                self.queue.forget(key)
                self._settled(key, None, _NO_PLAN, _DONE, now)

    async def _work(self) -> None:
        me = asyncio.current_task()
        while not self._draining.is_set():
            await asyncio.sleep(0)  # looks that write nothing wait for nothing, and would keep the Lease waiting
            key = await self.queue.get()
            self._busy.add(me)
            written: tuple[Written, ...] = ()
            try:
                with about(self.controller.name, key):
                    written = await self._timed_look(key)
            except asyncio.CancelledError:
                self.queue.add(key)  # the lead was lost in the middle: whoever has it next looks again, maybe we
                raise
            finally:
                self._busy.discard(me)
                self._expectations.expect(key, written)

    async def _timed_look(self, key: Key) -> tuple[Written, ...]:
        begun = time.perf_counter()
        try:
            outcome, written = await self._reconcile(key)
        except Exception:  # noqa: BLE001 - whatever a decision does wrong
            # A decision that fails on one object must not end the work on all others.
            _log.exception("%s: a look at %s failed", self.controller.name, key)
            self.queue.retry(key)
            outcome, written = "crashed", ()
        self.on_reconciled(outcome, time.perf_counter() - begun)
        return written

    async def _look(self, key: Key) -> tuple[str, tuple[Written, ...]]:
        now = self._now()
        seen = self._observe(key, now)
        if seen is None:
            self.queue.succeeded(key)
            self._decisions.forget(key)
            self._wake(key, None, now)
            self._requeue(self._settled(key, None, _NO_PLAN, _DONE, now))
            return "absent", ()
        plan = self._decide(seen, now)
        self._requeue(self._begin(key, seen, plan, now))
        if self._errands is not None:
            for read in plan.reads:
                self._errands.send(key, read, now)
        try:
            result = await self._execute(plan)
        except BaseException:  # the lead was lost, or the executor failed: whatever was reserved is released
            self._requeue(self._settled(key, seen, plan, _CUT_OFF, now))
            raise
        again = set(self._settled(key, seen, plan, result, now))
        if result.outcome is Outcome.DONE:
            self.queue.succeeded(key)
            self._wake(key, plan.wake_at, now)
            self._decisions.note(key, plan.notes)
            for note in plan.notes:
                self._say(note)
        elif key in again:  # the next Plan will not be the same
            _log.warning("%s: %s: %s", self.controller.name, key, result.failure)
            self.queue.succeeded(key)
        else:
            self._postpone(key, plan, result)
        self._requeue(again)
        return result.outcome.name.lower(), result.written

    def _requeue(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self.queue.add(key)

    def _wake(self, key: Key, at: datetime | None, now: datetime) -> None:
        """Ask for the next look; if it was to be in the past already, in a second: asked for again, it would spin."""
        if at is None or at > now:
            self._hasty.discard(key)
            self.queue.add_at(key, at)
            return
        self.queue.add_after(key, _AFTER_THE_PAST)
        if key not in self._hasty:
            self._hasty.add(key)
            text = "%s: the plan for %s asks for a look at %s, which has passed; looking each %g s until it does not"
            _log.warning(text, self.controller.name, key, at.isoformat(), _AFTER_THE_PAST)

    def _postpone(self, key: Key, plan: Plan, result: Result) -> None:
        failure = result.failure
        if failure is not None and failure.cause is Cause.TOO_MANY:
            # It is no fault of the key, so it does not wait longer each time.
            wait = self.queue.back_off(key, min(failure.retry_after or _TOO_MANY, _LONGEST_TOO_MANY))
        else:
            wait = self.queue.retry(key, (failure and failure.retry_after) or 0.0)
        if result.outcome is not Outcome.LOOK_AGAIN:
            name = self.controller.name
            _log.warning("%s: %s, looking again in %g s: %s", name, key, wait, failure)
        if result.outcome is Outcome.REFUSED and result.action is not None:
            self._say(_refused(plan.subject, result.action))
        elif result.action is not None and (note := refusal_note(plan.subject, result.action, failure)) is not None:
            self._say(note)


def _unreadable(kind: Kind, found: Unreadable) -> Note:
    text = f"{kind.name} {found.key} cannot be read and is left alone: {found.problem}. Correct that field."
    return Note(kind, found.key, found.uid, "Unreadable", text, Level.WARNING)


def _refused(subject: Subject | None, action: Action) -> Note:
    text = (
        f"{action.kind.name} {action.key} is there already and does not belong here, so it was left alone. "
        "Rename or delete it, and this goes on by itself."
    )
    at = subject or Subject(action.kind, action.key, "")
    return Note(at.kind, at.key, at.uid, "NameTaken", text, Level.WARNING)


async def _first(*waits: Coroutine[Any, Any, object]) -> None:
    """Return when the first of several waits is over, and end the others."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
