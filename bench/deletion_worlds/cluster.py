"""The cluster of a world: Backups, a bucket, a Velero that deletes by name, and everything that happens to them."""

import random
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bench.deletion_worlds.model import DAY, HOUR, MINUTE, Copy, Judge, Moment, Origin, Report

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
PHASES = ("Completed",) * 12 + ("PartiallyFailed",) * 3 + ("Failed",) * 2 + ("FailedValidation",)
ITEMS = (1000,) * 12 + (0, 5)
GRACES = {"0s": timedelta(), "24h": DAY, "72h": 3 * DAY}
OURS = "0f8fad5b-d9cb-469f-a165-70867728950e"
SHADOWS = "backup already exists in object storage"
ROUNDS = 40
"""Reconciles after an event: as many as a Plan with ten marks needs for hundreds of Backups."""

PEACE = 16
"""Steps of half a day at the end, in which nothing goes wrong."""


class Killed(Exception):  # noqa: N818 - not an error
    """The operator was killed between two writes."""


class Conflict(Exception):  # noqa: N818 - not an error
    """An object has changed since the operator read it."""


@dataclass
class Request:
    """A DeleteBackupRequest."""

    backup: str
    uid: str  # of the Backup
    made: datetime
    errors: tuple[str, ...] = ()
    ended: datetime | None = None


@dataclass
class State:
    """What is in etcd."""

    copies: dict[str, Copy]
    requests: dict[str, Request]
    schedule: object
    gone: list[tuple[datetime, bool]]  # the deletions that it knows of


