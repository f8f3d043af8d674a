"""Retention of a Schedule's Backups: which of them the rules give up, and the writes by which they go.

Only runs of this very Schedule in this cluster count and go, Velero's own runs before Foresail included. What came from
a bucket may be another cluster's, and what has a name of its own was made by hand: they neither count nor go, and
Velero deletes them when they expire. Whether what is given up may go is decided by foresail.deletion.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import lru_cache

import msgspec

from foresail import deletion, deletion_writes
from foresail.api import velero
from foresail.api.instants import instant, stamp
from foresail.api.marks import RETENTION, RETENTION_APPROVED, SCHEDULE_UID
from foresail.backups import Quality, has_expired, in_order
from foresail.backups import judge as judge_quality
from foresail.deletion import Circumstances, Decision, Ledger, Stored
from foresail.plan import Action, Create, Key, Level, Patch
from foresail.reporting import Because
from foresail.retention import Copy, Rule, Rules, horizon, kept, oldest_first, why_not_kept
from foresail.schedules.expression import parse_expression
from foresail.schedules.observe import BackupRow, DeletionRow, ScheduleRow, ScheduleView, Unread, location_of
from foresail.schedules.policies import grace_of, retention_rules
from foresail.schedules.reasons import Reason
from foresail.schedules.slots import timing_of
from foresail.schedules.status import last_observed
from foresail.slots.due import SKEW, is_in_future
from foresail.slots.interval import longest_run_gap
from foresail.slots.observed import Observed
from foresail.slots.rules import SETTLING_TIME

MOST_OPEN_DELETIONS = 10
"""DeleteBackupRequests of ours that Velero has at a time: it processes one after the other."""

MOST_MARKS = 10
"""Backups that one Plan marks, or whose marks it removes; the next Plan goes on."""

_DIGEST_LENGTH = 12
_SUFFIX = "-retention"
_VELERO_RECORDS_IN = timedelta(minutes=1)  # creates the Backup of a run first, with a clock of its own
_UNFINISHED = "an earlier deletion did not finish"
_VELEROS_NAME = re.compile("-[0-9]{14}")  # what Velero adds to the name of a Schedule
_UNDECIDED = frozenset({Rule.AFTER_GOOD, Rule.RESTORED})  # what keeps a Backup for the moment only


class Retained(msgspec.Struct, frozen=True):
    """What the rules of retention say about the Backups of a Schedule."""

    digest: str  # of the rules
    kept: dict[str, tuple[Rule, ...]]  # by the name of the Backup
    decision: Decision = Decision()
    is_in_effect: bool = False  # the rules deleted before, or too few Backups go to ask
    list_digest: str = ""  # of the Backups that wait for an approval
    blocked_by: Because | None = None
    deleting: tuple[str, ...] = ()  # Backups that Velero has begun to delete
    again: tuple[str, ...] = ()  # those of them to request again, for their deletion has ended without success
    shadows: tuple[BackupRow, ...] = ()  # failed Backups whose data in the bucket belongs to an earlier one
    withdrawn: tuple[DeletionRow, ...] = ()  # requests that Velero has not begun, for Backups that stay by now
    failed: Because | None = None  # a deletion that failed or cannot be requested

    @property
    def goes(self) -> dict[str, str]:
        """Why each Backup goes that no rule keeps, by its name, the oldest first."""
        return self.decision.goes

    @property
    def deletes(self) -> dict[str, str]:
        """Why each Backup is deleted, by its name, in the order of the deletions."""
        return dict.fromkeys(self.again, _UNFINISHED) | self.goes


def retain(view: ScheduleView, observed: Observed | None, now: datetime) -> Retained | None:
    """Return what the rules keep and what goes; None if the Schedule has no rules."""
    rules = retention_rules(view.policy, view.settings.zone)
    if rules is None:
        return None
    rows = [row for row in view.backups if counts(row, view, now)]
    qualities = judge_quality(in_order(rows))
    copies = [_copy(row, qualities.get(row.name, Quality.UNFINISHED), view) for row in rows]
    stored = [_stored(row, qualities.get(row.name, Quality.UNFINISHED)) for row in rows]
    reasons = kept(copies, rules)
    gives_up = _given_up(copies, rules, reasons)
    digest = digest_of(rules)
    doubt = next(_doubts(view, now), "")
    has_to_decide = bool(gives_up) or any(row.delete_after for row in rows)
    circumstances = Circumstances(
        grace_of(view.policy),
        ledger_of(observed),
        deletion.approved(view.schedule.annotations.get(RETENTION_APPROVED), digest),
        is_new=observed is None or observed.retention != digest,
        doubt=doubt if has_to_decide else "",
    )
    decision = deletion.decide(stored, gives_up, circumstances, now)
    is_settled = not (doubt or decision.has_stale_marks)
    retained = Retained(
        digest,
        reasons,
        decision,
        not circumstances.is_new or (is_settled and _may_take_effect(stored, reasons, circumstances, now)),
    )
    return _with_deletions(view, retained, [row for row in stored if row.name in decision.asks], doubt, now)


def _given_up(copies: list[Copy], rules: Rules, reasons: Mapping[str, tuple[Rule, ...]]) -> dict[str, str]:
    """Return why no rule keeps a Backup, by its name, the oldest first."""
    why = why_not_kept(copies, rules)
    return {copy.name: why(copy) for copy in sorted(copies, key=oldest_first) if not reasons[copy.name]}


def _with_deletions(
    view: ScheduleView, retained: Retained, asking: list[Stored], doubt: str, now: datetime
) -> Retained:
    """Add what blocks the deletions, and what became of the earlier ones."""
    deleting = [row for row in view.backups if row.phase == velero.DELETING and _is_run(row, view, now)]
    again = tuple(row.name for row in deleting if _is_requested_again(row, view, now))
    retained = msgspec.structs.replace(
        retained,
        list_digest=deletion.list_digest(asking) if asking else "",
        blocked_by=_blocked_by(view, retained.decision, doubt if again else "", len(asking)),
        deleting=tuple(row.name for row in deleting),
        again=again,
        shadows=tuple(row for row in view.backups if is_shadow(row) and _is_run(row, view, now)),
        withdrawn=tuple(_withdrawn(view, retained.kept)),
    )
    return msgspec.structs.replace(retained, failed=_failed_deletion(view, retained, now))


def _may_take_effect(
    stored: list[Stored], reasons: Mapping[str, tuple[Rule, ...]], circumstances: Circumstances, now: datetime
) -> bool:
    """Whether new rules may delete from now on: few Backups go, those that stay only for the moment included."""
    if any(Rule.RESTORED in rules for rules in reasons.values()):
        return False
    going = [row for row in stored if _UNDECIDED.issuperset(reasons[row.name])]
    return deletion.may_take_effect(going, stored, circumstances, now)


def ledger_of(observed: Observed | None) -> Ledger:
    """Return what was deleted lately, as the Schedule records it."""
    if observed is None:
        return Ledger()
    return Ledger(observed.deletions, observed.deleted_runs, observed.deleting)


def counts(backup: BackupRow, view: ScheduleView, now: datetime) -> bool:
    """Whether a Backup is a run of this Schedule that retention counts: made here, and here to stay."""
    is_gone = backup.phase in (velero.FAILED_VALIDATION, velero.DELETING) or is_shadow(backup)
    return not is_gone and _is_run(backup, view, now)


def is_shadow(backup: BackupRow) -> bool:
    """Whether the data in the bucket under a failed Backup's name belongs to an earlier one."""
    return deletion.is_shadow(backup.phase, backup.failure)


