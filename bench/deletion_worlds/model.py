"""The model: what users were promised about deletions, as plain facts; it imports nothing of Foresail.

It is written from docs/concepts/schedule-policy.md, docs/how-to/retention.md and docs/how-to/back-up-on-a-schedule.md,
not from the code: it counts deletions, grace periods and approvals by itself.

The newest copy is the one that was made last, by the API server's clock: its data are the newest, whatever slot an
operator with a wrong clock has given it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
SKEW = 5 * MINUTE
SLACK = 10 * MINUTE
"""How much later or earlier than promised something may happen: worlds advance in steps."""

MANY = 10
MANY_SHARE = 0.2
SHRINKS_TO = 0.1
RESTORABLE = ("Completed", "PartiallyFailed")
ENDED = (*RESTORABLE, "Failed", "FailedValidation")


class Origin(Enum):
    """Who made a Backup."""

    RUN = "this Schedule, for a slot"
    HAND = "somebody, by hand"
    BUCKET = "Velero's sync, from the bucket"


@dataclass
class Copy:
    """One Backup object, as it is."""

    name: str
    uid: str
    origin: Origin
    made: datetime  # by the API server's clock, which is right
    slot: datetime
    phase: str
    items: int
    owner: str = ""  # the UID of the Schedule that is recorded on it
    schedule: str = "daily"
    content: str = ""  # which data it describes
    began: datetime | None = None
    completed: datetime | None = None
    failure: str = ""
    has_progress: bool = True  # Velero got as far as reporting progress
    ends_as: str = ""  # the phase that an unfinished one ends in; empty: it is stuck
    expires: datetime | None = None
    is_pinned: bool = False
    version: int = 0
    delete_after: datetime | None = None  # as it is written on the object
    waits_for_approval: bool = False
    marked: datetime | None = None  # since when it is announced, by rules that apply without a break since then
    voided: datetime | None = None  # the same, of rules that others have replaced since: whoever approves it takes it
    grace: timedelta = timedelta()  # what the policy promised at that time
    asked: datetime | None = None  # since when Velero is asked to delete it
    is_removed: bool = False  # of a tenant's: its deletion was requested
    is_terminating: bool = False  # of a tenant's: its request is being deleted
    status: dict[str, object] = field(default_factory=dict)  # of a tenant's: the status of its request

    @property
    def is_restorable(self) -> bool:
        """Whether a restore could bring something back."""
        return self.phase in RESTORABLE and self.items > 0


@dataclass
class Report:
    """What was counted over all worlds."""

    worlds: int = 0
    deletions: int = 0
    wrong: list[str] = field(default_factory=list)
    unreported: list[str] = field(default_factory=list)
    starved: list[str] = field(default_factory=list)


@dataclass
class Moment:
    """The circumstances in which a deletion was requested."""

    now: datetime
    skew: timedelta
    is_available: bool
    restored: frozenset[str]
    grace: timedelta
    rules: str = "rules"  # those that apply; empty if none do
    keeps: int | None = None  # if the rules are to keep so many of the newest good ones
    has_room: bool = True  # no run waits for the quota, or one that waits was made room for
    is_unread: bool = False  # a policy, or of a tenant's also a restore, cannot be read


class Judge:
    """Judges the deletions of one schedule's Backups."""

    def __init__(self, seed: str, report: Report, *, asks_of_new: bool = True) -> None:
        self.seed, self.report = seed, report
        self.asks_of_new = asks_of_new  # whether rules that are new announce few
        self.approved: dict[str, set[str]] = {}  # by the rules, the UIDs that a person saw in a list and approved
        self.gone: dict[str, tuple[datetime, datetime]] = {}  # by UID, when it went unapproved, and when it was made
        self.used: set[str] = set()  # rules that applied once
        self.edit: tuple[datetime, int] | None = None  # when rules came that never applied before, and to how many
        self.of_edit: set[str] = set()  # UIDs that these announced or deleted at once

    # What people do

    def rules_changed(self, rules: str, own: Iterable[Copy], now: datetime) -> None:
        """Note which rules apply from now on."""
        if rules and rules not in self.used:
            self.used.add(rules)
            self.of_edit = set()
            self.edit = (now, sum(self._counts(copy, now) for copy in own)) if self.asks_of_new else None
        elif rules:
            self.edit = None

    def approve(self, rules: str, uids: Iterable[str]) -> None:
        """Note the approval of a list, which replaces an earlier one."""
        self.approved = {rules: {*uids}}

    # What becomes of Backups

    def requested(self, copy: Copy, copies: Mapping[str, Copy], moment: Moment, *, is_pinned: bool) -> None:
        """Judge the request to delete a Backup with its data."""
        self.report.deletions += 1
        own = [other for other in copies.values() if self._counts(other, moment.now) or other is copy]
        if copy.origin is not Origin.RUN:
            self.wrong(copy, f"it was made by {copy.origin.value}")
        if not moment.rules:
            self.wrong(copy, "no rules applied")
        for why in (*_last(copy, own, moment.now), *_doubts(copy, own, moment, is_pinned=is_pinned)):
            self.wrong(copy, why)
        if moment.keeps is not None and moment.has_room and copy in _newest_good(own, moment.keeps):
            self.wrong(copy, "the rules keep it")
        self._judge_grace(copy, moment)
        self._judge_many(copy, own, moment)

    def carried_out(
        self,
        copy: Copy,
        around: Mapping[str, Copy],
        moment: Moment,
        protects: tuple[int, timedelta],
        *,
        is_pinned: bool,
    ) -> None:
        """Judge that Velero is asked for a deletion that rules have requested earlier, or is asked again."""
        facts = {
            "it was kept meanwhile": is_pinned,
            "a restore read it": copy.name in moment.restored,
            "the clock was wrong": abs(moment.skew) > SKEW + MINUTE,
            "a policy or a restore could not be read": moment.is_unread,
        }
        for why, is_true in facts.items():
            if is_true:
                self.wrong(copy, f"when Velero was asked, {why}")
        most, age = protects
        if copy.asked is None and copy.is_restorable and moment.now - copy.made < age - SKEW - MINUTE:
            self.wrong(copy, "the policy kept it for longer")
        good = [*_good(other for other in around.values() if other.asked is None)]
        newer = (other for other in good if other.made > copy.made and _lasts(other, copy, moment.now))
        if copy in good and sum(1 for _ in newer) < most:
            self.wrong(copy, "the policy kept it as one of the last good ones")

    def deleted(self, copy: Copy, content: str | None) -> None:
        """Judge the deletion of what the bucket has under the name of a Backup."""
        if content is not None and content != copy.content:
            self.wrong(copy, "the data of that name belonged to another Backup")

    def removed(self, copy: Copy, content: str | None) -> None:
        """Judge the deletion of an object alone."""
        if content == copy.content and copy.is_restorable:
            self.wrong(copy, "the object of a Backup with data was deleted")

    def announced(self, copy: Copy, own: Iterable[Copy], rules: str, now: datetime) -> None:
        """Judge a mark: rules that are new announce few without an approval, until a run has ended under them."""
        if self.edit is None or now - self.edit[0] > HOUR or copy.uid in self.approved.get(rules, ()):
            return
        since, total = self.edit
        self.of_edit.add(copy.uid)
        many = len(self.of_edit)
        has_run = any(other.completed is not None and other.completed >= since for other in own)
        if not has_run and (many > MANY or many > MANY_SHARE * max(total, 1)):
            self.wrong(copy, "rules that are new announced many, and nobody had approved it")

    @staticmethod
    def _counts(copy: Copy, now: datetime) -> bool:
        is_past = copy.expires is not None and copy.expires <= now
        return copy.origin is Origin.RUN and copy.asked is None and not copy.is_removed and not is_past

    def _judge_grace(self, copy: Copy, moment: Moment) -> None:
        promised = min(copy.grace, moment.grace)
        if not moment.has_room or not moment.grace:
            return
        if copy.marked is None or moment.now - copy.marked < promised - SLACK:
            self.wrong(copy, "its grace period was not over")

    def _judge_many(self, copy: Copy, own: list[Copy], moment: Moment) -> None:
        """Judge how many went in 24 hours, beyond the runs of these hours that did not fail."""
        if copy.uid in self.approved.get(moment.rules, ()):
            return
        day = moment.now - DAY - HOUR
        recent = [made for uid, (at, made) in self.gone.items() if at > moment.now - DAY and uid != copy.uid]
        new = sum(other.made > day for other in own if other.is_restorable or other is copy)
        beyond = len(recent) + 1 - new - sum(made > day for made in recent)
        if beyond > MANY and beyond > MANY_SHARE * (len(own) + len(recent)):
            self.wrong(copy, "it was one of many, and nobody had approved it")
        self.gone[copy.uid] = moment.now, copy.made

    def wrong(self, copy: Copy, why: str) -> None:
        """Report a deletion that breaks a promise."""
        self.report.wrong.append(f"{self.seed}: {copy.name}: {why}")


