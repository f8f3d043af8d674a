"""Whose turn it is: Velero gets few tenants' objects at a time, and none that may still run at the next Schedule slot.

Everything here is rebuilt from stored objects after a restart. Whoever is allowed a turn and cannot use it, because a
write failed or a check is pending, is set aside: it takes its turn later and blocks no other.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from foresail.api import velero
from foresail.plan import Key, Plan
from foresail.selfservice.queue.fair_queue import UNKNOWN, FairQueue, PastHandOver
from foresail.selfservice.queue.interruptions import Interruptions
from foresail.selfservice.rows.velero import VeleroRow, glimpse


class Position(msgspec.Struct, frozen=True):
    """The position of a request in the queue, and when to report it if nothing else is reported."""

    number: int | None = None
    report_at: datetime | None = None  # None: at once


class Turn(msgspec.Struct, frozen=True):
    """Whether a request may be handed over to Velero now, and if not, what it waits for."""

    is_blocked: bool = False
    message: str = ""
    until: datetime | None = None  # when to reconcile again; None if an event does


GRACE = timedelta(seconds=10)
"""How long after a slot the scheduled Backup may take to appear."""

ALONE, BESIDE = 1.5, 3.0
"""Safety factors of an expected end: with nothing else in Velero, and behind other backups, whose errors add up."""

LONGEST_WAIT = timedelta(hours=1)
"""After that time without a hand-over, the next request is handed over despite Schedules."""

_UNOBSERVED = timedelta(seconds=60)  # an object not observed for that long after its creation was deleted at once
_FREE = Turn()

WINDOW = "window"
"""The controller that gives up hand-overs."""

NextSlot = Callable[[datetime], datetime | None]


def no_slots(_: datetime) -> None:
    """Return no slot: nothing is scheduled."""


def no_window() -> int:
    """Return 0: every request is handed over at once."""
    return 0


class Limits(msgspec.Struct, frozen=True):
    """The limits of the window; read again each time, because they may change."""

    window: Callable[[], int] = no_window
    restore_window: Callable[[], int] = no_window
    next_slot: NextSlot = no_slots


UNLIMITED = Limits()


class Window:
    """The queue of one kind of request before Velero, and what Velero has of it."""

    def __init__(
        self,
        window: Callable[[], int] = no_window,
        next_slot: NextSlot = no_slots,
        interruptions: Interruptions | None = None,
        *,
        of_restores: bool = False,
    ) -> None:
        self._interruptions = interruptions or Interruptions()
        self._of_restores = of_restores
        self.queue = FairQueue()
        self._window = window
        self._next_slot = next_slot
        self._in_velero: dict[str, VeleroRow] = {}  # tenants' objects that wait or run there
        self._handed_over: dict[str, tuple[str, datetime]] = {}  # handed over and not seen yet: namespace and instant
        self._left: set[str] = set()  # whose data is still moved, and whose duration is known
        self._aside = self.queue.aside
        self._scheduled: dict[str, datetime] = {}  # Backups of Schedules that wait or run in Velero: their creation
        self._last_run: tuple[datetime, datetime] | None = None  # the end and the creation of the one that ended last
        self._last_turn: datetime | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether there is a window at all."""
        return self._window() > 0

    @property
    def room(self) -> int:
        """How many more objects Velero may get."""
        return max(self._window() - len(self._in_velero.keys() | self._handed_over.keys()), 0)

    @property
    def _share(self) -> int:
        """How many objects Velero gets while they are all of one namespace: the last turn is for whoever comes next."""
        return max(self._window() - 1, 1)

    def _taken(self, namespace: str) -> int:
        """Return how many objects of a namespace Velero has, or is about to have."""
        handed_over = {name for name, (of, _) in self._handed_over.items() if of == namespace}
        rows = self._in_velero.items()
        return len(
            handed_over | {name for name, row in rows if row.owner is not None and row.owner.namespace == namespace}
        )

    # State

    def enter(self, name: str, key: Key, created: datetime) -> None:
        """Take a request that is accepted and has no Velero object yet."""
        if name not in self._handed_over:
            self.queue.enter(name, key, created)
            self._aside.discard(name)

    def reserve(self, name: str, key: Key, created: datetime) -> None:
        """Add a request whose acceptance is being written: it has a rank, but no turn yet."""
        if name not in self.queue and name not in self._handed_over:
            self.queue.enter(name, key, created)
            self._aside.add(name)

    def leave(self, name: str) -> bool:
        """Remove a request that will not be handed over; return whether others have moved by it.

        One that is being handed over keeps its turn until its object is seen, could not be created or is given up.
        """
        self._aside.discard(name)
        if not self.queue.leave(name):
            return False
        self._rest()
        return True

    def observe(self, row: VeleroRow, old: VeleroRow | None, initial: bool) -> bool:  # noqa: FBT001 - as a Change says
        """Take the state of a Velero object; return whether a turn may have become free."""
        name = row.key.name
        if row.is_terminal and (old is None or not old.is_terminal):
            self._note_interruption(row)
        if row.is_scheduled:
            return self._observe_scheduled(row, old)
        if row.owner is None or not row.request_uid:
            return False
        if old is None:
            self._observe_new(row, initial=initial)
        is_recent = not initial or self.queue.is_recent(row.owner.namespace, row.created)
        if is_recent and row.is_terminal and (old is None or not old.is_terminal):
            self._note_end(row)
        if row.is_queued:
            self._in_velero[name] = row
            return False
        return self._end(name, initial=initial)

    def remove(self, name: str) -> bool:
        """Record that a Velero object is deleted; return whether a turn may have become free."""
        created = self._scheduled.pop(name, None)
        if created is not None:
            self._note_run(created, created)
        self._left.discard(name)
        self.queue.settle("", name, None)
        return self._end(name, initial=False) or created is not None

    def _end(self, name: str, *, initial: bool) -> bool:
        had = self._in_velero.pop(name, None) is not None
        if had and not initial:  # waiting requests may not be read yet
            self._rest()
        return had

    def _observe_new(self, row: VeleroRow, *, initial: bool) -> None:
        name = row.key.name
        namespace = row.owner.namespace if row.owner is not None else ""
        self._last_turn = max(self._last_turn or row.created, row.created)
        self._aside.discard(name)
        self.queue.leave(name)
        if self._handed_over.pop(name, None) is not None:
            self._in_velero[name] = row  # it has had a turn, even if it has ended before it is seen
            return
        if not initial:
            self.queue.pay(namespace, name)  # another process handed it over
        elif self.queue.is_recent(namespace, row.created):
            self._recall(row, namespace)

    def _recall(self, row: VeleroRow, namespace: str) -> None:
        status = glimpse(row.mirror)
        began = status.start_timestamp
        end = status.completion_timestamp
        if began is None or end is None:
            if row.is_queued:
                self.queue.recall(PastHandOver(row.created, row.key.name, namespace))
        elif began >= row.created - timedelta(seconds=1):  # else Velero found it in the bucket
            seconds = (end - began).total_seconds()
            self.queue.recall(PastHandOver(row.created, row.key.name, namespace, seconds, end))

    def note_left(self, row: VeleroRow, now: datetime) -> None:
        """Record that an object has just left Velero's queue; if only its data still moves, its duration is known."""
        if row.phase not in velero.AFTER_THE_QUEUE or not row.request_uid:
            return
        began = glimpse(row.mirror).start_timestamp
        if began is not None:
            self._left.add(row.key.name)
            self._note_duration(row, began, now)

    def _note_end(self, row: VeleroRow) -> None:
        status = glimpse(row.mirror)
        began = status.start_timestamp
        end = status.completion_timestamp
        if row.key.name in self._left:
            self._left.discard(row.key.name)
        elif began is not None and end is not None:
            self._note_duration(row, began, end)

    def _note_duration(self, row: VeleroRow, began: datetime, end: datetime) -> None:
        if row.owner is not None:
            seconds = (end - began).total_seconds()
            self.queue.note_duration(row.owner.namespace, began, seconds)
            self.queue.settle(row.owner.namespace, row.key.name, seconds)

    def _note_interruption(self, row: VeleroRow) -> None:
        """Bar the namespace of what Velero did not survive: it may be dying of it, and then nobody is served."""
        if self._interruptions.note(row) and row.owner is not None and self._barred_until(row.owner.namespace):
            self.queue.barred.add(row.owner.namespace)

    def _barred_until(self, namespace: str) -> datetime | None:
        return self._interruptions.barred_until(namespace, restores=self._of_restores)

    def _pause_of(self, namespace: str, now: datetime) -> datetime | None:
        """Return until when a namespace waits; None, and it does not any longer."""
        until = self._barred_until(namespace) if namespace in self.queue.barred else None
        if until is None or until <= now:
            self.queue.barred.discard(namespace)
            return None
        return until

    def _observe_scheduled(self, row: VeleroRow, old: VeleroRow | None) -> bool:
        if row.is_queued:
            self._scheduled[row.key.name] = row.created
            return False
        had = self._scheduled.pop(row.key.name, None) is not None
        if had or old is None:
            status = glimpse(row.mirror)
            self._note_run(status.completion_timestamp or status.start_timestamp or row.created, row.created)
        return had

    def _note_run(self, end: datetime, created: datetime) -> None:
        self._last_run = max(self._last_run or (end, created), (end, created))

    def _rest(self) -> None:
        if not (self.queue or self._in_velero or self._handed_over):
            self.queue.rest()

    # Turns

    def next_names(self) -> list[str]:
        """Return who would be handed over now, as far as Velero has room."""
        if not self.queue:
            return []
        room = self.room
        alone = self.queue.alone
        if alone is not None:
            room = min(room, self._share - self._taken(alone))
        if room <= 0:
            return []
        first = self.queue.first(room + len(self._aside))
        return [name for name in first if name not in self._aside][:room]

    def turn(self, name: str, namespace: str, word: str, now: datetime) -> Turn:
        """Report whether a request that is accepted may be handed over now."""
        if name in self._handed_over or name not in self.queue:
            return _FREE
        until = self._pause_of(namespace, now)
        if until is not None:
            return Turn(is_blocked=True, message=_interrupted(word, until), until=until)
        if not self.is_bounded:
            return _FREE
        if not self.room or not self._may_go(name, namespace):
            return Turn(is_blocked=True, message=_waits(word))
        slot = self._slot_in_the_way(namespace, now)
        if slot is None:
            return _FREE
        text = f"The {word} would delay the scheduled backup at {slot:%H:%M} UTC; it starts automatically after that"
        return Turn(is_blocked=True, message=text, until=slot + GRACE)

    def _may_go(self, name: str, namespace: str) -> bool:
        """Whether a request is among the next ones, or was set aside and leaves the last turn to another namespace."""
        if name in self._aside:
            return self._taken(namespace) < self._share
        return name in self.next_names()

    def expected_turn(self, namespace: str, word: str) -> Turn:
        """Report whether a request that is being accepted will have to wait."""
        has_room = min(self.room, self._share - self._taken(namespace)) > 0
        if not self.is_bounded or (has_room and len(self.queue) == 0):
            return _FREE
        return Turn(is_blocked=True, message=_waits(word))

    def hand_over(self, name: str, namespace: str, now: datetime) -> None:
        """Record that the Velero object of a request is being created."""
        if name not in self._handed_over:
            if self.queue.leave(name):
                self.queue.pay(namespace, name)
            self._handed_over[name] = namespace, now
            self._last_turn = max(self._last_turn or now, now)
        self._aside.discard(name)

    def set_aside(self, name: str) -> None:
        """Record that a request had a turn and could not use it."""
        if name in self.queue:
            self._aside.add(name)

    def release(self, name: str, key: Key, created: datetime, *, is_over: bool = False) -> bool:
        """Record that a Velero object could not be created; return whether others can go meanwhile.

        Its request waits again, unless it is over: deleted, or about to be.
        """
        if name not in self._handed_over:
            return False
        if not is_over:
            self.queue.enter(name, key, created)
            self._aside.add(name)
        self._drop(name)
        return True

    def _drop(self, name: str) -> None:
        """End a hand-over that came to nothing; if its object appears nevertheless, it is charged then."""
        namespace, _ = self._handed_over.pop(name)
        self.queue.refund(namespace, name)
        self._rest()

    def rejoin(self, name: str) -> None:
        """Record that a request was set aside and finds no room: it waits for its turn in order again."""
        if name in self._aside and (not self.room or not self._may_go(name, self.queue.key(name).namespace)):
            self._aside.discard(name)

    def expire(self, now: datetime) -> bool:
        """Give up what was handed over and never seen; return whether a turn may have become free."""
        lost = [name for name, (_, since) in self._handed_over.items() if since + _UNOBSERVED <= now]
        for name in lost:
            self._drop(name)
        return bool(lost)

    def next_expiry(self, now: datetime) -> datetime | None:
        """Return when a hand-over whose object was never observed is given up; None if there is none."""
        if not self.is_bounded:
            return None
        return min((at for _, since in self._handed_over.values() if (at := since + _UNOBSERVED) > now), default=None)

    # Slots of Schedules

    def _slot_in_the_way(self, namespace: str, now: datetime) -> datetime | None:
        """Return the next slot if a backup that is handed over now may still run at it."""
        slot = self._next_slot(now - GRACE)
        if slot is None:
            return None
        before = sum(self._remaining(row, now) for row in self._in_velero.values())
        before += sum(self._expected(other) for other, _ in self._handed_over.values())
        seconds = (before + self._expected(namespace)) * (BESIDE if before else ALONE)
        if now + timedelta(seconds=seconds) <= slot or self._is_owed(now):
            return None
        return slot

    def _is_owed(self, now: datetime) -> bool:
        """Whether a request has waited through a whole scheduled run, or too long, without any hand-over since."""
        oldest = self.queue.oldest
        last = self._last_turn
        if oldest is None:
            return False
        if self._last_run is not None and not (
            self._in_velero or self._handed_over
        ):  # a slot is delayed by one at most
            end, created = self._last_run
            if oldest <= created and (last is None or last < end):
                return True
        return oldest < now - LONGEST_WAIT and (last is None or last < now - LONGEST_WAIT)

    def _expected(self, namespace: str) -> float:
        """Return how long a backup of a namespace may take, in seconds; one that never ran may be slower than most."""
        return self.queue.duration(namespace) or max(UNKNOWN, 2 * self.queue.typical)

    def _remaining(self, row: VeleroRow, now: datetime) -> float:
        expected = self._expected(row.owner.namespace if row.owner is not None else "")
        began = glimpse(row.mirror).start_timestamp
        if began is None:
            return expected
        elapsed = max((now - began).total_seconds(), 0.0)
        return max(expected - elapsed, elapsed / 2 if elapsed > expected else 0.0)


class WindowView(msgspec.Struct, frozen=True):
    """When the next hand-over of a family is given up: nothing else would tell that a turn has become free."""

    plural: str  # of the requests
    next_expiry: datetime | None


def decide(view: WindowView, _: datetime) -> Plan:
    """Return the Plan that wakes when a hand-over is to be given up."""
    return Plan(wake_at=view.next_expiry)


def _interrupted(word: str, until: datetime) -> str:
    text = f"Velero ended while it ran {word}s of this namespace; the next one starts at {until:%d %b %H:%M} UTC"
    return f"{text}. Ask a cluster administrator whether Velero has enough memory"


def _waits(word: str) -> str:
    return f"The {word} waits in the queue and starts automatically"