def why_not_counted(backup: BackupRow, view: ScheduleView, now: datetime) -> str:
    """Return why a Backup neither counts nor goes; empty if it does."""
    if not _is_made_for(backup, view):
        return "not a run of this Schedule"
    if backup.is_synced:
        return "it came from a bucket"
    if has_expired(backup.expires, now):
        return "it has expired, and Velero deletes it"
    if is_shadow(backup):
        return "its data belongs to an earlier Backup of that name, which Velero syncs back"
    return "Velero refused it" if backup.phase == velero.FAILED_VALIDATION else ""


def _is_run(backup: BackupRow, view: ScheduleView, now: datetime) -> bool:
    return _is_made_for(backup, view) and not (backup.is_synced or has_expired(backup.expires, now))


def _is_made_for(backup: BackupRow, view: ScheduleView) -> bool:
    """Whether Foresail made a Backup for this very Schedule, or Velero did before Foresail."""
    schedule = view.schedule
    if backup.schedule_uid:
        return backup.schedule_uid == schedule.uid
    is_veleros = _VELEROS_NAME.fullmatch(backup.name.removeprefix(schedule.key.name)) is not None
    return is_veleros and schedule.created <= backup.created and not _is_by_hand(backup, view)


def _is_by_hand(backup: BackupRow, view: ScheduleView) -> bool:
    """Whether a Backup with a name by Velero's pattern is later than the last run of Velero."""
    return by_hand_since(view) <= backup.created