class ClusterWorld:
    """One schedule, its Backups and its bucket, through months of mishaps."""

    def __init__(self, seed: str, report: Report) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - a simulation
        self.seed, self.report, self.judge = seed, report, Judge(seed, report)
        self.now = BEGINNING + timedelta(minutes=self.chance.randrange(1440))
        self.offset = timedelta()  # of the operator's clock
        self.copies: dict[str, Copy] = {}
        self.requests: dict[str, Request] = {}
        self.bucket: dict[str, Copy] = {}  # what was stored under each name, by the Backup that stored it
        self.restored: frozenset[str] = frozenset()
        self.is_available, self.is_velero_up = True, True
        self.is_peaceful, self.is_dying = False, False
        self.saved: list[State] = []
        self.number = 0
        self.first_made: datetime | None = None

    # What each kind of world adds

    grace = timedelta()
    interval = DAY

    def view_schedule(self) -> object:
        """Return what etcd has of the schedule."""
        raise NotImplementedError

    def put_schedule(self, schedule: object) -> None:
        """Let etcd have this schedule again."""
        raise NotImplementedError

    def decide_once(self) -> bool:
        """Let the operator decide and write once; return whether it wrote."""
        raise NotImplementedError

    def edit(self) -> None:
        """Let an administrator or a tenant change the policy or the schedule."""
        raise NotImplementedError

    def approve(self) -> None:
        """Let a person look at the list that waits for an approval, and approve it."""
        raise NotImplementedError

    def set_paused(self, *, paused: bool) -> None:
        """Pause the schedule, or unpause it."""
        raise NotImplementedError

    def check_end(self) -> None:
        """Report what did not come to its end in peace."""
        raise NotImplementedError

    # A history

    def live(self) -> None:
        """Live through months of chaos, then see whether everything comes to its end in peace."""
        for _ in range(self.chance.randint(15, 30)):
            self.advance(self.chance.choice((HOUR, 6 * HOUR, DAY, 2 * DAY)))
            self.chance.choice(self.events())()
            self.reconcile(kills=self.chance.random() < 0.3)
            if self.chance.random() < 0.15:
                for _ in range(self.chance.randint(6, 14)):
                    self.advance(min(self.interval, 6 * HOUR))
                    self.reconcile(kills=False)
        self.make_peace()
        for _ in range(PEACE):
            self.advance(12 * HOUR)
            self.approve()
            self.reconcile(kills=False)
        self.check_end()
        self.report.worlds += 1

    def make_peace(self) -> None:
        """End everything that may delay a run or a deletion."""
        self.offset, self.is_available, self.is_velero_up, self.restored = timedelta(), True, True, frozenset()
        self.is_peaceful = True
        self.set_paused(paused=False)
        for copy in list(self.copies.values()):
            is_doubtful = copy.slot - copy.made > 5 * MINUTE
            if is_doubtful:  # a person deletes it, as the message asks
                self.drop(copy, with_data=True)
            elif not copy.ends_as and copy.phase == "New":  # Velero is restarted
                copy.ends_as = "Failed"
        self.velero_works()

    def events(self) -> list[Callable[[], None]]:
        """Return what may happen next."""
        calm: list[Callable[[], None]] = [lambda: None] * 8
        return [
            *calm,
            self.approve,
            self.edit,
            self.edit,
            self._set_clock,
            self._pause,
            self._restore,
            self._sync_others,
            self._by_hand,
            self._go_back,
            self._go_back,
            self._pin,
            self._keep_marked,
            self._turn_location,
            self._turn_velero,
        ]

    def _set_clock(self) -> None:
        self.offset = self.chance.choice((timedelta(), timedelta(), 2 * MINUTE, HOUR, 40 * DAY, -40 * DAY))

    def _pause(self) -> None:
        self.set_paused(paused=self.chance.random() < 0.5)
        self.advance(self.chance.choice((timedelta(), 30 * DAY)))

    def _restore(self) -> None:
        names = sorted(self.copies)
        self.restored = frozenset() if self.restored else frozenset(self.chance.sample(names, min(3, len(names))))

    def _sync_others(self) -> None:
        """Let a Backup of another cluster's schedule of the same name come from the bucket."""
        began = self.now - self.chance.choice((MINUTE, DAY, 30 * DAY))
        name = self.name_by_hand(began)
        if name not in self.copies and name not in self.bucket:
            owner = self.chance.choice(("", "another"))
            copy = self._new(name, Origin.BUCKET, began, "Completed", owner=owner)
            copy.began, copy.completed = began, began + MINUTE
            self.bucket[name] = copy

    def _by_hand(self) -> None:
        if self.first_made is None:  # before the first run nobody can tell it from a run of Velero
            return
        for _ in range(self.chance.choice((1, 15))):
            self.advance(MINUTE)
            name = self.name_by_hand(self.now)
            if name not in self.copies and name not in self.bucket:
                copy = self.bucket[name] = self._new(name, Origin.HAND, self.now, "Completed")
                copy.completed = self.now + MINUTE

    def name_by_hand(self, moment: datetime) -> str:
        """Return the name of a Backup that somebody makes."""
        return f"daily-{moment:%Y%m%d%H%M%S}"

    def _pin(self) -> None:
        if self.copies:
            copy = self.copies[self.chance.choice(sorted(self.copies))]
            self.change(copy, is_pinned=not copy.is_pinned)

    def _keep_marked(self) -> None:
        for copy in self.copies.values():
            if copy.delete_after is not None and copy.asked is None and not copy.is_removed:
                self.change(copy, is_pinned=True, delete_after=None, waits_for_approval=False, marked=None)
                return

    def _turn_location(self) -> None:
        self.is_available = self.chance.random() < 0.6

    def _turn_velero(self) -> None:
        self.is_velero_up = not self.is_velero_up

    def _go_back(self) -> None:
        """Save the state of etcd, or restore it to one of before the last runs; the bucket stays."""
        self.saved.append(
            State(deepcopy(self.copies), deepcopy(self.requests), self.view_schedule(), [*self.judge.gone])
        )
        if len(self.saved) <= 1:
            return
        self.reconcile(kills=False)
        self.advance(MINUTE)
        state = self.saved.pop(0)
        self.copies, self.requests = deepcopy(state.copies), deepcopy(state.requests)
        self.put_schedule(state.schedule)
        self.judge.approved.clear()  # what was approved or deleted since, nobody in the cluster knows any more
        self.judge.gone = [*state.gone]
        if self.chance.random() < 0.5:
            was_up, self.is_velero_up = self.is_velero_up, False
            self.reconcile(kills=False)
            self.is_velero_up = was_up

    # Time, Velero and writes

    def advance(self, by: timedelta) -> None:
        """Let time pass, and Velero work meanwhile."""
        self.now += by
        self.velero_works()

    def velero_works(self) -> None:
        """Let Velero end Backups, sync, collect what has expired, and process requests, by name as it does."""
        for name, request in list(self.requests.items()):  # Kubernetes deletes a request with its Backup
            copy = self.copies.get(request.backup)
            if copy is None or copy.uid != request.uid or (request.ended and request.ended + DAY <= self.now):
                del self.requests[name]
        if not self.is_velero_up:
            return
        for copy in list(self.copies.values()):
            if copy.phase == "New" and copy.ends_as:
                self._end(copy)
        if self.is_available:
            self._sync()
        for name, request in list(self.requests.items()):
            self._process(name, request)
        for copy in list(self.copies.values()):
            if copy.expires is not None and copy.expires <= self.now and self.is_available:
                self.drop(copy, with_data=True)

    def _end(self, copy: Copy) -> None:
        stored = self.bucket.get(copy.name)
        if stored is not None and stored.content != copy.content:
            self.change(copy, phase="Failed", failure=SHADOWS, ends_as="", items=0, completed=self.now)
            return
        self.change(copy, phase=copy.ends_as, ends_as="", completed=self.now)
        if copy.phase in ("Completed", "PartiallyFailed", "Failed"):
            self.bucket[copy.name] = copy

    def _sync(self) -> None:
        """Create objects for what is in the bucket, and delete those whose data is not there."""
        for name, stored in self.bucket.items():
            if name not in self.copies and stored.phase != "Failed":
                copy = self._new(name, Origin.BUCKET, stored.slot, stored.phase, owner=stored.owner, items=stored.items)
                copy.began, copy.completed, copy.expires = stored.began, stored.completed, stored.expires
                copy.content = stored.content
                self.bucket[name] = copy
        for copy in list(self.copies.values()):
            if copy.phase in ("Completed", "PartiallyFailed") and copy.name not in self.bucket:
                del self.copies[copy.name]

    def _process(self, name: str, request: Request) -> None:
        copy = self.copies.get(request.backup)
        if request.ended is not None or copy is None:
            return
        if not self.is_available:
            request.errors, request.ended = ("the backup location is not available",), self.now
            return
        del self.requests[name]
        stored = self.bucket.get(copy.name)
        self.judge.deleted(copy, stored.content if stored is not None else None)
        self.drop(copy, with_data=True)

    def drop(self, copy: Copy, *, with_data: bool) -> None:
        """Delete an object, and with its data what the bucket has under its name."""
        self.copies.pop(copy.name, None)
        if with_data:
            self.bucket.pop(copy.name, None)

    def run(self, name: str, slot: datetime, owner: str, lives: timedelta | None) -> None:
        """Create the Backup of a slot; one that exists counts as created."""
        if name in self.copies:
            return
        copy = self._new(name, Origin.RUN, slot, "New", owner=owner, items=self.chance.choice(ITEMS))
        copy.expires = self.now + lives if lives is not None else None
        is_stuck = self.chance.random() < 0.02 and not self.is_peaceful
        copy.ends_as = "" if is_stuck else self.chance.choice(PHASES)
        self.first_made = self.first_made or self.now

    def _new(
        self, name: str, origin: Origin, slot: datetime, phase: str, *, owner: str = "", items: int = 1000
    ) -> Copy:
        self.number += 1
        copy = Copy(name, f"u{self.number}", origin, self.now, slot, phase, items, owner, f"c{self.number}", self.now)
        self.copies[name] = copy
        return copy

    def change(self, copy: Copy, **changes: object) -> None:
        """Change an object, which gets another version."""
        self.number += 1
        for column, value in changes.items():
            setattr(copy, column, value)
        copy.version = self.number

    def mark(self, copy: Copy, version: str, at: datetime | None, *, asks: bool) -> None:
        """Write or remove the mark of a Backup, unless it has changed since it was read."""
        if version and str(copy.version) != version:
            raise Conflict
        since = None if at is None else copy.marked or self.now
        grace = self.grace if at is not None and copy.marked is None else copy.grace
        self.change(copy, delete_after=at, waits_for_approval=asks, marked=since, grace=grace)

    def moment(self, *, is_full: bool = False) -> Moment:
        """Return the circumstances of a deletion."""
        return Moment(self.now, self.offset, self.is_available, self.restored, self.grace, is_full)

    # The operator

    def reconcile(self, *, kills: bool) -> None:
        """Decide and write until nothing is left to do; a kill cuts one Plan off."""
        self.dies = self.chance.randrange(6) if kills else -1
        for number in range(ROUNDS):
            self.is_dying = number == self.dies
            self.now += timedelta(seconds=1)
            try:
                has_written = self.decide_once()
            except (Conflict, Killed):
                has_written = True
            self.velero_works()
            if not has_written:
                return

    def interfere(self, names: list[str]) -> None:
        """Pin a Backup between a decision about it and its first write, as whoever meets a paused leader."""
        pinned = [self.copies[name] for name in names if name in self.copies]
        if pinned and self.chance.random() < 0.05:
            self.change(self.chance.choice(pinned), is_pinned=True)

    def survive(self) -> None:
        """Let the operator be killed here, if it is its hour."""
        if self.is_dying and self.chance.random() < 0.5:
            self.is_dying = False
            raise Killed
