"""Data flows one way: watch → store → learn → queue → observe → decide → Plan → begin → execute → settled.

`observe`, `decide` and `keys` only read. A controller's memory changes in few places, each without an await:
`learn` applies a change, `begin` reserves what a Plan takes before its writes, because other workers decide
meanwhile, `settled` applies the result of the Plan, `crashed` releases what a key blocks that has no result, and
`start_term` forgets what was decided before this process was the leader. A background read keeps what it found.
"""

import asyncio
import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any, Generic

from foresail.kube.background_reads import HasBackgroundReads
from foresail.kube.clock import steady
from foresail.kube.controller import (
    Controller,
    Election,
    Executes,
    HasTerms,
    Informer,
    LowPriority,
    MapsChanges,
    Recovers,
    Reserves,
    Settles,
    SingleReplica,
    View,
    no_keys,
)
from foresail.kube.execute import Outcome, Result
from foresail.kube.expectations import Expectations, Written
from foresail.kube.failures import Cause, Failure, refusal_note
from foresail.kube.logs import DecisionLog, about
from foresail.kube.queue import CLOCK_CHECK_SECONDS, Queue
from foresail.kube.reflector import Change, Reflector
from foresail.kube.server import Server
from foresail.kube.store import Unreadable
from foresail.kube.tracing import Tracer, Untraced
from foresail.kube.watch import STALL_SECONDS, SharedWatch, Watch
from foresail.plan import Action, Key, Kind, Level, Note, Plan, Subject

_log = logging.getLogger(__name__)
WORKERS = 16
_TOO_MANY, _MAX_TOO_MANY = 1.0, 60.0  # seconds to wait after a 429: without a Retry-After, and at most
_NO_PLAN, _DONE = Plan(), Result(Outcome.DONE)
_CUT_OFF = Result(Outcome.REQUEUE, failure=Failure(Cause.NOT_LEADING, "the Plan was cut off"))
_PAST_WAKE_UP_DELAY = 1.0  # seconds until the next reconcile after a Plan with a wake-up in the past


@dataclass(frozen=True, slots=True)
class LoopTiming:
    """Seconds between two checks of the wall clock and until a silent watch is reopened."""

    clock_check: float = CLOCK_CHECK_SECONDS
    stall: float = STALL_SECONDS
    jitter: Callable[[], float] = random.random  # from 0 to 1, by which back-offs are spread
    clock: Callable[[], float] = steady


_TIMING = LoopTiming()