def by_hand_since(view: ScheduleView) -> datetime:
    """Return since when only people give names by Velero's pattern: since its last run, before the first of ours.

    It is recorded with our first run, which overwrites Velero's record, and whose Backup is deleted some day.
    """
    observed = last_observed(view.schedule)
    recorded = instant(observed.first) if observed is not None and observed.first else None
    if recorded is not None:
        return recorded
    first = min(_own_runs(view), key=lambda row: row.created, default=None)
    last = view.schedule.last_backup
    if first is not None and last is not None and last >= (first.slot or first.created):  # ours: Velero's is gone
        return first.created
    return last + _VELERO_RECORDS_IN if last is not None else view.schedule.created


def _own_runs(view: ScheduleView) -> Iterator[BackupRow]:
    return (row for row in view.backups if row.schedule_uid == view.schedule.uid)


def with_first_run(observed: Observed, view: ScheduleView, *, begins: bool = False) -> Observed:
    """Return what is remembered of a Schedule with since when names are given by hand, if it has run or begins to."""
    if not (begins or observed.first or any(_own_runs(view))):
        return observed
    return msgspec.structs.replace(observed, first=stamp(by_hand_since(view)))


def _is_requested_again(backup: BackupRow, view: ScheduleView, now: datetime) -> bool:
    """Whether the deletion of a Backup has ended and left it: Velero removes the request last if it succeeds."""
    is_free = not backup.is_pinned and backup.name not in view.restored
    return is_free and _is_left(backup, view, now) and next(_doubts_about(backup, view, now), None) is None


def _is_left(backup: BackupRow, view: ScheduleView, now: datetime) -> bool:
    since = view.unrequested.get(backup.name)
    return since is not None and since + SETTLING_TIME <= now


@lru_cache(1_000)
def digest_of(rules: Rules) -> str:
    """Return a short digest of the rules, by which the operator knows that they are new."""
    return hashlib.sha256(repr(rules).encode()).hexdigest()[:_DIGEST_LENGTH]


# What is written


class Step(msgspec.Struct, frozen=True):
    """The next writes of retention: the record in the Schedule comes before them."""

    actions: tuple[Action, ...] = ()
    ledger: Ledger | None = None  # with what these writes delete
    because: Because | None = None


def abandon(view: ScheduleView) -> Step:
    """Take everything back that was announced or requested by rules that apply no more: a later return starts anew."""
    ours = (row for row in view.backups if row.delete_after is not None and _is_made_for(row, view))
    marked = [row for row in ours if row.phase != velero.DELETING][:MOST_MARKS]
    requested = (row for row in view.deletions if row.is_ours and row.is_open and not row.is_begun)
    taken_back = (deletion_writes.take_back(row.key, row.uid) for row in requested)
    return Step((*taken_back, *(_mark(row, None, "") for row in marked)))


