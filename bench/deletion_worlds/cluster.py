"""The cluster of a world: Backups, a bucket, a Velero that deletes by name, and everything that happens to them."""

import random
from collections.abc import Callable, Collection
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bench.deletion_worlds import chapters
from bench.deletion_worlds.model import DAY, HOUR, MINUTE, Copy, Judge, Moment, Origin, Report
from foresail.kube import connect

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
PHASES = ("Completed",) * 12 + ("PartiallyFailed",) * 3 + ("Failed",) * 2 + ("FailedValidation",)
ITEMS = (1000,) * 12 + (0, 5)
GRACES = {"0s": timedelta(), "24h": DAY, "72h": 3 * DAY}
UIDS = ("0f8fad5b-d9cb-469f-a165-70867728950e", "1b8fad5b-d9cb-469f-a165-70867728950e")
SHADOWS = "backup already exists in object storage"
NEVER_LOOKED = (  # how a Backup ends that took the name of an earlier one: phase, reason, whether it reports progress
    ("Failed", SHADOWS, False),
    ("Failed", "error getting backup store: no such host", False),
    ("Failed", "found a backup with status InProgress during the server starting, mark it as Failed", True),
    ("FailedValidation", "", False),
)
SHORT = (30 * MINUTE, 50 * MINUTE, 3 * HOUR, 2 * DAY)
"""How soon Velero deletes a Backup whose expiration somebody brings forward."""

NOTICED_IN = 3
"""Decisions after which the operator has taken a request back that Velero has not begun."""

ROUNDS = 40
"""Reconciles after an event: as many as a Plan with ten marks needs for hundreds of Backups."""

PEACE = 12
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
    patience: int = 0  # how often Velero lets it wait
    attempt: int = 1
    stays: tuple[str, int] | None = None  # why its Backup is to stay, and since which decision


@dataclass
class State:
    """What is in etcd."""

    copies: dict[str, Copy]
    requests: dict[str, Request]
    schedule: object
    judges: dict[str, tuple[dict[str, set[str]], dict[str, tuple[datetime, datetime]]]]  # what is approved and gone


