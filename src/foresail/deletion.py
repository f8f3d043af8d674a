"""The one place that decides which backups are deleted, whoever asks: retention, keepLast or a quota.

A rule gives backups up. Whether they go is decided here: never the newest good or restorable one, never in doubt,
never many within a day without an approval of that very list, and only after a grace period.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from math import ceil

import msgspec

from foresail.api.velero import FAILED, FAILED_VALIDATION
from foresail.backups import Quality

MOST_UNAPPROVED = 10
MOST_UNAPPROVED_SHARE = 0.2
"""More than this many backups, and more than this share of them, go within a day only after an approval."""

DEFAULT_GRACE = timedelta(hours=24)
LONGEST_GRACE = timedelta(days=30)
MOST_APPROVED = 2_000
"""How many backups one approval lists at most, the oldest: it is an annotation."""

SKEW = timedelta(minutes=5)
"""By how much two clocks may differ."""

EXPIRES_SOON = timedelta(hours=1)
"""Within this time of its expiration, a backup is no reason to delete another one."""

SHADOWS = "already exists in object storage"
"""In Velero's reason for a failure: the data of that name in the bucket belongs to an earlier backup."""

INTERRUPTED = "during the server starting"
"""In Velero's reason for a failure: it found the backup unfinished when it started, and what it had done is unknown."""