def next_step(view: ScheduleView, retained: Retained, observed: Observed | None, now: datetime) -> Step:
    """Return the next writes: take back what stays, delete one Backup, or mark some that go."""
    rows = {row.name: row for row in view.backups}
    kept_again = [rows[name] for name in retained.decision.unmarks[:MOST_MARKS]]
    taken_back = tuple(deletion_writes.take_back(row.key, row.uid) for row in retained.withdrawn)
    if kept_again or taken_back:
        return Step((*taken_back, *(_mark(row, None, "") for row in kept_again)))
    if retained.shadows:
        shadow = retained.shadows[0]
        text = f"deleted the object Backup {shadow.name} alone: its data belongs to an earlier one of that name."
        because = Because(Reason.RETENTION_DELETED, text, Level.NORMAL)
        return Step((deletion_writes.delete_object(shadow.key, shadow.uid),), because=because)
    name = _first_to_delete(view, retained, now)
    if name is not None:
        why = retained.deletes[name]
        row = rows[name]
        is_whole = deletion.has_own_data(row.phase, row.failure, has_progress=row.items is not None)
        text = f"deleted Backup {name}: {why}." if is_whole else f"deleted the object Backup {name} alone: {why}."
        because = Because(Reason.RETENTION_DELETED, text, Level.NORMAL)
        ledger = ledger_of(observed)
        if name not in retained.decision.approved:
            ledger = ledger.with_deletion(_stored(row, Quality.UNFINISHED), now)
        # The first write fails if the Backup was replaced, pinned or kept meanwhile, and nothing is deleted.
        at = row.delete_after if row.delete_after is not None else now
        request = _deletion(view.schedule, row, why)
        gone = request if is_whole else deletion_writes.delete_object(row.key, row.uid)
        return Step((_mark(row, at, why), gone), ledger, because)
    return Step(tuple(_new_marks(view, retained, rows, now)))


def _first_to_delete(view: ScheduleView, retained: Retained, now: datetime) -> str | None:
    """Return the Backup to delete now, one at a time; None if none is."""
    if is_waiting_for_velero(view, now) or (retained.blocked_by is not None and not retained.decision.deletes):
        return None
    requested = {row.backup for row in view.deletions} | view.unusable.keys()
    names = (*(() if retained.blocked_by is not None else retained.again), *retained.decision.deletes)
    return next((name for name in names if name not in requested), None)


def _new_marks(view: ScheduleView, retained: Retained, rows: Mapping[str, BackupRow], now: datetime) -> Iterator[Patch]:
    grace = grace_of(view.policy)
    if not grace:  # the mark is written with the deletion
        return
    for name in retained.decision.marks[:MOST_MARKS]:
        yield _mark(rows[name], now + grace, retained.goes[name])


def _mark(backup: BackupRow, at: datetime | None, why: str) -> Patch:
    return deletion_writes.mark(velero.BACKUP, backup.key, backup.uid, backup.version, at, why)


def lifetime(view: ScheduleView, slot: datetime, upcoming: datetime) -> timedelta | None:
    """Return the ttl of a new Backup: longer than the rules keep it, so that they decide; None without rules."""
    rules = retention_rules(view.policy, view.settings.zone)
    if rules is None:
        return None
    cron = parse_expression(view.schedule.text, view.settings.zone, view.server.dialect, slot)
    gap = None if isinstance(cron, Because) else longest_run_gap(cron, slot, timing_of(view))
    return horizon(rules, max(upcoming - slot, gap or timedelta()))


def is_waiting_for_velero(view: ScheduleView, now: datetime) -> bool:
    """Whether Velero has a deletion of this Schedule to process, or as many as it gets at a time."""
    return view.open_deletions >= MOST_OPEN_DELETIONS or any(row.is_pending(now) for row in view.deletions)


