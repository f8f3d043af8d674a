"""What is to be looked at next: each key once, never by two workers at a time, and no tenant before the others.

Two lines wait: live changes, and behind them what was there at the start; of ten keys one comes from there, so that
changes without end do not keep it waiting for ever. In each the namespaces take turns, so that ten thousand objects
of one tenant do not delay the first of another. A key can also wait for an instant of the wall clock, or for its
back-off after a failure: that one is measured on the clock that nobody can set, and spread by chance.
Each key that comes wakes one worker, and no worker wakes for an instant before it has come.
"""

import asyncio
import heapq
import random
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Generic, TypeVar

from foresail.plan import Key

_FIRST_BACKOFF, _LONGEST_BACKOFF = 0.2, 60.0
_SPREAD = 0.25  # by how much a back-off is longer at most, so that keys that failed together come back one by one
_LIVE_IN_A_ROW = 9
_SPARE = 64  # places in order that may stand for nothing
CLOCK_CHECK_SECONDS = 1.0  # seconds; the wall clock may be set while we wait for it
_SET_BACK = 60.0  # seconds by which the wall clock must step back for every instant to be decided anew


class _Line:
    """Keys in the order of their coming, the namespaces taking turns; each with the time at which it came."""

    __slots__ = ("_by_namespace", "_length")

    def __init__(self) -> None:
        self._by_namespace: OrderedDict[str, OrderedDict[Key, float]] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __contains__(self, key: Key) -> bool:
        return key in self._by_namespace.get(key.namespace, ())

    def push(self, key: Key, now: float) -> None:
        keys = self._by_namespace.get(key.namespace)
        if keys is None:
            keys = self._by_namespace[key.namespace] = OrderedDict()
        if key not in keys:
            keys[key] = now
            self._length += 1

    def pop(self) -> tuple[Key, float] | None:
        """Return the next key, and when it came."""
        if not self._by_namespace:
            return None
        namespace, keys = self._by_namespace.popitem(last=False)
        found = keys.popitem(last=False)
        self._length -= 1
        if keys:
            self._by_namespace[namespace] = keys  # to the end of the turn
        return found

    def drop(self, key: Key) -> None:
        keys = self._by_namespace.get(key.namespace)
        if keys is not None and keys.pop(key, None) is not None:
            self._length -= 1
            if not keys:
                del self._by_namespace[key.namespace]

    def age(self, now: float) -> float:
        # In a namespace the oldest is the first.
        return max((now - next(iter(keys.values())) for keys in self._by_namespace.values()), default=0.0)

    def oldest(self) -> Iterator[tuple[float, Key]]:
        """Return the oldest key of each namespace, and when it came."""
        for keys in self._by_namespace.values():
            key, since = next(iter(keys.items()))
            yield since, key


Instant = TypeVar("Instant", datetime, float)


