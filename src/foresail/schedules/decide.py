"""From the verdict to the Plan: at most one Backup, at most one patch, and the Events."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.deletion import Ledger
from foresail.plan import Action, Claim, Create, Key, Level, Note, Patch, Plan, Subject
from foresail.reporting import Because, note
from foresail.schedules.build import create_backup
from foresail.schedules.groups import RECHECK, RESERVED_FOR
from foresail.schedules.observe import ScheduleView
from foresail.schedules.reasons import Reason
from foresail.schedules.retention import Step, abandon, lifetime, next_deletion_check, next_step, with_first_run
from foresail.schedules.retries import repeating
from foresail.schedules.rules import Verdict, judge, next_reconcile
from foresail.schedules.slots import last_slot
from foresail.schedules.status import Changes, last_observed, patch_body
from foresail.slots.due import unrecorded_slot
from foresail.slots.edits import dropped_text
from foresail.slots.observed import Observed
from foresail.slots.rules import missed_text
from foresail.slots.skip_immediately import skipped_text
from foresail.slots.spread import stable_delay
from foresail.slots.starts import NotRun, not_run_text


class Starts(Claim, msgspec.Struct, frozen=True):
    """The Backup that a Plan creates, and its slot; None for a further attempt at one."""

    backup: Key
    slot: datetime | None


def decide(view: ScheduleView, now: datetime) -> Plan:
    """Return what to do about a Schedule now, and when to reconcile next."""
    return plan(view, judge(view, now), now)


def plan(view: ScheduleView, verdict: Verdict, now: datetime) -> Plan:
    """Turn a verdict into writes, in the order that survives a crash between any two of them.

    The Backup comes first. Its name is derived from the slot, so a crash after it creates no second one. Only slots
    that a policy leaves out are recorded before it, by a reconcile of their own: slots are counted from the Backup.
    The next reconcile records it in status.lastBackup: when thousands of Schedules are due at once, all Backups are
    created before any status is written.
    """
    schedule = view.schedule
    subject = Subject(velero.SCHEDULE, schedule.key, schedule.uid)
    if schedule.is_terminating:
        return Plan(subject=subject, claims=(verdict,))
    if view.server.runs_schedules:
        return _left_to_velero(view, verdict, subject, now)
    runs = _runs(view, verdict)
    step = Step() if runs else _retention(view, verdict, now)  # a run comes first
    actions: tuple[Action, ...] = (*runs, *step.actions)
    status = _status(view, verdict, step)
    if step.ledger is not None and status is not None:  # a crash may count a deletion twice, never not
        actions = (status, *actions)
        status = None
    return Plan(
        actions=actions,
        status=status,
        notes=tuple(_notes(view, verdict, step, subject)),
        wake_at=_wake_at(view, verdict, now),
        subject=subject,
        claims=(verdict, *(Starts(run.key, verdict.fires) for run in runs)),
    )


def _retention(view: ScheduleView, verdict: Verdict, now: datetime) -> Step:
    """Return the next writes of retention; without rules, those that take back what earlier ones have announced."""
    if verdict.retained is None:
        return abandon(view)
    return next_step(view, verdict.retained, last_observed(view.schedule), now)


def _runs(view: ScheduleView, verdict: Verdict) -> tuple[Create, ...]:
    """Return the Backup to create now, for a slot or for a further attempt at one."""
    schedule = view.schedule
    settings = view.settings
    repeated = verdict.repeated
    if repeated is not None:
        ttl = lifetime_of(view, verdict)
        return (create_backup(schedule, repeated.slot, settings, ttl, repeated.made, view.namespaces),)
    if verdict.fires is not None:
        return (create_backup(schedule, verdict.fires, settings, lifetime_of(view, verdict), 0, view.namespaces),)
    return ()


def _status(view: ScheduleView, verdict: Verdict, step: Step) -> Patch | None:
    """Return the patch of the Schedule; None if nothing differs."""
    schedule = view.schedule
    slot = verdict.fires
    body = patch_body(schedule, verdict.changes)
    if step.ledger is not None:
        changes = msgspec.structs.replace(verdict.changes, observed=_charged(view, verdict, step.ledger))
        body = patch_body(schedule, changes)
    elif body and slot is not None:  # there is a patch anyway
        body = patch_body(schedule, _recorded(view, verdict, slot))
    return Patch(velero.SCHEDULE, schedule.key, body, schedule.version) if body else None


def _notes(view: ScheduleView, verdict: Verdict, step: Step, subject: Subject) -> Iterator[Note]:
    failed = verdict.retained.failed if verdict.retained is not None else None
    for because in (*reasons_to_report(verdict), step.because, failed):
        if because is not None and not _is_reported(view, verdict, because):
            yield note(subject, because)


def _recorded(view: ScheduleView, verdict: Verdict, slot: datetime) -> Changes:
    """Return the changes with the run that is created now."""
    changes = msgspec.structs.replace(verdict.changes, last_backup=slot)
    return msgspec.structs.replace(changes, observed=with_first_run(changes.observed, view, begins=True))


def _charged(view: ScheduleView, verdict: Verdict, ledger: Ledger) -> Observed:
    """Return what is remembered of a Schedule, with the deletion that is about to be requested."""
    deletions = dict(ledger.deletions)
    runs = dict(ledger.runs)
    observed = with_first_run(verdict.changes.observed, view)
    return msgspec.structs.replace(observed, deletions=deletions, deleted_runs=runs, deleting=ledger.last)


def _wake_at(view: ScheduleView, verdict: Verdict, now: datetime) -> datetime | None:
    """Return when to reconcile next; a run that waits in its group is reconciled within minutes, whatever happens.

    Sooner if a place is only reserved, for its Backup may never come.
    """
    at = next_reconcile(verdict, now)
    group = view.group
    recheck = next_deletion_check(view, verdict.retained, now) if verdict.retained is not None else None
    at = min((instant for instant in (at, recheck) if instant is not None), default=None)
    if group is None or not _is_limited(verdict.blocked_by):
        return at
    again = now + (RESERVED_FOR if group.is_reserving else RECHECK + stable_delay(str(view.schedule.key), RECHECK))
    return min(again, at or again)


def _is_limited(because: Because | None) -> bool:
    return because is not None and because.reason is Reason.CONCURRENCY_LIMIT


def _is_reported(view: ScheduleView, verdict: Verdict, because: Because) -> bool:
    """Whether an Event was emitted when the run began to wait in its group; the recheck emits no other one."""
    return view.group is not None and _is_limited(because) and view.group.turn == verdict.turn


def lifetime_of(view: ScheduleView, verdict: Verdict) -> timedelta | None:
    """Return the ttl of a Backup that retention deletes earlier; None, and the template decides."""
    slot = verdict.due or (verdict.attempts.slot if verdict.attempts else None)
    if slot is None or verdict.upcoming is None:
        return None
    return lifetime(view, slot, verdict.upcoming)


def _left_to_velero(view: ScheduleView, verdict: Verdict, subject: Subject, now: datetime) -> Plan:
    """Leave a Schedule alone while Velero runs it, for Velero writes the same fields.

    Only the last run of ours is recorded, lest Velero runs that slot again; and marks of retention, which are ours,
    are removed, so that nothing goes at once when Foresail runs the Schedule again.
    """
    schedule = view.schedule
    slot = unrecorded_slot(view.schedule, last_slot(view, now), now)
    body = {"status": {"lastBackup": stamp(slot)}} if slot is not None else None
    because = verdict.blocked_by
    notes = (note(subject, because),) if because and because.reason is Reason.VELERO_SCHEDULES else ()
    return Plan(
        abandon(view).actions,
        status=Patch(velero.SCHEDULE, schedule.key, body, schedule.version) if body else None,
        notes=notes,
        wake_at=next_reconcile(verdict, now),
        subject=subject,
        claims=(verdict,),
    )


def reasons_to_report(verdict: Verdict) -> list[Because]:
    """Return what to report as Events."""
    becauses = [
        verdict.refused,
        verdict.dialect_changed,
        verdict.in_future,
        verdict.retained.blocked_by if verdict.retained else None,
        None if verdict.is_settling else verdict.blocked_by,
    ]
    becauses += [verdict.stuck, verdict.ignored]
    if verdict.repeated is not None:
        becauses.append(repeating(verdict.repeated))
    elif verdict.attempts is not None:
        becauses.append(verdict.attempts.ended)
    if verdict.skipped:
        becauses.append(_skipped(verdict))
    if verdict.dropped is not None:
        becauses.append(_dropped(verdict, verdict.dropped))
    if verdict.not_run is not None:
        becauses.append(not_run(verdict.not_run, verdict.base))
    if verdict.fires is not None and verdict.missed:
        becauses.append(_missed(verdict, verdict.fires))
    return [because for because in becauses if because is not None]


def _skipped(verdict: Verdict) -> Because:
    return Because(Reason.SKIPPED, skipped_text(verdict.base, verdict.starts), Level.NORMAL)


def _dropped(verdict: Verdict, slot: datetime) -> Because:
    return Because(Reason.SKIPPED, dropped_text(slot, verdict.next_run), Level.NORMAL)


def not_run(slots: NotRun, base: datetime) -> Because:
    """Return which slots a policy left out, and why."""
    text = not_run_text(slots, base)
    if slots.expired:
        return Because(Reason.DEADLINE_EXCEEDED, text)
    return Because(Reason.OUTSIDE_WINDOW, text, Level.NORMAL)


def _missed(verdict: Verdict, slot: datetime) -> Because:
    return Because(Reason.MISSED, missed_text(verdict.missed, verdict.base, slot))