def deletion_name(backup: str) -> str:
    """Return the name of our DeleteBackupRequest for a Backup."""
    return f"{backup}{_SUFFIX}"


def backup_of(deletion: str) -> str:
    """Return the name of the Backup for which a DeleteBackupRequest of ours has this name."""
    return deletion.removesuffix(_SUFFIX)


def unusable_deletion(backup: str, row: DeletionRow | None, unread: Unread | None) -> Unread | None:
    """Return why a request with the name of a Backup's deletion does not delete it; None if nothing is in the way."""
    if unread is not None:
        return Unread(unread.key, f"cannot be read ({unread.problem})")
    if row is not None and row.backup != backup:
        return Unread(row.key, f"is for Backup {row.backup or '<none>'}")
    return None


def _withdrawn(view: ScheduleView, reasons: Mapping[str, tuple[Rule, ...]]) -> Iterator[DeletionRow]:
    """Yield our requests that Velero has not begun, for a Backup that rules keep by now or that was replaced."""
    uids = {row.name: row.uid for row in view.backups}
    for row in view.deletions:
        is_replaced = bool(row.backup_uid) and row.backup_uid != uids.get(row.backup)
        if row.is_ours and row.is_open and not row.is_begun and (is_replaced or reasons.get(row.backup)):
            yield row


def _failed_deletion(view: ScheduleView, retained: Retained, now: datetime) -> Because | None:
    """Return which deletion failed, was abandoned or cannot be requested; Velero removes such requests after a day."""
    for row in view.deletions:
        is_stuck = row.is_ours and row.is_open and row.is_stalled(now) and row not in retained.withdrawn
        if row.backup not in retained.goes and row.backup not in retained.deleting and not is_stuck:
            continue
        if row.errors:
            text = f"Velero could not delete Backup {row.backup}: {row.errors[0]}. The next try follows within a day."
            return Because(Reason.RETENTION_FAILED, text)
        if row.is_stalled(now) and not row.is_begun:
            text = f"Velero has not begun the deletion of Backup {row.backup} for an hour. Check that Velero runs"
            return Because(Reason.RETENTION_FAILED, f"{text} and that its backup-deletion controller is on.")
        if row.is_stalled(now):
            text = f"Velero has not finished the deletion of Backup {row.backup} for an hour. Check its log."
            again = "If it was restarted amid it, the next try follows within a day."
            return Because(Reason.RETENTION_FAILED, f"{text} {again}")
    return _not_requested(view, retained) or _not_repeated(view, retained, now)


def _not_requested(view: ScheduleView, retained: Retained) -> Because | None:
    """Return why a deletion cannot be requested."""
    for name in (*retained.deleting, *retained.goes):
        if name in view.unusable:
            request = view.unusable[name].key
            problem = view.unusable[name].problem
            text = f"DeleteBackupRequest {request} {problem}, so Backup {name} is not deleted. Delete that request."
            return Because(Reason.RETENTION_FAILED, text)
    return None


def _not_repeated(view: ScheduleView, retained: Retained, now: datetime) -> Because | None:
    """Return why a deletion that failed is not requested again."""
    for backup in view.backups:
        if backup.name in retained.deleting and _is_left(backup, view, now):
            for doubt in _doubts_about(backup, view, now):
                text = f"{doubt}, so the deletion of Backup {backup.name}, which failed, is not repeated."
                return Because(Reason.RETENTION_FAILED, text)
    return None


def next_deletion_check(view: ScheduleView, retained: Retained, now: datetime) -> datetime | None:
    """Return when the clock alone may change what is deleted or reported."""
    instants = [row.stalls_at for row in view.deletions if row.stalls_at is not None]
    instants += [since + SETTLING_TIME for since in view.unrequested.values()]
    instants += retained.decision.waits.values()
    if retained.deletes and view.open_deletions >= MOST_OPEN_DELETIONS:
        instants.append(now + velero.DELETION_TIME)
    return min((instant for instant in instants if instant > now), default=None)


