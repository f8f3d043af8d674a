"""The work queue: each key once, never with two workers at a time, and fair between namespaces.

There are two priorities: live changes, and behind them initial objects and low-priority keys. One of ten keys comes
from the second, so that it never starves. In each the namespaces take turns, so that ten thousand objects of one tenant
do not delay another tenant. A key can also wait for an instant of the wall clock, or for its back-off after a failure,
which has jitter and is measured on the monotonic clock. Each new key wakes one worker.
"""

import asyncio
import heapq
import random
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import chain
from typing import Generic, TypeVar

from foresail.plan import Key

Value = TypeVar("Value")


class Turns(Generic[Value]):
    """Waiting keys, each once and with a value."""

    __slots__ = ("_by_namespace", "_length")

    def __init__(self) -> None:
        self._by_namespace: OrderedDict[str, OrderedDict[Key, Value]] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __contains__(self, key: Key) -> bool:
        return key in self._by_namespace.get(key.namespace, ())

    def push(self, key: Key, value: Value) -> None:
        """Add a key; one that waits already keeps its value."""
        keys = self._by_namespace.get(key.namespace)
        if keys is None:
            keys = self._by_namespace[key.namespace] = OrderedDict()
        if key not in keys:
            keys[key] = value
            self._length += 1

    def pop(self) -> tuple[Key, Value]:
        """Remove and return the next key and its value; there must be one."""
        namespace, keys = self._by_namespace.popitem(last=False)
        popped = keys.popitem(last=False)
        self._length -= 1
        if keys:
            self._by_namespace[namespace] = keys  # this namespace is now last
        return popped

    def drop(self, key: Key) -> None:
        """Remove a key, if it waits."""
        keys = self._by_namespace.get(key.namespace)
        if keys is not None and keys.pop(key, None) is not None:
            self._length -= 1
            if not keys:
                del self._by_namespace[key.namespace]

    def firsts(self) -> Iterator[tuple[Key, Value]]:
        """Return the first key of each namespace and its value."""
        return (next(iter(keys.items())) for keys in self._by_namespace.values())


_FIRST_BACKOFF, _MAX_BACKOFF = 0.2, 60.0
_JITTER = 0.25  # the share by which a back-off is longer at most, so that keys that failed together spread
_LIVE_IN_A_ROW = 9
_MANY_FAILURES = 5  # in a row, about six seconds: a conflict is resolved by then
_MAX_STALE = 64  # cancelled entries that the heap may keep
CLOCK_CHECK_SECONDS = 1.0  # the wall clock may be set while a key waits for an instant
_CLOCK_SET_BACK = 60.0  # seconds by which the wall clock must step back for every instant to be decided again


Instant = TypeVar("Instant", datetime, float)


class _Timers(Generic[Instant]):
    """Keys that wait for an instant, each for at most one."""

    __slots__ = ("_due", "_order")

    def __init__(self) -> None:
        self._due: dict[Key, Instant] = {}
        self._order: list[tuple[Instant, Key]] = []

    def __len__(self) -> int:
        return len(self._due)

    def put(self, key: Key, instant: Instant) -> None:
        if self._due.get(key) == instant:
            return  # the common case
        self._due[key] = instant
        heapq.heappush(self._order, (instant, key))
        if len(self._order) > _MAX_STALE + 2 * len(self._due):
            # Most entries were cancelled or moved; an instant may be a month away, so remove them now.
            self._order = [(due, key) for key, due in self._due.items()]
            heapq.heapify(self._order)

    def drop(self, key: Key) -> None:
        self._due.pop(key, None)  # its entry in the heap is skipped when it comes up

    def next(self) -> Instant | None:
        while self._order and self._due.get(self._order[0][1]) != self._order[0][0]:
            heapq.heappop(self._order)  # cancelled, or moved to another instant
        return self._order[0][0] if self._order else None

    def take_all(self) -> list[Key]:
        keys = list(self._due)
        self._due.clear()
        self._order.clear()
        return keys

    def take(self, now: Instant) -> Iterator[Key]:
        while (instant := self.next()) is not None and instant <= now:
            _, key = heapq.heappop(self._order)
            del self._due[key]
            yield key