class Loop(Generic[View]):
    """Runs one controller until cancelled or drained; it ends by itself only if one of its watches does.

    The watches always run, the workers only in the leader. So a follower's stores are warm, and its queue
    has the keys that it has not reconciled. Loops with the same watch share one stream (`siblings`).
    """

    def __init__(  # noqa: PLR0913 - the parts of a loop, each by its name
        self,
        client: Server,
        controller: Controller[View],
        executor: Executes,
        now: Callable[[], datetime],
        *,
        election: Election | None = None,
        emit: Callable[[Note], None] = lambda _: None,
        workers: int = WORKERS,
        timing: LoopTiming = _TIMING,
        siblings: Sequence["Loop[Any]"] = (),
        tracer: Tracer | None = None,
    ) -> None:
        self.controller = controller
        self.queue = Queue(now, clock_check=timing.clock_check, jitter=timing.jitter)
        informers = tuple(controller.informers)
        self._expectations = Expectations((informer.spec for informer in informers), self.queue.done, self._expect)
        self.watches = [
            self._watch(client, informer, number, siblings, timing) for number, informer in enumerate(informers)
        ]
        for watch in self.watches:
            watch.reflector.store.age = watch.age
        self._begin = controller.begin if isinstance(controller, Reserves) else no_keys
        self._settled = controller.settled if isinstance(controller, Settles) else no_keys
        self._crashed = controller.crashed if isinstance(controller, Recovers) else no_keys
        self._start_term = controller.start_term if isinstance(controller, HasTerms) else no_keys
        self.background_reads = controller.background_reads if isinstance(controller, HasBackgroundReads) else None
        if self.background_reads is not None:
            self.background_reads.wake = self.queue.add
            self.background_reads.clock = now
        self.on_reconciled: Callable[[str, float], None] = lambda _outcome, _seconds: None
        self.is_working = False
        traced = tracer or Untraced()
        self._observe = traced.step("observe", controller.observe)
        self._decide = traced.step("decide", controller.decide)
        self._execute = traced.async_step("execute", executor.execute)
        self._traced_reconcile = traced.reconcile(controller.name, self._reconcile)
        self._now = now
        self._election = election or SingleReplica()
        self._emit = emit
        self._workers = workers
        self._watching: list[tuple[Kind, asyncio.Task[None]]] = []
        self._busy: set[asyncio.Task[None] | None] = set()
        self.failed_changes: Counter[str] = Counter()  # by the name of the kind
        self._failing: set[tuple[Kind, Key]] = set()  # objects of which a change failed, so that each is logged once
        self._past_wake_ups: set[Key] = set()  # keys whose last Plan had a wake-up in the past
        self._decisions = DecisionLog()
        self._draining = asyncio.Event()

    async def run(self) -> None:
        """Watch, and reconcile while this process is the leader and all stores are complete."""
        async with asyncio.TaskGroup() as group:
            for watch in self.watches:
                self._watching.append((watch.reflector.spec.kind, group.create_task(watch.run())))
            await _first(self.synced(), self._draining.wait())
            while not self._draining.is_set():
                await _first(self._election.until_leader(), self._draining.wait())
                if not self._draining.is_set():
                    await self._lead()
            for _, task in self._watching:
                task.cancel()

    async def synced(self) -> None:
        """Return when every store has been complete once; before that, absence proves nothing."""
        for watch in self.watches:
            await watch.synced.wait()

    def drain(self) -> None:
        """Start no new reconcile: `run` returns when the running ones are done."""
        self._draining.set()

    @property
    def ended_watches(self) -> list[Kind]:
        """The kinds whose watch has ended although it should run."""
        return [] if self._draining.is_set() else [kind for kind, task in self._watching if task.done()]

    async def _lead(self) -> None:
        for watch in self.watches:
            for unreadable in watch.reflector.store.unread.values():  # the last leader may not have emitted the Event
                self._emit(_unreadable(watch.reflector.spec.kind, unreadable))
        for key in self._start_term():
            self.queue.add(key, initial=True)
        async with asyncio.TaskGroup() as group:
            workers = [group.create_task(self._work()) for _ in range(self._workers)]
            readers = [group.create_task(self.background_reads.work())] if self.background_reads is not None else []
            self.is_working = True
            self.queue.workers_since = asyncio.get_running_loop().time()
            try:
                await _first(self._election.until_follower(), self._draining.wait())
            finally:
                self.is_working = False
                self._decisions = DecisionLog()
            # While draining, this process still is leader, so busy workers finish their Plan. When leadership is lost,
            # they are cancelled as in a crash: the next leader observes their writes and continues from there.
            for worker in workers:
                if not self._draining.is_set() or worker not in self._busy:
                    worker.cancel()
            for reader in readers:  # it writes nothing, so cancelling loses nothing
                reader.cancel()

    def _watch(
        self, client: Server, informer: Informer, number: int, siblings: Sequence["Loop[Any]"], timing: LoopTiming
    ) -> Watch[Any, Any] | SharedWatch:
        """Return the watch of another loop if it delivers the same objects, else a new one."""
        reflector = self._reflector(informer)
        on_version = partial(self._expectations.observed, number)
        for watch in (watch for loop in siblings for watch in loop.watches):
            if isinstance(watch, Watch) and watch.reflector.spec.may_share(informer.spec):
                return watch.share(reflector, on_version)
        return Watch(client, reflector, on_version, stall=timing.stall, clock=timing.clock, jitter=timing.jitter)

    def _expect(self, number: int, version: int) -> None:
        self.watches[number].expect(version)

    def _reflector(self, informer: Informer) -> Reflector[Any, Any]:
        kind = informer.spec.kind

        def changed(change: Change[Any]) -> None:
            deleted: list[Key] = []
            for mapped in chain(self._mapped(kind, informer.learn, change), self._mapped(kind, informer.keys, change)):
                key, may_wait = (mapped.key, True) if isinstance(mapped, LowPriority) else (mapped, change.initial)
                self.queue.add(key, initial=may_wait)
                if change.new is None and not self.is_working:
                    deleted.append(key)
            for key in deleted:
                self._forget_deleted(kind, key)

        def unreadable(broken: Unreadable) -> None:
            with about(self.controller.name, broken.key):
                _log.warning("%s %s cannot be decoded and is ignored: %s", kind.name, broken.key, broken.problem)
            if self.is_working and broken.uid:
                self._emit(_unreadable(kind, broken))

        return Reflector(informer.spec, informer.store, changed, unreadable)

    def _mapped(self, kind: Kind, step: MapsChanges, change: Change[Any]) -> Iterator[Key | LowPriority]:
        """Yield the keys that a change maps to; a failure concerns this object alone, so the watch continues."""
        try:
            yield from step(change)
        except Exception:  # noqa: BLE001 - whatever a tenant's object brings about
            self._count_failed_change(kind, change.key)
        if change.new is None:
            self._failing.discard((kind, change.key))

    def _forget_deleted(self, kind: Kind, key: Key) -> None:
        """Forget a key that was deleted while no worker runs; a follower's queue would grow without end."""
        try:
            now = self._now()
            if self.controller.observe(key, now) is None:
                self._settled(key, None, _NO_PLAN, _DONE, now)
                self.queue.forget(key)
        except Exception:  # noqa: BLE001 - the key stays queued, and the next leader reconciles it
            self._count_failed_change(kind, key)
            self._failing.discard((kind, key))

    def _count_failed_change(self, kind: Kind, key: Key) -> None:
        """Count the exception that is being handled, and log it once for each object."""
        self.failed_changes[kind.name] += 1
        if (kind, key) not in self._failing:
            self._failing.add((kind, key))
            text = "%s: cannot process a change of %s %s; other objects are not affected"
            _log.exception(text, self.controller.name, kind.name, key)

    async def _work(self) -> None:
        me = asyncio.current_task()
        while not self._draining.is_set():
            await asyncio.sleep(0)  # a reconcile without writes never waits, and would delay the Lease renewal
            key = await self.queue.get()
            self._busy.add(me)
            written: tuple[Written, ...] = ()
            try:
                with about(self.controller.name, key):
                    written = await self._measured_reconcile(key)
            except asyncio.CancelledError:
                self.queue.add(key)  # leadership was lost: this process may lead again and must reconcile then
                raise
            finally:
                self._busy.discard(me)
                self._expectations.expect(key, written)

    async def _measured_reconcile(self, key: Key) -> tuple[Written, ...]:
        begun = time.perf_counter()
        try:
            outcome, written = await self._traced_reconcile(key)
        except Exception:  # noqa: BLE001 - whatever a decision does wrong
            # A bug that affects one object must not stop the work on all others.
            _log.exception("%s: reconciling %s failed", self.controller.name, key)
            self.queue.retry(key)
            self._requeue(self._crashed(key))
            outcome = "crashed"
            written = ()
        self.on_reconciled(outcome, time.perf_counter() - begun)
        return written

    async def _reconcile(self, key: Key) -> tuple[str, tuple[Written, ...]]:
        now = self._now()
        view = self._observe(key, now)
        if view is None:
            self.queue.succeeded(key)
            self._decisions.forget(key)
            self._schedule_wake_up(key, None, now)
            self._requeue(self._settled(key, None, _NO_PLAN, _DONE, now))
            return "absent", ()
        plan = self._decide(view, now)
        self._requeue(self._begin(key, view, plan, now))
        if self.background_reads is not None:
            for read in plan.reads:
                self.background_reads.request(key, read, now)
        try:
            result = await self._execute(plan)
        except BaseException:  # leadership was lost or the executor failed: release what was reserved
            self._requeue(self._settled(key, view, plan, _CUT_OFF, now))
            raise
        again = set(self._settled(key, view, plan, result, now))
        if result.outcome is Outcome.DONE:
            self.queue.succeeded(key)
            self._schedule_wake_up(key, plan.wake_at, now)
            self._decisions.note(key, plan.notes)
            for note in plan.notes:
                self._emit(note)
        elif key in again:  # the next Plan will not be the same
            _log.warning("%s: %s: %s", self.controller.name, key, result.failure)
            self.queue.succeeded(key)
        else:
            self._retry_later(key, plan, result)
        self._requeue(again)
        return result.outcome.name.lower(), result.written

    def _requeue(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self.queue.add(key)

    def _schedule_wake_up(self, key: Key, at: datetime | None, now: datetime) -> None:
        """Queue a key at an instant; if that has passed, in a second, because at once would loop without a pause."""
        if at is None or at > now:
            self._past_wake_ups.discard(key)
            self.queue.add_at(key, at)
            return
        self.queue.add_after(key, _PAST_WAKE_UP_DELAY)
        if key not in self._past_wake_ups:
            self._past_wake_ups.add(key)
            text = "%s: the Plan for %s has its wake-up in the past (%s); reconciling every %g s"
            _log.warning(text, self.controller.name, key, at.isoformat(), _PAST_WAKE_UP_DELAY)

    def _retry_later(self, key: Key, plan: Plan, result: Result) -> None:
        failure = result.failure
        if failure is not None and failure.cause is Cause.TOO_MANY:
            # The key is not at fault, so its back-off does not grow.
            wait = self.queue.back_off(key, min(failure.retry_after or _TOO_MANY, _MAX_TOO_MANY))
        else:
            wait = self.queue.retry(key, (failure and failure.retry_after) or 0.0)
        if result.outcome is not Outcome.REQUEUE or self.queue.is_failing(key):
            name = self.controller.name
            _log.warning("%s: %s failed, retrying in %g s: %s", name, key, wait, failure)
        if result.outcome is Outcome.REFUSED and result.action is not None:
            self._emit(_refused(plan.subject, result.action))
        elif result.action is not None and (note := refusal_note(plan.subject, result.action, failure)) is not None:
            self._emit(note)


def _unreadable(kind: Kind, unreadable: Unreadable) -> Note:
    text = f"{kind.name} {unreadable.key} cannot be decoded and is ignored: {unreadable.problem}. Correct that field."
    return Note(kind, unreadable.key, unreadable.uid, "Unreadable", text, Level.WARNING)


def _refused(subject: Subject | None, action: Action) -> Note:
    text = (
        f"{action.kind.name} {action.key} already exists and is not managed by this operator. "
        "Rename or delete it; the operator then continues automatically."
    )
    at = subject or Subject(action.kind, action.key, "")
    return Note(at.kind, at.key, at.uid, "NameTaken", text, Level.WARNING)


async def _first(*waits: Coroutine[Any, Any, object]) -> None:
    """Return when the first of several coroutines is done, and cancel the others."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