class _Agenda(Generic[Instant]):
    """Keys that wait for an instant, each for one at most."""

    __slots__ = ("_due", "_order")

    def __init__(self) -> None:
        self._due: dict[Key, Instant] = {}
        self._order: list[tuple[Instant, Key]] = []

    def __len__(self) -> int:
        return len(self._due)

    def put(self, key: Key, instant: Instant) -> None:
        if self._due.get(key) == instant:
            return  # as at most looks: what was asked for stands
        self._due[key] = instant
        heapq.heappush(self._order, (instant, key))
        if len(self._order) > _SPARE + 2 * len(self._due):
            # Most of it was taken back or moved. An instant may be a month away, so what waits for it goes now.
            self._order = [(due, each) for each, due in self._due.items()]
            heapq.heapify(self._order)

    def drop(self, key: Key) -> None:
        self._due.pop(key, None)  # what is in order of it is passed over when it comes up

    def next(self) -> Instant | None:
        while self._order and self._due.get(self._order[0][1]) != self._order[0][0]:
            heapq.heappop(self._order)  # taken back, or asked for again at another instant
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
        self.attended_since = 0.0  # when the workers came, by the loop's clock: nobody waits for them before
        self.waited: Callable[[float], None] = lambda _: None  # takes how many seconds a key has waited for a worker
        self._now = now
        self._jitter = jitter  # from 0 to 1
        self._look = clock_check
        self._live, self._initial = _Line(), _Line()
        self._live_in_a_row = 0
        self._working: dict[Key, float] = {}  # and since when
        self._again: set[Key] = set()  # changed while being worked on
        self._instants = _Agenda[datetime]()
        self._backoffs = _Agenda[float]()
        self._failures: dict[Key, int] = {}
        self._idle: deque[asyncio.Future[None]] = deque()  # one for each worker that waits, the longest first
        self._alarm: asyncio.TimerHandle | None = None
        self._offset = 0.0  # seconds of the wall clock before the loop's, which nobody can set

    def __len__(self) -> int:
        return len(self._live) + len(self._initial)

    @property
    def waiting_for_an_instant(self) -> int:
        """How many keys wait for an instant, or for their back-off."""
        return len(self._instants) + len(self._backoffs)

    def contents(self, most: int) -> dict[str, object]:
        """Describe what waits, for whoever debugs it; of keys, so many at most."""
        now = asyncio.get_running_loop().time()
        oldest = heapq.nsmallest(most, (*self._live.oldest(), *self._initial.oldest()))
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
        """Return for how many seconds each key has been worked on that is not done."""
        now = asyncio.get_running_loop().time()
        return [now - since for since in self._working.values()]

    def age(self) -> float:
        """Return how many seconds the oldest key has waited for a worker."""
        now = asyncio.get_running_loop().time()
        return max(self._live.age(now), self._initial.age(now))

    def add(self, key: Key, *, initial: bool = False) -> None:
        """Ask for a look at a key: soon, or after live changes if it is read for the first time or may wait."""
        if key in self._working:
            self.adds += key not in self._again
            self._again.add(key)
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
        """Ask for a look at a key at an instant, in place of any that was asked for before; None takes it back."""
        self._backoffs.drop(key)
        if instant is None:
            self._instants.drop(key)
            return
        self._instants.put(key, instant)
        self._set_alarm()

    def add_after(self, key: Key, seconds: float) -> None:
        """Ask for a look at a key after so many seconds, whatever is done to the wall clock meanwhile.

        It takes the place of any instant that was asked for before: the look will say when the next is to be.
        """
        self._instants.drop(key)
        self._backoffs.put(key, asyncio.get_running_loop().time() + seconds)
        self._set_alarm()

    def retry(self, key: Key, at_least: float = 0.0) -> float:
        """Ask for another look after a failure, later each time; return after how many seconds."""
        self.retries += 1
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        wait = min(max(_FIRST_BACKOFF * 2.0 ** min(failures - 1, 16), at_least), _LONGEST_BACKOFF)
        return self.back_off(key, wait)

    def back_off(self, key: Key, seconds: float) -> float:
        """Ask for a look at a key after that time and up to a quarter more; return after how many seconds."""
        wait = seconds * (1 + _SPREAD * self._jitter())
        self.add_after(key, wait)
        return wait

    def succeeded(self, key: Key) -> None:
        """Forget the failures of a key."""
        self._failures.pop(key, None)

    def forget(self, key: Key) -> None:
        """Let go of a key about which there is nothing to decide, whatever was asked for."""
        for waits in (self._live, self._initial, self._instants, self._backoffs):
            waits.drop(key)
        self._failures.pop(key, None)

    async def get(self) -> Key:
        """Return the next key; it is nobody else's until `done` is called with it."""
        while True:
            self._take_due()
            found = self._pop()
            if found is not None:
                key, since = found
                now = self._working[key] = asyncio.get_running_loop().time()
                self.waited(now - max(since, self.attended_since))
                return key
            await self._until_woken()

    def _pop(self) -> tuple[Key, float] | None:
        if self._live_in_a_row < _LIVE_IN_A_ROW and (found := self._live.pop()) is not None:
            self._live_in_a_row += 1
            return found
        self._live_in_a_row = 0
        return self._initial.pop() or self._live.pop()

    def done(self, key: Key) -> None:
        """Give a key back; if it changed meanwhile, it comes again."""
        self._working.pop(key, None)
        if key in self._again:
            self._again.discard(key)
            self.adds -= 1  # it was counted when it was asked for
            self.add(key)

    async def _until_woken(self) -> None:
        waiting = asyncio.get_running_loop().create_future()
        self._idle.append(waiting)
        try:
            await waiting
        except asyncio.CancelledError:
            if not waiting.cancelled():  # woken, and told to end before it came for the key: another must
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
        """Line up the keys whose instant has come, and set the alarm for the next."""
        now, passed = self._now(), asyncio.get_running_loop().time()
        offset = now.timestamp() - passed
        if self._offset - offset > _SET_BACK:  # an instant that a wrong clock asked for may be a year away
            for key in self._instants.take_all():
                self.add(key, initial=True)
        self._offset = offset
        for key in (*self._instants.take(now), *self._backoffs.take(passed)):
            self.add(key)
        self._set_alarm()

    def _set_alarm(self) -> None:
        """See to it that the next instant is noticed when it comes, and the wall clock looked at until then."""
        loop, waits = asyncio.get_running_loop(), []
        if (instant := self._instants.next()) is not None:
            waits.append(min((instant - self._now()).total_seconds(), self._look))
        if (end := self._backoffs.next()) is not None:
            waits.append(end - loop.time())
        if not waits:
            return
        due = loop.time() + min(waits)
        if self._alarm is None or due < self._alarm.when():
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm = loop.call_at(due, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        if self._idle:  # else whoever has done its work looks for itself; on a follower there is nobody
            self._take_due()
