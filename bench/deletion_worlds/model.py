"""The model: what users were promised about deletions, as plain facts; it imports nothing of Foresail.

It is written from docs/concepts/schedule-policy.md and docs/how-to/back-up-on-a-schedule.md, not from the code.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
SKEW = 5 * MINUTE
SLACK = 10 * MINUTE
"""How much later or earlier than promised something may happen: worlds advance in steps."""

RESTORABLE = ("Completed", "PartiallyFailed")


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
    content: str = ""  # which data it describes
    began: datetime | None = None
    completed: datetime | None = None
    failure: str = ""
    ends_as: str = ""  # the phase that an unfinished one ends in; empty: it is stuck
    expires: datetime | None = None
    is_pinned: bool = False
    version: int = 0
    delete_after: datetime | None = None  # as it is written on the object
    waits_for_approval: bool = False
    marked: datetime | None = None  # since when it is announced
    grace: timedelta = timedelta()  # what the policy promised at that time
    asked: datetime | None = None  # since when Velero is asked to delete it
    is_removed: bool = False  # of a tenant's: its deletion was requested

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
    is_full: bool = False  # a tenant's quota is reached, and a run waits for it


class Judge:
    """Judges the deletions of one schedule's Backups."""

    def __init__(self, seed: str, report: Report) -> None:
        self.seed, self.report = seed, report
        self.approved: set[str] = set()  # UIDs that a person saw in a list and approved
        self.gone: list[tuple[datetime, bool]] = []  # deletions that nobody approved, and whether of a run of that day

    def requested(self, copy: Copy, copies: Mapping[str, Copy], moment: Moment) -> None:
        """Judge the request to delete a Backup with its data."""
        self.report.deletions += 1
        own = [other for other in copies.values() if self._counts(other, moment.now) or other is copy]
        for why in (*_last(copy, own), *_doubts(copy, own, moment)):
            self._wrong(copy, why)
        if copy.origin is not Origin.RUN:
            self._wrong(copy, f"it was made by {copy.origin.value}")
        self._judge_grace(copy, moment)
        self._judge_many(copy, own, moment.now)

    def deleted(self, copy: Copy, content: str | None) -> None:
        """Judge the deletion of what the bucket has under the name of a Backup."""
        if content is not None and content != copy.content:
            self._wrong(copy, "the data of that name belonged to another Backup")

    def removed(self, copy: Copy, content: str | None) -> None:
        """Judge the deletion of an object alone."""
        if content == copy.content and copy.is_restorable:
            self._wrong(copy, "the object of a Backup with data was deleted")

    @staticmethod
    def _counts(copy: Copy, now: datetime) -> bool:
        is_past = copy.expires is not None and copy.expires <= now
        return copy.origin is Origin.RUN and copy.asked is None and not copy.is_removed and not is_past

    def _judge_grace(self, copy: Copy, moment: Moment) -> None:
        if not moment.grace or moment.is_full:
            return
        promised = min(copy.grace, moment.grace)
        if copy.marked is None or moment.now - copy.marked < promised - SLACK:
            self._wrong(copy, "its grace period was not over")

    def _judge_many(self, copy: Copy, own: list[Copy], now: datetime) -> None:
        if copy.uid in self.approved:
            return
        recent = [of_the_day for at, of_the_day in self.gone if at > now - DAY]
        made = sum(now - DAY - HOUR < other.slot <= now for other in own) + sum(recent)
        beyond = len(recent) + 1 - made
        if beyond > 10 and beyond > 0.2 * (len(own) + len(recent)):
            self._wrong(copy, "it was one of many, and nobody had approved it")
        self.gone.append((now, copy.slot > now - DAY))

    def _wrong(self, copy: Copy, why: str) -> None:
        self.report.wrong.append(f"{self.seed}: {copy.name}: {why}")


def _last(copy: Copy, own: Iterable[Copy]) -> list[str]:
    """Return that a Backup was the newest good or the newest restorable one."""
    oldest_first = sorted(own, key=lambda other: (other.slot, other.name))
    good: Copy | None = None
    before: Copy | None = None
    for other in sorted(own, key=lambda other: (other.made, other.name)):
        is_whole = before is None or other.items > before.items * 0.1
        if other.phase == "Completed" and other.items > 0 and is_whole and (good is None or other.slot >= good.slot):
            good = other
        before = other if other.is_restorable else before
    restorable = [other for other in oldest_first if other.is_restorable]
    found = ["it was the newest good one"] if copy is good else []
    return [*found, "it was the newest restorable one"] if restorable and copy is restorable[-1] else found


def _doubts(copy: Copy, own: Iterable[Copy], moment: Moment) -> list[str]:
    """Return what was not certain when the deletion was requested."""
    facts = {
        "it was pinned": copy.is_pinned,
        "a restore read it": copy.name in moment.restored,
        "the clock was wrong": abs(moment.skew) > SKEW + MINUTE,
        "its location was not available": not moment.is_available,
        "a slot was later than the creation of its Backup": any(
            other.slot - other.made > SKEW + MINUTE for other in own
        ),
        "it had not ended": copy.phase not in (*RESTORABLE, "Failed", "FailedValidation"),
    }
    return [why for why, is_true in facts.items() if is_true]
