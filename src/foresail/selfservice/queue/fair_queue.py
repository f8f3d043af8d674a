"""Start-time fair queueing over namespaces: who is handed over to Velero next, and at which rank each request waits.

Each namespace has a virtual start: the share of Velero's time that it has used, divided by its weight. The lowest goes
next and pays the duration of its last backup. Numbers are integers, so equal shares compare as equal.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from datetime import UTC, datetime
from heapq import heapify, heappop, heappush, heappushpop, heapreplace
from itertools import islice
from statistics import median

import msgspec

from foresail.plan import Key

UNKNOWN = 60.0
"""Seconds that a backup is expected to take in a cluster where none has finished yet."""

REMEMBERED = 2_000
"""How many hand-overs are replayed after a restart."""

_SHORTEST = 1.0  # seconds: Velero's timestamps have whole seconds
_UNIT = 720_720  # divisible by the small weights, so that their shares are exact
_NEVER = datetime.max.replace(tzinfo=UTC)
_PAUSE = 5.0  # seconds between two hand-overs of one busy period, at most

Order = tuple[datetime, str]


class PastHandOver(msgspec.Struct, frozen=True, order=True):
    """A hand-over of the past: when, of which request, how long it took and when it ended."""

    at: datetime
    name: str
    namespace: str
    seconds: float = 0.0  # 0 while it runs
    end: datetime = _NEVER


class FairQueue:
    """The requests of one kind that wait, and how much of Velero's time each namespace has used."""

    def __init__(self) -> None:
        self.aside: set[str] = set()  # requests that cannot be handed over now; they block no other
        self.barred: set[str] = set()  # namespaces of which none can
        self._keys: dict[str, tuple[Key, Order]] = {}
        self._backlogs: dict[str, list[Order]] = {}
        self._weights: dict[str, int] = {}
        self._durations: dict[str, tuple[datetime, float]] = {}
        self._starts: dict[str, int] = {}  # the virtual start of each namespace's next request
        self._virtual = 0
        self._charged: dict[str, int] = {}  # by the name of what was handed over and has not ended
        self._steps: dict[str, int] = {}  # the cost of a hand-over of each namespace; filled on demand
        self._typical = UNKNOWN
        self._past: list[PastHandOver] = []  # a heap, until it is replayed

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, name: str) -> bool:
        return name in self._keys

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def key(self, name: str) -> Key:
        """Return the key of a request that waits."""
        return self._keys[name][0]

    @property
    def namespaces(self) -> list[str]:
        """The namespaces that have requests waiting."""
        return list(self._backlogs)

    @property
    def alone(self) -> str | None:
        """The only namespace with requests that can go; None if there are others."""
        able = list(islice(filter(self._can_go, self._backlogs), 2))
        return able[0] if len(able) == 1 else None

    @property
    def oldest(self) -> datetime | None:
        """The creation time of the oldest request that waits and is not barred."""
        able = (backlog for namespace, backlog in self._backlogs.items() if namespace not in self.barred)
        return min((backlog[0][0] for backlog in able), default=None)

    # Requests

    def enter(self, name: str, key: Key, created: datetime) -> None:
        """Add a request, unless it waits already."""
        if name not in self._keys:
            self._keys[name] = key, (created, name)
            insort(self._backlogs.setdefault(key.namespace, []), (created, name))

    def leave(self, name: str) -> bool:
        """Remove a request; return whether it waited."""
        place = self._keys.pop(name, None)
        if place is None:
            return False
        key, order = place
        backlog = self._backlogs[key.namespace]
        del backlog[bisect_left(backlog, order)]
        if not backlog:
            del self._backlogs[key.namespace]
        return True

    # Shares

    def set_weight(self, namespace: str, weight: int) -> None:
        """Set the share of a namespace, relative to others."""
        self._weights[namespace] = weight
        self._steps.pop(namespace, None)

    def note_duration(self, namespace: str, began: datetime, seconds: float) -> None:
        """Note how long a backup took; the newest one counts."""
        known = self._durations.get(namespace)
        if known is None or known[0] <= began:
            self._durations[namespace] = began, max(seconds, _SHORTEST)
            self._typical = 0.0
            self._steps.clear()

    def duration(self, namespace: str) -> float | None:
        """Return how long the last backup of a namespace took, in seconds."""
        known = self._durations.get(namespace)
        return known[1] if known is not None else None

    @property
    def typical(self) -> float:
        """The median duration over all namespaces, in seconds."""
        if not self._typical:
            self._typical = median(seconds for _, seconds in self._durations.values())
        return self._typical

    def forget(self, namespace: str) -> None:
        """Forget a namespace that was deleted."""
        for known in (self._weights, self._starts, self._steps):
            known.pop(namespace, None)
        if self._durations.pop(namespace, None) is not None:
            self._typical = 0.0 if self._durations else UNKNOWN

    def pay(self, namespace: str, name: str = "") -> None:
        """Charge a namespace for one hand-over, by the duration that is expected; once for each name."""
        self.replay()
        if name in self._charged:
            return
        step = self._step(namespace)
        self._charge(namespace, step)
        if name:
            self._charged[name] = step

    def settle(self, namespace: str, name: str, seconds: float | None) -> None:
        """Correct the charge of a hand-over to the duration that it had; None if nothing is known of it."""
        step = self._charged.pop(name, None)
        if step is not None and seconds is not None and namespace in self._starts:
            self._starts[namespace] += self._cost(namespace, seconds) - step

    def refund(self, namespace: str, name: str) -> None:
        """Take back the charge of a hand-over that failed."""
        step = self._charged.pop(name, None)
        if step is not None and namespace in self._starts:
            self._starts[namespace] -= step

    def rest(self) -> None:
        """Reset the shares: nothing waits and nothing runs."""
        self._starts.clear()
        self._charged.clear()
        self._past.clear()
        self._virtual = 0

    def is_recent(self, namespace: str, at: datetime) -> bool:
        """Whether a hand-over at that instant may be among the newest ones, of all or of its namespace."""
        known = self._durations.get(namespace)
        return len(self._past) < REMEMBERED or at > self._past[0].at or known is None or known[0] <= at

    def recall(self, past: PastHandOver) -> None:
        """Take a hand-over that was found after a restart."""
        if len(self._past) < REMEMBERED:
            heappush(self._past, past)
        else:
            heappushpop(self._past, past)

    # Questions

    def rank(self, namespace: str, order: Order) -> int:
        """Return how many requests go before this one, which need not wait yet; costs a step per namespace."""
        place = bisect_left(self._backlogs.get(namespace, []), order)
        (virtual, starts), steps, barred = self._shares(), self._steps, self.barred
        start = max(virtual, starts.get(namespace, 0)) + place * self._step(namespace)
        for other, backlog in self._backlogs.items():  # the one loop over all namespaces, so nothing is called in it
            ahead = start - max(virtual, starts.get(other, 0))
            if ahead >= 0 and other != namespace and other not in barred:
                whole, part = divmod(ahead, steps.get(other) or self._step(other))
                place += min(whole + (part > 0 or other < namespace), len(backlog))  # of equals the first by name
        return place

    def first(self, count: int) -> list[str]:
        """Return the names of those that go next, in their order."""
        virtual, starts = self._shares()
        able = self._backlogs.keys() - self.barred if self.barred else self._backlogs
        line = [(max(virtual, starts.get(namespace, 0)), namespace, 0) for namespace in able]
        heapify(line)
        names: list[str] = []
        while line and len(names) < count:
            start, namespace, place = line[0]
            backlog = self._backlogs[namespace]
            names.append(backlog[place][1])
            following = start + self._step(namespace) if place + 1 < len(backlog) else None
            if following is None:
                heappop(line)
            else:
                heapreplace(line, (following, namespace, place + 1))
        return names

    # Virtual time

    def _start(self, namespace: str) -> int:
        return max(self._virtual, self._starts.get(namespace, 0))

    def _step(self, namespace: str) -> int:
        step = self._steps.get(namespace)
        if step is None:
            step = self._steps[namespace] = self._cost(namespace, self.duration(namespace) or self.typical)
        return step

    def _cost(self, namespace: str, seconds: float) -> int:
        return round(max(seconds, _SHORTEST) * 1000) * _UNIT // self._weights.get(namespace, 1)

    def _charge(self, namespace: str, step: int) -> None:
        start = self._start(namespace)
        self._starts[namespace] = start + step
        others = (other for other in self._backlogs if other != namespace and self._can_go(other))
        lowest = min(map(self._start, others), default=start)
        self._virtual = max(self._virtual, min(start, lowest))

    def _can_go(self, namespace: str) -> bool:
        return namespace not in self.barred and any(name not in self.aside for _, name in self._backlogs[namespace])

    def replay(self) -> None:
        """Charge the hand-overs of the busy period that was under way when this process started."""
        if self._past:
            self._virtual, self._starts = self._shares()
            self._past = []

    def _shares(self) -> tuple[int, dict[str, int]]:
        """Return the virtual time and the virtual starts as they are once everything is replayed."""
        if not self._past:
            return self._virtual, self._starts
        past = sorted(self._past)
        begin = 0
        end = past[0].at
        for number, hand_over in enumerate(past):
            if (hand_over.at - end).total_seconds() > _PAUSE:
                begin = number
            end = max(end, hand_over.end)
        oldest = self.oldest or _NEVER
        if end < _NEVER and (oldest - end).total_seconds() > _PAUSE:
            return self._virtual, self._starts  # it had ended before any request waited
        virtual = self._virtual
        starts = dict(self._starts)
        for hand_over in past[begin:]:
            virtual = max(virtual, starts.get(hand_over.namespace, 0))
            starts[hand_over.namespace] = virtual + self._cost(hand_over.namespace, hand_over.seconds or self.typical)
        return virtual, starts