_DAY = timedelta(hours=24)
_HOUR = timedelta(hours=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHORT = 10  # characters of a digest


class Stored(msgspec.Struct, frozen=True):
    """A backup that counts, as far as its deletion is concerned."""

    name: str
    uid: str
    started: datetime  # when it was made, whatever its slot: the operator's clock may have been wrong
    quality: Quality
    is_run: bool = False  # made for a slot, not by hand
    delete_after: datetime | None = None  # it is marked, and goes then
    expires: datetime | None = None  # Velero deletes it then


class Ledger(msgspec.Struct, frozen=True):
    """What was deleted unapproved within the last day, by hours since 1970; kept in the schedule of the backups."""

    deletions: Mapping[str, int] = {}
    runs: Mapping[str, int] = {}  # of these, those that were made for a slot, by the hour of their start
    last: str = ""  # the UID of the last one: an attempt that is repeated counts once

    def with_deletion(self, backup: Stored, now: datetime) -> "Ledger":
        """Return the ledger with one more deletion, and without what is older than a day."""
        if backup.uid and backup.uid == self.last:
            return self
        deletions = dict(self._recent(self.deletions, now))
        runs = dict(self._recent(self.runs, now))
        deletions[_hour(now)] = deletions.get(_hour(now), 0) + 1
        if backup.is_run and backup.started > now - _DAY:
            runs[_hour(backup.started)] = runs.get(_hour(backup.started), 0) + 1
        return Ledger(deletions, runs, backup.uid)

    def deleted(self, now: datetime) -> int:
        """Return how many backups were deleted within the last day."""
        return sum(count for _, count in self._recent(self.deletions, now))

    def made(self, now: datetime) -> int:
        """Return how many of them were made within the last day."""
        return sum(count for _, count in self._recent(self.runs, now))

    @staticmethod
    def _recent(counts: Mapping[str, int], now: datetime) -> list[tuple[str, int]]:
        first = int(_hour(now - _DAY))
        last = int(_hour(now))
        return [(hour, count) for hour, count in counts.items() if hour.isdecimal() and first <= int(hour) <= last]


class Circumstances(msgspec.Struct, frozen=True):
    """What a decision about deletions depends on, besides the backups."""

    grace: timedelta = DEFAULT_GRACE
    ledger: Ledger = Ledger()
    approved: frozenset[str] = frozenset()  # the short digests of backups
    is_new: bool = False  # the rules were not in effect before
    is_edited: bool = False  # the number to keep was another one: what goes is counted in full, as if no run were new
    doubt: str = ""  # what is not certain: nothing goes


class Decision(msgspec.Struct, frozen=True):
    """What becomes of the backups that a rule gives up."""

    goes: dict[str, str] = {}  # why, by name, the oldest first
    asks: tuple[str, ...] = ()  # those of them that wait for an approval
    marks: tuple[str, ...] = ()  # to be marked now
    unmarks: tuple[str, ...] = ()  # marked, but kept by now; or marked before the rules were in effect
    deletes: tuple[str, ...] = ()  # to be deleted now, in this order
    waits: dict[str, datetime] = {}  # marked, by when they go
    approved: frozenset[str] = frozenset()  # those of them that a person has approved
    of: int = 0  # how many backups there were within the last day
    doubt: str = ""

    @property
    def has_stale_marks(self) -> bool:
        """Whether marks from before the rules are still to be removed, so that their grace period starts anew."""
        return not self.goes.keys().isdisjoint(self.unmarks)

    @property
    def next_at(self) -> datetime | None:
        """When the clock alone changes what goes."""
        return min(self.waits.values(), default=None)


def protected(backups: Iterable[Stored], now: datetime) -> frozenset[str]:
    """Return the names that never go: the newest good backup, and the newest restorable one.

    If Velero deletes one of them soon, by its ttl, the newest such that lasts stays too.
    """
    newest_first = sorted(backups, key=lambda backup: (backup.started, backup.name), reverse=True)
    lasting = [backup for backup in newest_first if backup.expires is None or backup.expires > now + EXPIRES_SOON]
    newest = (
        next((backup.name for backup in rows if backup.quality in qualities), None)
        for rows in (newest_first, lasting)
        for qualities in ((Quality.GOOD,), _RESTORABLE)
    )
    return frozenset(name for name in newest if name is not None)


_RESTORABLE = (Quality.GOOD, Quality.PARTIAL, Quality.SHRUNK)
_PUSHES_OUT = (Quality.GOOD, Quality.PARTIAL)


def decide(
    backups: Collection[Stored], gives_up: Mapping[str, str], circumstances: Circumstances, now: datetime
) -> Decision:
    """Return what becomes of the backups that a rule gives up, given all that count."""
    stays = protected(backups, now)
    oldest_first = sorted(backups, key=lambda backup: (backup.started, backup.name))
    going = [backup for backup in oldest_first if backup.name in gives_up and backup.name not in stays]
    goes = {backup.name: gives_up[backup.name] for backup in going}
    stale = {row.name for row in going if _is_stale(row, circumstances, now)}
    decision = Decision(
        goes,
        unmarks=_unmarks(oldest_first, goes, stale),
        waits={row.name: row.delete_after for row in going if row.delete_after is not None and row.delete_after > now},
        approved=frozenset(row.name for row in going if _is_approved(row, circumstances)),
        of=len(backups) + circumstances.ledger.deleted(now),
    )
    if circumstances.doubt:
        return msgspec.structs.replace(decision, waits={}, doubt=circumstances.doubt)
    return _undoubted(decision, oldest_first, _unmarked(going, stale), circumstances, now)


def _unmarked(backups: Iterable[Stored], stale: Collection[str]) -> list[Stored]:
    """Return the backups as if those with a stale mark had none."""
    return [msgspec.structs.replace(row, delete_after=None) if row.name in stale else row for row in backups]


def _unmarks(backups: Iterable[Stored], goes: Mapping[str, str], stale: Collection[str]) -> tuple[str, ...]:
    """Return the marked backups that do not go any more, or whose mark is stale."""
    marked = (row.name for row in backups if row.delete_after is not None)
    return tuple(name for name in marked if name in stale or name not in goes)


def _is_approved(backup: Stored, circumstances: Circumstances) -> bool:
    return bool(circumstances.approved) and short_digest(backup) in circumstances.approved


def _is_stale(backup: Stored, circumstances: Circumstances, now: datetime) -> bool:
    """Whether a mark is older than the rules: its grace period passed while they were not in effect."""
    return bool(
        circumstances.is_new
        and circumstances.grace
        and not _is_approved(backup, circumstances)
        and backup.delete_after is not None
        and backup.delete_after <= now
    )


def _undoubted(
    decision: Decision,
    backups: Collection[Stored],
    going: Collection[Stored],
    circumstances: Circumstances,
    now: datetime,
) -> Decision:
    """Add which backups wait for an approval, and which of the others are marked or deleted now."""
    asks = _asks(backups, going, circumstances, now)
    free = [backup for backup in going if backup.name not in asks]
    return msgspec.structs.replace(
        decision,
        asks=tuple(backup.name for backup in going if backup.name in asks),
        marks=tuple(row.name for row in free if row.delete_after is None and row.name not in decision.unmarks),
        deletes=tuple(backup.name for backup in free if _is_due(backup, circumstances.grace, now)),
        waits={name: at for name, at in decision.waits.items() if name not in asks},
    )


def _is_due(backup: Stored, grace: timedelta, now: datetime) -> bool:
    """Whether the grace period is over."""
    return backup.delete_after is not None and backup.delete_after <= now if grace else True


def _asks(
    backups: Collection[Stored], going: Collection[Stored], circumstances: Circumstances, now: datetime
) -> frozenset[str]:
    """Return the backups that wait for an approval because too many would go."""
    unapproved = [backup for backup in going if not _is_approved(backup, circumstances)]
    ledger = circumstances.ledger
    grace = circumstances.grace
    total = len(backups) + ledger.deleted(now)
    due = [backup for backup in unapproved if _is_due(backup, grace, now)]
    is_new = circumstances.is_new
    at_once = len(due) + ledger.deleted(now) - _made(backups, due, ledger, _DAY, now)
    in_all = len(unapproved) + ledger.deleted(now) - _made(backups, unapproved, ledger, _DAY + grace, now)
    if is_new or circumstances.is_edited:
        at_once = in_all = len(unapproved) + ledger.deleted(now)
    if is_mass_deletion(in_all, total, is_new=is_new):
        return frozenset(backup.name for backup in unapproved)
    if is_mass_deletion(at_once, total, is_new=is_new):
        return frozenset(backup.name for backup in due)
    return frozenset()


def may_take_effect(
    going: Iterable[Stored], backups: Collection[Stored], circumstances: Circumstances, now: datetime
) -> bool:
    """Whether changed rules may delete from now on: few of those go that stay at most for the moment."""
    unapproved = sum(not _is_approved(backup, circumstances) for backup in going)
    deleted = circumstances.ledger.deleted(now)
    return not is_mass_deletion(unapproved + deleted, len(backups) + deleted, is_new=circumstances.is_new)


def _made(backups: Iterable[Stored], going: Iterable[Stored], ledger: Ledger, window: timedelta, now: datetime) -> int:
    """Return how many runs were made for a slot within a window: as many as these may go in turn.

    A run that failed pushes nothing out, so it lets no other go; it only counts if it goes itself.
    """
    names = {backup.name for backup in going}
    pushes = (backup for backup in backups if backup.quality in _PUSHES_OUT or backup.name in names)
    return sum(backup.is_run and now - window < backup.started <= now for backup in pushes) + ledger.made(now)


def is_mass_deletion(going: int, total: int, *, is_new: bool = False) -> bool:
    """Whether so many backups of a schedule go only after an approval; rules that are new may delete fewer."""
    is_many = going > MOST_UNAPPROVED
    is_share = going > total * MOST_UNAPPROVED_SHARE
    return going > 0 and ((is_many or is_share) if is_new else (is_many and is_share))


# Approval


def short_digest(backup: Stored) -> str:
    """Return how an approval names a backup: this very object, not a later one of the name."""
    return hashlib.sha256(f"{backup.name}/{backup.uid}".encode()).hexdigest()[:_SHORT]


def list_digest(backups: Iterable[Stored]) -> str:
    """Return the digest of a list of backups, by which a person approves what they saw."""
    return hashlib.sha256(" ".join(sorted(map(short_digest, backups))).encode()).hexdigest()[:_SHORT]


def approval(backups: Iterable[Stored], rules: str) -> str:
    """Return the annotation that approves the deletion of backups by rules with this digest, and of nothing else."""
    oldest_first = sorted(backups, key=lambda backup: (backup.started, backup.name))
    return " ".join((_name_of(rules), *(short_digest(backup) for backup in oldest_first[:MOST_APPROVED])))


def approved(annotation: str | None, rules: str) -> frozenset[str]:
    """Return the backups that an annotation approves, if it is of the rules with this digest."""
    of, *backups = (annotation or "").split() or [""]
    return frozenset(backups) if of == _name_of(rules) else frozenset()


def _name_of(rules: str) -> str:
    return f"rules={hashlib.sha256(rules.encode()).hexdigest()[:_SHORT]}"


# Doubts


def is_shadow(phase: str, failure: str) -> bool:
    """Whether the data in the bucket under a failed backup's name belongs to an earlier one of that name."""
    return phase == FAILED and SHADOWS in failure


def has_own_data(phase: str, failure: str, *, has_progress: bool) -> bool:
    """Whether what the bucket has under a backup's name can only be its own: only then Velero may delete it.

    Velero deletes by name, whatever the phase. Before it reports progress, it has looked for that name in the bucket.
    An interrupted backup may report the progress of an earlier time: etcd was restored amid it.
    """
    if phase == FAILED:
        return has_progress and SHADOWS not in failure and INTERRUPTED not in failure
    return phase != FAILED_VALIDATION


def operators_doubts(skew: timedelta | None, stale: Iterable[str]) -> Iterator[str]:
    """Yield why the operator itself may be wrong: about the time, or the present state of these kinds."""
    clock = _clock_doubt(skew)
    if clock:
        yield clock
    kinds = ", ".join(sorted(stale))
    if kinds:
        yield f"For more than five minutes the API server has sent nothing new of {kinds}"


def _clock_doubt(skew: timedelta | None) -> str:
    """Return what is wrong if the operator's clock may differ from the API server's; empty if it does not."""
    if skew is None:
        return "The API server's time is unknown. Check that its answers have the header Date"
    if abs(skew) <= SKEW:
        return ""
    word = "ahead of" if skew > timedelta() else "behind"
    minutes = ceil(abs(skew) / timedelta(minutes=1))
    return f"The operator's clock is {minutes} minutes {word} the API server's. Correct it"


def _hour(moment: datetime) -> str:
    return str((moment - _EPOCH) // _HOUR)