class ClusterWorld:
    """A namespace with one or two schedules, their Backups and the bucket, through months of mishaps."""

    def __init__(self, kind: str, number: int, report: Report) -> None:
        seed = f"{kind} {number}"
        self.chance = random.Random(seed)  # noqa: S311 - a simulation
        self.chapter = number // 2  # the worlds of both kinds take turns
        self.seed, self.report = seed, report
        self.judges: dict[str, Judge] = {}  # by the schedule
        self.now = BEGINNING + timedelta(minutes=self.chance.randrange(1440))
        self.offset = timedelta()  # of the operator's clock
        self.answered = self.now  # when the API server answered last
        self.copies: dict[str, Copy] = {}
        self.requests: dict[str, Request] = {}
        self.bucket: dict[str, Copy] = {}  # what was stored under each name, by the Backup that stored it
        self.restored: frozenset[str] = frozenset()
        self.is_available, self.is_velero_up, self.is_operator_up = True, True, True
        self.unread = ""  # "policy" or "restore": what cannot be read
        self.applied = ""  # the rules by which the operator decided last
        self.decided = 0  # how often it has decided
        self.outcome = ""  # how runs end for now; empty: in any way
        self.lives: timedelta | None = None  # how long runs live for now; None: as long as the rules say
        self.meddling = ""  # what somebody does after the first write of each deletion, for now
        self.seen_in: Moment | None = None  # the circumstances of the last decision
        self.is_peaceful, self.is_dying = False, False
        self.saved: list[State] = []
        self.number = 0

    # What each kind of world adds

    grace = timedelta()
    interval = DAY
    takes_back = True
    """Whether a request to Velero is taken back until it has begun."""

    announces_anew = True
    """Whether other rules announce what came due while none applied."""

    @property
    def rules(self) -> str:
        """The rules that apply, as people tell them apart; empty if none do."""
        raise NotImplementedError

    @property
    def keeps(self) -> int | None:
        """How many of the newest good ones the rules are to keep, if it is that simple."""
        raise NotImplementedError

    def set_rules(self, *, applies: bool) -> None:
        """Let rules apply, or none."""
        raise NotImplementedError

    def keep_only(self, number: int, grace: str = "0s") -> None:
        """Let rules apply that keep so many good ones."""
        raise NotImplementedError

    def protect(self, number: int) -> None:
        """Let the policy protect so many good ones, if it can."""

    def fill_quota(self) -> None:
        """Leave no room for another run, if there is a quota."""

    def forget_approval(self, schedule: str) -> None:
        """Remove what a person approved."""
        raise NotImplementedError

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
        for _ in range(self.chance.randint(3, 6)):
            self._step()
        chapters.tell(self.chapter, self)
        for _ in range(self.chance.randint(2, 5)):
            self._step()
        self.make_peace()
        for _ in range(PEACE):
            self.advance(12 * HOUR)
            self._delete_doubtful()
            self.approve()
            self.reconcile(kills=False)
        self.check_end()
        self.report.worlds += 1

    def _step(self) -> None:
        """Let something happen, and the operator decide, for a while without anything else."""
        self.advance(self.chance.choice((HOUR, 6 * HOUR, DAY, 2 * DAY)))
        self.chance.choice(self.events())()
        self.reconcile(kills=self.chance.random() < 0.3)
        if self.chance.random() < 0.15:
            for _ in range(self.chance.randint(6, 14)):
                self.advance(min(self.interval, 6 * HOUR))
                self.reconcile(kills=False)

    def calm_down(self) -> None:
        """End every mishap."""
        self.offset, self.is_available, self.is_velero_up, self.restored = timedelta(), True, True, frozenset()
        self.is_operator_up, self.unread, self.outcome, self.lives, self.meddling = True, "", "", None, ""
        self.set_rules(applies=True)
        self.set_paused(paused=False)

    def make_peace(self) -> None:
        """End everything that may delay a run or a deletion."""
        self.calm_down()
        self.is_peaceful = True
        self._delete_doubtful()
        for copy in self.copies.values():
            if not copy.ends_as and copy.phase == "New":  # Velero is restarted
                copy.ends_as = "Failed"
        self.velero_works()

    def _delete_doubtful(self) -> None:
        """Delete what was made before its slot, as its message asks; one that waited for a quota comes later."""
        for copy in list(self.copies.values()):
            if copy.slot - copy.made > 5 * MINUTE:
                self.drop(copy, with_data=True)

    def events(self) -> list[Callable[[], None]]:
        """Return what may happen next."""
        calm: list[Callable[[], None]] = [lambda: None] * 8
        people = [self.approve, self.edit, self.edit, self._pin, self._keep_marked, self._undo, self._by_hand]
        rules = [self._turn_rules, self._turn_rules]
        mishaps = [self._set_clock, self._set_clock, self._pause, self._restore, self._restore, self._sync_others]
        outages = [self._go_back, self._go_back, self._turn_location, self._turn_velero, self._turn_operator]
        return [*calm, *people, *rules, *mishaps, *outages, self._turn_readable, self._bring_expiration_forward]

    def _turn_rules(self) -> None:
        """Let no rules apply for a while, or the same or other ones again; the operator may see nothing of that."""
        if not self.rules:
            self.return_rules(is_edited=self.chance.random() < 0.5)
            return
        self.set_rules(applies=False)
        if not self.is_operator_up or self.chance.random() < 0.2:
            was_up, self.is_operator_up = self.is_operator_up, False
            self.advance(self.chance.choice((HOUR, 10 * DAY)))
            self.return_rules(is_edited=self.chance.random() < 0.5)
            self.is_operator_up = was_up

    def return_rules(self, *, is_edited: bool) -> None:
        """Let rules apply again; what came due before new ones is announced anew."""
        before = self.applied
        self.set_rules(applies=True)
        if is_edited:
            self.edit()
        if (
            not self.announces_anew
            or self.rules == before
            or any(self.rules in judge.used for judge in self.judges.values())
        ):
            return
        for copy in self.copies.values():
            is_approved = copy.uid in self.judges[copy.schedule].approved.get(self.rules, ())
            if copy.delete_after is not None and copy.delete_after <= self.now and not is_approved:
                copy.marked, copy.voided = None, copy.marked

    def heed_approval(self, uids: Collection[str]) -> None:
        """Let what came due before new rules go without another announcement: somebody saw it in a list since."""
        for copy in self.copies.values():
            if copy.uid in uids and copy.marked is None and copy.delete_after is not None:
                copy.marked = copy.voided

    def _undo(self) -> None:
        """Keep everything that is marked, and remove the approval."""
        for name, judge in self.judges.items():
            judge.approved.clear()
            self.forget_approval(name)
        for copy in self._marked():
            self.keep(copy)

    def _turn_operator(self) -> None:
        self.is_operator_up = self.chance.random() < 0.7

    def _turn_readable(self) -> None:
        self.unread = self.chance.choice(("", "", "policy", "restore"))

    def _bring_expiration_forward(self) -> None:
        """Let the newest ones expire soon, as those that were made before there was a policy."""
        newest = sorted(self.copies.values(), key=lambda copy: copy.slot)[-self.chance.choice((1, 3)) :]
        ends = self.now + self.chance.choice(SHORT)
        for copy in newest:
            self.change(copy, expires=ends if copy.expires is None else min(ends, copy.expires))

    def _set_clock(self) -> None:
        self.offset = self.chance.choice((timedelta(), timedelta(), 2 * MINUTE, HOUR, 3 * DAY, 40 * DAY, -40 * DAY))

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
        for copy in self._marked()[:1]:
            self.keep(copy)

    def _marked(self) -> list[Copy]:
        marked = (copy for copy in self.copies.values() if copy.delete_after is not None)
        return [copy for copy in marked if copy.asked is None and not copy.is_removed]

    def keep(self, copy: Copy) -> None:
        """Pin a Backup and remove its mark, as the command does."""
        self.change(copy, is_pinned=True, delete_after=None, waits_for_approval=False, marked=None)

    def _turn_location(self) -> None:
        self.is_available = self.chance.random() < 0.6

    def _turn_velero(self) -> None:
        self.is_velero_up = not self.is_velero_up

    def _go_back(self) -> None:
        """Save the state of etcd, or restore it to one of before the last runs; the bucket stays."""
        self.save()
        if len(self.saved) > 1:
            self.reconcile(kills=False)
            self.advance(MINUTE)
            self.go_back(is_velero_late=self.chance.random() < 0.5)

    def save(self) -> None:
        """Save the state of etcd."""
        judges = {name: (dict(judge.approved), dict(judge.gone)) for name, judge in self.judges.items()}
        self.saved.append(State(deepcopy(self.copies), deepcopy(self.requests), self.view_schedule(), judges))

    def go_back(self, *, is_velero_late: bool) -> None:
        """Restore the oldest state of etcd; the operator may come before Velero then."""
        state = self.saved.pop(0)
        self.copies, self.requests = deepcopy(state.copies), deepcopy(state.requests)
        self.put_schedule(state.schedule)
        for name, (approved, gone) in state.judges.items():  # of the rest, nobody in the cluster knows any more
            self.judges[name].approved, self.judges[name].gone = dict(approved), dict(gone)
            self.judges[name].edit = None
        if is_velero_late:
            was_up, self.is_velero_up = self.is_velero_up, False
            self.reconcile(kills=False)
            self.is_velero_up = was_up

    # Time, Velero and writes

    def advance(self, by: timedelta) -> None:
        """Let time pass, and Velero work meanwhile."""
        self.now += by
        if self.chance.random() < 0.5:
            self.answered = self.now
        self.velero_works()

    @property
    def skew(self) -> timedelta:
        """By how much the operator takes its clock to be ahead."""
        return connect.skew_since(self.answered, self.now - self.answered, self.now + self.offset)

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
            phase, failure, progresses = self.chance.choice(NEVER_LOOKED)
            ended = {"phase": phase, "failure": failure, "has_progress": progresses}
            self.change(copy, **ended, ends_as="", items=0, completed=self.now)
            return
        phase = copy.ends_as
        self.change(copy, phase=phase, ends_as="", completed=self.now, has_progress=phase != "FailedValidation")
        if phase != "FailedValidation":
            self.bucket[copy.name] = copy

    def _sync(self) -> None:
        """Create objects for what is in the bucket, and delete those whose data is not there."""
        for name, stored in self.bucket.items():
            if name not in self.copies and stored.phase != "Failed":
                copy = self._new(name, Origin.BUCKET, stored.slot, stored.phase, owner=stored.owner, items=stored.items)
                copy.began, copy.completed, copy.expires = stored.began, stored.completed, stored.expires
                copy.content, copy.schedule = stored.content, stored.schedule
                self.bucket[name] = copy
        for copy in list(self.copies.values()):
            if copy.phase in ("Completed", "PartiallyFailed") and copy.name not in self.bucket:
                del self.copies[copy.name]

    def _process(self, name: str, request: Request) -> None:
        copy = self.copies.get(request.backup)
        if request.ended is not None or copy is None:
            return
        why = self.must_stay(copy) if self.takes_back else ""
        if not why or request.stays is None or request.stays[0] != why:
            request.stays = (why, self.decided) if why else None
        if request.patience > 0:
            request.patience -= 1
            return
        if not self.is_available:
            request.errors, request.ended = ("the backup location is not available",), self.now
            return
        if request.stays is not None and self.decided - request.stays[1] >= NOTICED_IN:
            self.judges[copy.schedule].wrong(copy, f"nobody took its request back, although {why}")
        del self.requests[name]
        stored = self.bucket.get(copy.name)
        self.judges[copy.schedule].deleted(copy, stored.content if stored is not None else None)
        self.drop(copy, with_data=True)

    def patience(self) -> int:
        """Return how often Velero lets a request wait before it begins."""
        return 0 if self.is_peaceful else self.chance.choice((0, 0, 0, 2))

    def must_stay(self, copy: Copy) -> str:
        """Return why a Backup is to stay although Velero was asked to delete it; empty if it is not."""
        if copy.expires is not None and copy.expires <= self.now + HOUR:
            return ""
        if copy.is_pinned:
            return "it is pinned"
        if copy.name in self.restored or self.unread == "restore":
            return "a restore reads it"
        return "" if self.rules else "no rules apply"

    def drop(self, copy: Copy, *, with_data: bool) -> None:
        """Delete an object, and with its data what the bucket has under its name."""
        self.copies.pop(copy.name, None)
        if with_data:
            self.bucket.pop(copy.name, None)

    def run(self, name: str, slot: datetime, owner: str, lives: timedelta | None, schedule: str = "daily") -> None:
        """Create the Backup of a slot; one that exists counts as created."""
        if name in self.copies:
            return
        copy = self._new(name, Origin.RUN, slot, "New", owner=owner, items=self.chance.choice(ITEMS))
        copy.schedule, copy.has_progress = schedule, False
        lives = lives if self.lives is None else self.lives
        copy.expires = self.now + lives if lives is not None else None
        is_stuck = self.chance.random() < 0.02 and not self.is_peaceful
        copy.ends_as = "" if is_stuck else self.chance.choice(PHASES)
        if self.outcome:
            copy.ends_as, copy.items = self.outcome, 1000

    def _new(
        self, name: str, origin: Origin, slot: datetime, phase: str, *, owner: str = "", items: int = 1000
    ) -> Copy:
        self.number += 1
        copy = Copy(name, f"u{self.number}", origin, self.now, slot, phase, items, owner, began=self.now)
        copy.content = f"c{self.number}"
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
        if at is not None and copy.marked is None:
            own = [other for other in self.copies.values() if other.schedule == copy.schedule]
            self.judges[copy.schedule].announced(copy, own, self.rules, self.now)
        self.change(copy, delete_after=at, waits_for_approval=asks, marked=since, grace=grace)

    def moment(self) -> Moment:
        """Return the circumstances of a deletion."""
        around = (self.is_available, self.restored, self.grace, self.rules, self.keeps)
        return Moment(self.now, self.offset, *around, is_unread=bool(self.unread))

    # The operator

    def reconcile(self, *, kills: bool) -> None:
        """Decide and write until nothing is left to do; a kill cuts one Plan off."""
        if not self.is_operator_up:
            return
        self._note_rules()
        self.dies = self.chance.randrange(6) if kills else -1
        for number in range(ROUNDS):
            self.is_dying = number == self.dies
            self.now += timedelta(seconds=1)
            try:
                has_written = self.decide_once()
                self.decided += 1
            except (Conflict, Killed):
                has_written = True
            if has_written:
                self.answered = self.now
            self.velero_works()
            if not has_written and not self._is_velero_about_to_delete():
                break
        if not self.rules:  # what was announced is void: rules that return announce it anew
            for copy in self.copies.values():
                copy.marked = None

    def _is_velero_about_to_delete(self) -> bool:
        is_at_work = self.is_velero_up and self.is_available
        return is_at_work and any(request.ended is None for request in self.requests.values())

    def _note_rules(self) -> None:
        if self.rules != self.applied:
            self.applied = self.rules
            for name, judge in self.judges.items():
                own = [copy for copy in self.copies.values() if copy.schedule == name]
                judge.rules_changed(self.rules, own, self.now)

    def change_in_between(self, copy: Copy) -> None:
        """Pin a Backup, restore it or edit the rules after the first write of its deletion: nothing can prevent it."""
        if self.is_peaceful:
            return
        chance = self.chance.random()
        if self.meddling == "pin" or chance < 0.1:
            self.change(copy, is_pinned=True)
        elif self.meddling == "restore" or chance < 0.2:
            self.restored = frozenset({*self.restored, copy.name})
        elif self.meddling == "rules" or chance < 0.25:
            self.set_rules(applies=False)

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