def _deletion(schedule: ScheduleRow, backup: BackupRow, why: str) -> Create:
    """Return the request to Velero; Kubernetes deletes it with its Backup, if someone else deletes that first."""
    owner = {"apiVersion": velero.BACKUP.api_version, "kind": velero.BACKUP.name}
    return deletion_writes.request_deletion(
        Key(schedule.key.namespace, deletion_name(backup.name)),
        backup.key,
        backup.uid,
        {SCHEDULE_UID: schedule.uid},
        {},
        annotations={RETENTION: why},
        ownerReferences=[{**owner, "name": backup.name, "uid": backup.uid}],
    )


def _copy(backup: BackupRow, quality: Quality, view: ScheduleView) -> Copy:
    return Copy(
        name=backup.name,
        started=backup.slot or backup.created,
        is_good=quality is Quality.GOOD,
        is_partial=quality is Quality.PARTIAL,
        is_finished=backup.is_terminal,
        is_pinned=backup.is_pinned,
        is_restored=backup.name in view.restored,
        created=backup.created,
    )


def _stored(backup: BackupRow, quality: Quality) -> Stored:
    is_run = backup.slot is not None
    return Stored(backup.name, backup.uid, backup.started, quality, is_run, backup.delete_after, backup.expires)


def asked_for(iterable: Iterable[BackupRow], retained: Retained) -> list[Stored]:
    """Return the Backups that wait for an approval."""
    return [_stored(row, Quality.UNFINISHED) for row in iterable if row.name in retained.decision.asks]


def _blocked_by(view: ScheduleView, decision: Decision, doubt: str, asking: int) -> Because | None:
    problem = decision.doubt or doubt
    if problem:
        return Because(Reason.RETENTION_IN_DOUBT, f"{problem}, so nothing is deleted.")
    if not asking:
        return None
    name = view.schedule.key.name
    policy = view.policy.name if view.policy else ""
    text = (
        f"SchedulePolicy {policy} would delete {asking} of {decision.of} Backups, so it waits for approval."
        f" To see and approve them: foresail schedule retention {name}."
    )
    return Because(Reason.RETENTION_NOT_APPROVED, text)


def _doubts(view: ScheduleView, now: datetime) -> Iterator[str]:
    """Yield why nothing is deleted: something that the rules depend on is not certain."""
    yield from deletion.operators_doubts(view.skew, view.stale)
    for unread in view.unread_policies:
        yield f"Correct SchedulePolicy {unread.key.name}: it cannot be read ({unread.problem}) and may apply"
    for unread in view.unread:
        yield f"Backup {unread.key} cannot be read ({unread.problem})"
    for backup in view.backups:
        if counts(backup, view, now):
            yield from _doubts_about(backup, view, now)
        elif backup.phase == velero.FAILED_VALIDATION and _is_run(backup, view, now):
            yield from _doubts_about_times(backup, now)


def _doubts_about(backup: BackupRow, view: ScheduleView, now: datetime) -> Iterator[str]:
    yield from _doubts_about_times(backup, now)
    location = location_of(backup.location, view.locations)
    if location is None:
        yield f"BackupStorageLocation {backup.location} of Backup {backup.key} does not exist"
    elif location.phase != velero.AVAILABLE or location.is_read_only:
        state = "read-only" if location.is_read_only else location.phase or "not checked by Velero yet"
        yield f"BackupStorageLocation {location.key} is {state}"


def _doubts_about_times(backup: BackupRow, now: datetime) -> Iterator[str]:
    """Yield what its times say about the clocks; they also say so of a Backup that Velero refused, and has no data."""
    moment = max(filter(None, (backup.slot, backup.created, backup.completed)))
    if is_in_future(moment, now):
        yield f"Backup {backup.key} has a time in the future ({stamp(moment)}). Check the clocks"
    if backup.slot is not None and backup.slot - backup.created > SKEW:
        yield f"Backup {backup.key} was made before its slot ({stamp(backup.slot)}). Check the clocks, then delete it"