class Queue:
    """Hands out keys to any number of workers of one event loop."""

    def __init__(
        self,
        now: Callable[[], datetime],
        *,
        clock_check: float = CLOCK_CHECK_SECONDS,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.adds = self.retries = 0
        self.workers_since = 0.0  # when workers started, by the event loop's clock; waiting counts from then
        self.on_waited: Callable[[float], None] = lambda _: None  # called with the seconds a key waited for a worker
        self._now = now
        self._jitter = jitter  # from 0 to 1
        self._clock_check = clock_check
        self._live, self._initial = Turns[float](), Turns[float]()  # with the times of arrival
        self._live_in_a_row = 0
        self._working: dict[Key, float] = {}  # and since when
        self._again: dict[Key, bool] = {}  # changed while being reconciled, and whether only with `initial`
        self._instants = _Timers[datetime]()
        self._backoffs = _Timers[float]()
        self._failures: dict[Key, int] = {}
        self._idle: deque[asyncio.Future[None]] = deque()  # one per waiting worker, the longest waiting first
        self._timer: asyncio.TimerHandle | None = None
        self._offset = 0.0  # seconds that the wall clock is ahead of the event loop's monotonic clock

    def __len__(self) -> int:
        return len(self._live) + len(self._initial)

    @property
    def delayed(self) -> int:
        """How many keys wait for an instant, or for their back-off."""
        return len(self._instants) + len(self._backoffs)

    @property
    def failing(self) -> int:
        """How many keys have failed many times in a row, for whatever cause."""
        return sum(count >= _MANY_FAILURES for count in self._failures.values())

    def is_failing(self, key: Key) -> bool:
        """Whether a key has failed many times in a row."""
        return self._failures.get(key, 0) >= _MANY_FAILURES

    def contents(self, most: int) -> dict[str, object]:
        """Describe the queue for debugging, with at most so many keys each."""
        now = asyncio.get_running_loop().time()
        oldest = heapq.nsmallest(most, ((since, key) for key, since in self._firsts()))
        failing = heapq.nlargest(most, ((count, key) for key, count in self._failures.items()))
        working = heapq.nsmallest(most, ((since, key) for key, since in self._working.items()))
        instant = self._instants.next()
        return {
            "live": len(self._live),
            "initial": len(self._initial),
            "oldest": {str(key): round(now - since, 1) for since, key in oldest},
            "working": {str(key): round(now - since, 1) for since, key in working},
            "failing": {str(key): count for count, key in failing},
            "in_back_off": len(self._backoffs),
            "at_an_instant": len(self._instants),
            "next_instant": instant.isoformat() if instant is not None else None,
        }

    def unfinished(self) -> list[float]:
        """Return for how many seconds each unfinished key has been reconciled."""
        now = asyncio.get_running_loop().time()
        return [now - since for since in self._working.values()]

    def age(self) -> float:
        """Return how many seconds the oldest key has waited for a worker."""
        now = asyncio.get_running_loop().time()
        return max((now - since for _, since in self._firsts()), default=0.0)

    def _firsts(self) -> Iterator[tuple[Key, float]]:
        """Return the keys that have waited longest in each namespace, and since when."""
        return chain(self._live.firsts(), self._initial.firsts())

    def add(self, key: Key, *, initial: bool = False) -> None:
        """Queue a key; with `initial`, behind the keys of live changes."""
        if key in self._working:
            self.adds += key not in self._again
            self._again[key] = initial and self._again.get(key, True)
            return
        now = asyncio.get_running_loop().time()
        self.adds += key not in self._live and key not in self._initial
        if initial:
            if key not in self._live:
                self._initial.push(key, now)
        else:
            self._initial.drop(key)
            self._live.push(key, now)
        self._wake_one()

    def add_at(self, key: Key, instant: datetime | None) -> None:
        """Queue a key at an instant, replacing an earlier instant; None cancels it."""
        self._backoffs.drop(key)
        if instant is None:
            self._instants.drop(key)
            return
        self._instants.put(key, instant)
        self._set_timer()

    def add_after(self, key: Key, seconds: float) -> None:
        """Queue a key after some seconds of the monotonic clock.

        This replaces its instant, because that reconcile decides on the next one.
        """
        self._instants.drop(key)
        self._backoffs.put(key, asyncio.get_running_loop().time() + seconds)
        self._set_timer()

    def retry(self, key: Key, at_least: float = 0.0) -> float:
        """Queue a key after a failure with exponential back-off; return the seconds."""
        self.retries += 1
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        wait = min(max(_FIRST_BACKOFF * 2.0 ** min(failures - 1, 16), at_least), _MAX_BACKOFF)
        return self.back_off(key, wait)

    def back_off(self, key: Key, seconds: float) -> float:
        """Queue a key after some seconds and up to a quarter more; return the seconds."""
        wait = seconds * (1 + _JITTER * self._jitter())
        self.add_after(key, wait)
        return wait

    def succeeded(self, key: Key) -> None:
        """Forget the failures of a key."""
        self._failures.pop(key, None)

    def forget(self, key: Key) -> None:
        """Remove a key about which there is nothing to decide."""
        for waits in (self._live, self._initial, self._instants, self._backoffs):
            waits.drop(key)
        self._failures.pop(key, None)

    async def get(self) -> Key:
        """Return the next key; no other worker gets it until `done` is called."""
        while True:
            self._take_due()
            popped = self._pop()
            if popped is not None:
                key, since = popped
                now = self._working[key] = asyncio.get_running_loop().time()
                self.on_waited(now - max(since, self.workers_since))
                return key
            await self._until_woken()

    def _pop(self) -> tuple[Key, float] | None:
        if self._live and self._live_in_a_row < _LIVE_IN_A_ROW:
            self._live_in_a_row += 1
            return self._live.pop()
        self._live_in_a_row = 0
        waiting = self._initial or self._live
        return waiting.pop() if waiting else None

    def done(self, key: Key) -> None:
        """Mark a key as done; if it changed meanwhile, queue it again."""
        self._working.pop(key, None)
        initial = self._again.pop(key, None)
        if initial is not None:
            self.adds -= 1  # it was counted when it was added
            self.add(key, initial=initial)

    async def _until_woken(self) -> None:
        waiting = asyncio.get_running_loop().create_future()
        self._idle.append(waiting)
        try:
            await waiting
        except asyncio.CancelledError:
            if not waiting.cancelled():  # woken and cancelled before it got the key: wake another
                self._wake_one()
            elif waiting in self._idle:
                self._idle.remove(waiting)
            raise

    def _wake_one(self) -> None:
        while self._idle:
            waiting = self._idle.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return

    def _take_due(self) -> None:
        """Queue the keys whose instant has come, and set the timer for the next."""
        now = self._now()
        passed = asyncio.get_running_loop().time()
        offset = now.timestamp() - passed
        if self._offset - offset > _CLOCK_SET_BACK:  # an instant chosen by a wrong clock may be a year away
            for key in self._instants.take_all():
                self.add(key, initial=True)
        self._offset = offset
        for key in (*self._instants.take(now), *self._backoffs.take(passed)):
            self.add(key)
        self._set_timer()

    def _set_timer(self) -> None:
        """Set the timer for the next instant, but check the wall clock at least every `clock_check` seconds."""
        loop = asyncio.get_running_loop()
        waits = []
        if (instant := self._instants.next()) is not None:
            waits.append(min((instant - self._now()).total_seconds(), self._clock_check))
        if (end := self._backoffs.next()) is not None:
            waits.append(end - loop.time())
        if not waits:
            return
        due = loop.time() + min(waits)
        if self._timer is None or due < self._timer.when():
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_at(due, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._idle:  # otherwise the next free worker does it; a follower has no workers
            self._take_due()
