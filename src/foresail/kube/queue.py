"""What is to be looked at next: each key once, never by two workers at a time, and no tenant before the others.

Two lines wait: live changes, and behind them what was there at the start. In each the namespaces take turns, so
that ten thousand objects of one tenant do not delay the first of another. A key can also wait for an instant, or
for its back-off after a failure.
"""

import asyncio
import heapq
from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import datetime, timedelta

from foresail.plan import Key

_FIRST_BACKOFF, _LONGEST_BACKOFF = 0.2, 60.0
_LOOK_AT_THE_CLOCK = 1.0  # seconds; the wall clock may be set while we wait for it


class _Line:
    """Keys in the order of their coming, the namespaces taking turns."""

    __slots__ = ("_by_namespace", "_since")

    def __init__(self) -> None:
        self._by_namespace: OrderedDict[str, deque[Key]] = OrderedDict()
        self._since: dict[Key, float] = {}

    def __len__(self) -> int:
        return len(self._since)

    def __contains__(self, key: Key) -> bool:
        return key in self._since

    def push(self, key: Key, now: float) -> None:
        if key not in self._since:
            self._since[key] = now
            self._by_namespace.setdefault(key.namespace, deque()).append(key)

    def pop(self) -> Key | None:
        while self._by_namespace:
            namespace, keys = self._by_namespace.popitem(last=False)
            key = keys.popleft()
            if keys:
                self._by_namespace[namespace] = keys  # to the end of the turn
            if self._since.pop(key, None) is not None:
                return key
        return None

    def drop(self, key: Key) -> None:
        self._since.pop(key, None)  # its place in the line is passed over when it comes up

    def age(self, now: float) -> float:
        return max((now - since for since in self._since.values()), default=0.0)


class Queue:
    """Hands out keys to any number of workers of one event loop."""

    def __init__(self, now: Callable[[], datetime], *, look_at_the_clock: float = _LOOK_AT_THE_CLOCK) -> None:
        self._now = now
        self._look = look_at_the_clock
        self._live, self._initial = _Line(), _Line()
        self._working: set[Key] = set()
        self._again: set[Key] = set()  # changed while being worked on
        self._due: dict[Key, datetime] = {}
        self._timers: list[tuple[datetime, Key]] = []
        self._failures: dict[Key, int] = {}
        self._ready = asyncio.Event()

    def __len__(self) -> int:
        return len(self._live) + len(self._initial)

    @property
    def waiting_for_an_instant(self) -> int:
        """How many keys wait for an instant."""
        return len(self._due)

    def age(self) -> float:
        """Return how many seconds the oldest key has waited for a worker."""
        now = asyncio.get_running_loop().time()
        return max(self._live.age(now), self._initial.age(now))

    def add(self, key: Key, *, initial: bool = False) -> None:
        """Ask for a look at a key: soon, or after all live changes if it was just read for the first time."""
        if key in self._working:
            self._again.add(key)
            return
        now = asyncio.get_running_loop().time()
        if initial:
            if key not in self._live:
                self._initial.push(key, now)
        else:
            self._initial.drop(key)
            self._live.push(key, now)
        self._ready.set()

    def add_at(self, key: Key, instant: datetime | None) -> None:
        """Ask for a look at a key at an instant, in place of any that was asked for before; None takes it back."""
        if instant is None:
            self._due.pop(key, None)
            return
        self._due[key] = instant
        heapq.heappush(self._timers, (instant, key))
        self._ready.set()

    def retry(self, key: Key) -> float:
        """Ask for another look after a failure, later each time; return after how many seconds."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        wait = min(_FIRST_BACKOFF * 2.0 ** min(failures - 1, 16), _LONGEST_BACKOFF)
        self.add_at(key, self._now() + timedelta(seconds=wait))
        return wait

    def succeeded(self, key: Key) -> None:
        """Forget the failures of a key."""
        self._failures.pop(key, None)

    async def get(self) -> Key:
        """Return the next key; it is nobody else's until `done` is called with it."""
        while True:
            wait = self._take_due()
            key = self._live.pop() or self._initial.pop()
            if key is not None:
                self._working.add(key)
                return key
            self._ready.clear()
            try:
                async with asyncio.timeout(wait):  # not wait_for: before Python 3.12 that can swallow a cancellation
                    await self._ready.wait()
            except TimeoutError:
                continue

    def done(self, key: Key) -> None:
        """Give a key back; if it changed meanwhile, it comes again."""
        self._working.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)
        elif len(self):
            self._ready.set()

    def _take_due(self) -> float | None:
        """Line up the keys whose instant has come; return how long to wait for the next, if there is one."""
        now = self._now()
        while self._timers:
            instant, key = self._timers[0]
            if self._due.get(key) != instant:
                heapq.heappop(self._timers)  # taken back, or asked for again at another instant
                continue
            if instant > now:
                return min((instant - now).total_seconds(), self._look)
            heapq.heappop(self._timers)
            del self._due[key]
            self.add(key)
        return None