def _made(copy: Copy) -> tuple[datetime, str]:
    return copy.made, copy.name


def _good(own: Iterable[Copy]) -> Iterator[Copy]:
    """Yield the good ones: Completed, with objects, and not shrunk against the run before."""
    before: Copy | None = None
    for copy in sorted(own, key=_made):
        is_whole = before is None or copy.items > before.items * SHRINKS_TO
        if copy.phase == "Completed" and copy.items > 0 and is_whole:
            yield copy
        before = copy if copy.is_restorable else before


def _newest_good(own: Iterable[Copy], most: int) -> list[Copy]:
    """Return the newest of the good ones."""
    return sorted(_good(own), key=_made)[-most:]


def _lasts(newer: Copy, older: Copy, now: datetime) -> bool:
    """Whether a later one replaces an earlier one: it has not expired, and lives as long."""
    if newer.expires is None:
        return True
    return newer.expires > now and older.expires is not None and newer.expires >= older.expires


def _last(copy: Copy, own: list[Copy], now: datetime) -> Iterator[str]:
    """Yield that a Backup was the newest good or the newest restorable one, of all or of those that do not end soon."""
    lasting = {other.uid for other in own if other.expires is None or other.expires > now + HOUR - SLACK}
    good = _newest_good(own, len(own))
    restorable = sorted((other for other in own if other.is_restorable), key=_made)
    for rows, what in ((good, "good"), (restorable, "restorable")):
        newest = (rows[-1:], [other for other in rows if other.uid in lasting][-1:])
        if [copy] in newest:
            yield f"it was the newest {what} one"


def _doubts(copy: Copy, own: Iterable[Copy], moment: Moment, *, is_pinned: bool) -> list[str]:
    """Return what was not certain when the deletion was requested."""
    facts = {
        "it was pinned": is_pinned,
        "a restore read it": copy.name in moment.restored,
        "the clock was wrong": abs(moment.skew) > SKEW + MINUTE,
        "its location was not available": not moment.is_available,
        "a policy or a restore could not be read": moment.is_unread,
        "a slot was later than the creation of its Backup": any(
            other.slot - other.made > SKEW + MINUTE for other in own
        ),
        "it had not ended": copy.phase not in ENDED,
    }
    return [why for why, is_true in facts.items() if is_true]
