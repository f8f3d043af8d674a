"""Velero's queue as tenants see it: the position of each request, and when a change of it is reported.

Position 0 is done, 1 runs, and a waiting request has as many before it as its number says. Velero numbers those that
wait since 1.18; for older ones the order in which they came is kept here. No question costs more than a search in a
sorted list, however long the queue is.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec

NEAR = 20
"""Positions up to this one are reported at once."""

LATEST = timedelta(seconds=30)
PART = 0.1
"""Farther ones are reported when they differ by this part, or after that long."""

BYTES_EVERY = timedelta(seconds=5)
"""Bytes of volumes alone are written so long after the last write of the same status at the earliest.

Velero reports those of each volume every ten seconds, and a backup may move many volumes at once.
"""

PER_SECOND = 16
"""At most so many farther ones are reported in a second; with those that are under way it stays below 20."""

Order = tuple[float, int, str]


class _Entry(msgspec.Struct):
    order: Order
    is_running: bool = False
    is_waiting: bool = True
    number: int = 0  # Velero's own, of those that wait


class VeleroQueue:
    """What Velero works on or has yet to work on, in order of arrival."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._waiting: list[Order] = []
        self._running = 0
        self._came = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def enter(self, name: str, since: datetime | None = None) -> None:
        """Let one in that waits: at the end, or if it was found waiting, where it belongs by its age."""
        if name in self._entries:
            return
        self._came += 1
        order = (float("inf"), self._came, name) if since is None else (since.timestamp(), 0, name)
        self._entries[name] = _Entry(order)
        insort(self._waiting, order)

    def change(self, name: str, *, is_waiting: bool, is_running: bool, number: int) -> bool:
        """Take Velero's report of one; return whether other positions have changed."""
        entry = self._entries[name]
        moved = (entry.is_waiting, entry.is_running) != (is_waiting, is_running)
        if entry.is_waiting and not is_waiting:
            del self._waiting[bisect_left(self._waiting, entry.order)]
        elif is_waiting and not entry.is_waiting:
            insort(self._waiting, entry.order)
        self._running += is_running - entry.is_running
        entry.is_waiting = is_waiting
        entry.is_running = is_running
        entry.number = number
        return moved

    def leave(self, name: str) -> bool:
        """Remove one that is done or deleted; return whether it was there, so that other positions have changed."""
        if name not in self._entries:
            return False
        self.change(name, is_waiting=False, is_running=False, number=0)
        del self._entries[name]
        return True

    def position(self, name: str) -> int:
        """Return a position: 0 if it is done, 1 once it has begun."""
        entry = self._entries.get(name)
        if entry is None:
            return 0
        if not entry.is_waiting:
            return 1
        number = entry.number or bisect_left(self._waiting, entry.order) + 1
        return self._running + number

    @property
    def last(self) -> int:
        """The position of one that would enter now."""
        return self._running + len(self._waiting) + 1

    def first(self, count: int = NEAR) -> Iterator[str]:
        """Return those that wait at the front."""
        for order in self._waiting[:count]:
            yield order[-1]

    def rest(self, count: int = NEAR) -> Iterator[str]:
        """Return those that wait behind them."""
        for order in self._waiting[count:]:
            yield order[-1]


class PositionReports:
    """When positions were and will be reported: a long queue that moves must not cause a storm of writes."""

    def __init__(self) -> None:
        self._reported: dict[str, datetime] = {}
        self._slots: dict[str, datetime] = {}
        self._taken: dict[int, int] = {}  # how many are reported in each second to come
        self._beyond: dict[int, int] = {}  # of each second that is full, a later one before which none has room

    def when(self, name: str, shown: int | None, position: int, now: datetime) -> datetime | None:
        """Return when a new position is to be reported, to be booked; None for at once."""
        if shown is None or position <= NEAR:
            return None
        slot = self._slots.get(name)
        if slot is None:
            since = self._reported.get(name, now - LATEST)
            return self._free_slot(now if abs(shown - position) >= PART * shown else max(now, since + LATEST))
        # One that has missed its own gets another: where the work is late, many would come together.
        if _second(slot) < _second(now):
            return now if self._taken.get(_second(now), 0) < PER_SECOND else self._free_slot(now)
        return slot

    def book(self, name: str, at: datetime, now: datetime) -> None:
        """Reserve the instant that `when` returned; the next caller gets another."""
        if self._slots.get(name) == at:
            return
        for passing in (self._taken, self._beyond):
            while passing and (first := next(iter(passing))) < _second(now):
                del passing[first]
        self._slots[name] = at
        second = _second(at)
        self._taken[second] = self._taken.get(second, 0) + 1
        if self._taken[second] >= PER_SECOND:
            self._beyond[second] = second + 1

    def reported(self, name: str, now: datetime) -> None:
        """Note that a position was written."""
        self._reported[name] = now
        self._slots.pop(name, None)

    def bytes_at(self, name: str) -> datetime | None:
        """Return when bytes alone may be written; None for at once."""
        reported = self._reported.get(name)
        return reported + BYTES_EVERY if reported is not None else None

    def is_booked(self, name: str) -> bool:
        """Whether one has an instant at which it will be reported."""
        return name in self._slots

    def forget(self, name: str) -> None:
        """Forget one that has left."""
        self._reported.pop(name, None)
        self._slots.pop(name, None)

    def _free_slot(self, due: datetime) -> datetime:
        """Return the first instant from then on in whose second not too many are reported."""
        second = self._with_room(_second(due) + 1)
        return datetime.fromtimestamp(second, UTC) + timedelta(seconds=self._taken.get(second, 0) / PER_SECOND)

    def _with_room(self, second: int) -> int:
        """Return the first second from then on with room; thousands that ask in turn do not count them all again."""
        full = []
        while second in self._beyond:
            full.append(second)
            second = self._beyond[second]
        for before in full:  # a shorter way to the same answer
            self._beyond[before] = second
        return second


def _second(at: datetime) -> int:
    return int(at.timestamp())
