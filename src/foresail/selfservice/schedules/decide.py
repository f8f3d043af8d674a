"""From the verdict about a NonAdminSchedule to the Plan: at most one run, one status, and the Events."""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from foresail import deletion_writes
from foresail.api.instants import stamp, whole
from foresail.api.marks import REQUESTER, REQUESTER_GROUPS, SCHEDULE_UID, SLOT
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_SCHEDULE
from foresail.deletion import Stored
from foresail.plan import Action, Create, Delete, Key, Level, Patch, Plan, Subject
from foresail.reporting import Because, note
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.requests.status import ACCEPTED, BACKING_OFF, CREATED, FALSE, NEW, TRUE, NewCondition, forward
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.schedules import ScheduleRow, ScheduleStatus, run_name
from foresail.selfservice.schedules.keep_last import Outdated, held, is_marked, outdated
from foresail.selfservice.schedules.rules import WAITS, Verdict, judge, next_reconcile, refused_runs
from foresail.selfservice.schedules.status import READY, RETAINING, patch_body, recent_backups, with_conditions
from foresail.selfservice.schedules.view import ScheduleView
from foresail.slots.edits import dropped_text
from foresail.slots.rules import in_future_text, missed_text
from foresail.slots.skip_immediately import skip_not_applied_text, skipped_text
from foresail.slots.starts import not_run_text


def create_run(schedule: ScheduleRow, slot: datetime) -> Create:
    """Return the creation of the NonAdminBackup of a slot, in the name of whoever last changed the schedule.

    There is no owner reference: deleting the schedule keeps its backups until they expire.
    """
    requester = {REQUESTER: schedule.requester, REQUESTER_GROUPS: "\n".join(schedule.requester_groups)}
    spec = msgspec.json.decode(schedule.template or "{}", type=dict[str, object])
    body: dict[str, object] = {
        "metadata": {"annotations": {name: value for name, value in requester.items() if value}},
        "spec": {"backupSpec": spec},
    }
    mark = {SCHEDULE_UID: schedule.uid, SLOT: stamp(slot)}
    return Create(NON_ADMIN_BACKUP, Key(schedule.key.namespace, run_name(schedule.key.name, slot)), body, mark)


def request_deletion(backup: RequestRow, at: datetime, why: str) -> Patch:
    """Return the write that asks for a deletion as a tenant would; it fails if the backup has changed."""
    metadata = {"uid": backup.uid, "annotations": deletion_writes.mark_annotations(at, why)}
    return Patch(NON_ADMIN_BACKUP, backup.key, {"metadata": metadata, "spec": {"deleteBackup": True}}, backup.version)


def mark(backup: RequestRow, at: datetime | None, why: str) -> Patch:
    """Return the write of the mark that a backup is deleted later, or of its removal."""
    return deletion_writes.mark(NON_ADMIN_BACKUP, backup.key, backup.uid, backup.version, at, why)


def delete_refused(backup: RequestRow) -> Delete:
    """Return the deletion of a run that was refused: nothing was backed up for it."""
    return Delete(NON_ADMIN_BACKUP, backup.key, backup.uid)


def remove_skip(schedule: ScheduleRow) -> Patch:
    """Return the write that removes spec.skipImmediately, which has been applied."""
    body = {"metadata": {"uid": schedule.uid}, "spec": {"skipImmediately": None}}
    return Patch(NON_ADMIN_SCHEDULE, schedule.key, body)


_MOST_MARKS = 10  # of runs that one Plan marks; the next Plan goes on


def decide(view: ScheduleView, now: datetime) -> Plan:
    """Return what to do about a NonAdminSchedule now, and when to reconcile next."""
    schedule = view.schedule
    namespace = view.namespace
    if schedule.is_terminating or namespace is None or namespace.is_terminating:
        return Plan(subject=subject_of(schedule))
    return run_when_due(view, judge(view, now), now)


def run_when_due(view: ScheduleView, verdict: Verdict, now: datetime) -> Plan:
    """Turn a verdict into writes, in the order that survives a crash between any two of them.

    The run comes first. Its name is derived from the slot, so a crash after it creates no second one; the next
    reconcile records it. skipImmediately is removed from the spec after the status says that it was applied.
    """
    schedule = view.schedule
    subject = subject_of(view.schedule)
    is_cleared = is_to_be_cleared(schedule)
    old = _outdated(view, verdict, now)
    gone = old.gone if verdict.fires is None and not is_cleared else None
    if gone is not None and gone.name not in old.decision.approved:
        old = msgspec.structs.replace(old, ledger=old.ledger.with_deletion(gone, now))
    after = next_status(view, verdict, old, now)
    body = patch_body(schedule.status, after)
    actions = _actions(view, verdict, old, gone, now)
    if is_cleared:
        actions.append(remove_skip(schedule))
    is_written = bool(body) and not is_cleared  # the write before it would make this one stale
    status = Patch(NON_ADMIN_SCHEDULE, schedule.key, {"status": body}, schedule.version, "status")
    if gone is not None and is_written:  # a crash may count a deletion twice, never not at all
        actions.insert(0, status)
    return Plan(
        actions=tuple(actions),
        status=status if is_written and gone is None else None,
        notes=tuple(note(subject, report) for report in _news(view, verdict, after)),
        wake_at=next_reconcile(verdict, old.later, now),
        subject=subject,
        claims=(verdict,),
    )


def _outdated(view: ScheduleView, verdict: Verdict, now: datetime) -> Outdated:
    """Return what becomes of old runs; for one run that waits, one schedule of the namespace makes room."""
    if verdict.refused is not None:
        return held(view.schedule.status.observed)
    if view.is_full and _is_room_made(view, now):
        view = _without_need(view)
    return outdated(view, now)


def _is_room_made(view: ScheduleView, now: datetime) -> bool:
    """Whether another schedule deletes a run: to make room before this one, or because one is due anyway."""
    return any(_makes_room(other, now) for other in view.first) or any(_has_due(other, now) for other in view.last)


def _makes_room(view: ScheduleView, now: datetime) -> bool:
    return judge(view, now).refused is None and outdated(view, now).gone is not None


def _has_due(view: ScheduleView, now: datetime) -> bool:
    return _makes_room(_without_need(view), now)


def _without_need(view: ScheduleView) -> ScheduleView:
    """Return what a schedule sees while no run waits for room."""
    return msgspec.structs.replace(view, is_full=False)


def _actions(view: ScheduleView, verdict: Verdict, old: Outdated, gone: Stored | None, now: datetime) -> list[Action]:
    """Return the writes about runs: create one, delete one, or mark some that go."""
    if verdict.fires is not None:
        return [create_run(view.schedule, verdict.fires), *map(delete_refused, refused_runs(view))]
    if gone is None:
        return list(_marks(view, old, now))
    row = next(row for row in view.backups if row.key.name == gone.name)
    return [request_deletion(row, now, old.decision.goes[gone.name])]


def _marks(view: ScheduleView, old: Outdated, now: datetime) -> Iterator[Action]:
    """Yield the marks of runs that go later or wait for an approval, and the removal of those that stay by now."""
    rows = {row.key.name: row for row in view.backups}
    decision = old.decision
    asked = [rows[name] for name in decision.asks]
    new = [mark(row, None, decision.goes[row.key.name]) for row in asked if not row.waits_for_approval]
    stays = [row for row in view.backups if is_marked(row) and row.key.name not in decision.goes]
    new += [mark(row, None, "") for row in stays if not row.is_being_removed]
    if old.grace:
        new += [mark(rows[name], now + old.grace, decision.goes[name]) for name in decision.marks]
    return iter(new[:_MOST_MARKS])


def is_to_be_cleared(schedule: ScheduleRow) -> bool:
    """Whether skipImmediately was applied and is still in the very spec that it was read from."""
    return schedule.skip is True and schedule.status.clearing == schedule.generation


def _recorded(at: datetime | None, before: str) -> str:
    return before if at is None else stamp(at)


def next_status(view: ScheduleView, verdict: Verdict, old: Outdated, now: datetime) -> ScheduleStatus:
    """Return the status that says what the rules found."""
    schedule = view.schedule
    evaluation = verdict.evaluation
    before = view.schedule.status
    last = verdict.fires or verdict.last
    future = evaluation.future
    not_run = verdict.not_run.last if verdict.not_run is not None else None
    skipped = whole(now) if evaluation.skipped else not_run
    status = ScheduleStatus(
        phase=forward(before.phase, _phase(verdict)),
        conditions=before.conditions,
        next_run=stamp(verdict.upcoming) if verdict.upcoming is not None else "",
        last_backup=_recorded(last, "" if "lastBackup" in future else before.last_backup),
        last_skipped=_recorded(skipped, "" if "lastSkipped" in future else before.last_skipped),
        recent=recent_backups(view.backups),
        observed=msgspec.structs.replace(
            evaluation.observed,
            retention=old.digest,
            asks=old.asks,
            deletions=dict(old.ledger.deletions),
            deleted_runs=dict(old.ledger.runs),
            deleting=old.ledger.last,
        ),
        clearing=schedule.generation if evaluation.skipped and schedule.skip is True else _clearing(schedule),
    )
    if verdict.fires is not None and _is_all_but_run(before, status):
        # Thousands may be due at once: all runs are created before any status is written.
        return before
    wanted = (*_conditions(view, verdict), *_retention(before, old))
    return with_conditions(status, wanted, schedule.generation, now)


def _is_all_but_run(before: ScheduleStatus, after: ScheduleStatus) -> bool:
    """Whether a status differs in the run that is created now, and in what follows from it, alone."""
    same = msgspec.structs.replace(after, next_run=before.next_run, last_backup=before.last_backup)
    return bool(before.conditions) and same == before


def _clearing(schedule: ScheduleRow) -> int:
    return schedule.status.clearing if is_to_be_cleared(schedule) else 0


def _phase(verdict: Verdict) -> str:
    if verdict.refused is None:
        return CREATED
    return NEW if verdict.refused.reason in WAITS else BACKING_OFF


def _conditions(view: ScheduleView, verdict: Verdict) -> Iterator[NewCondition]:
    refused = verdict.refused
    if refused is not None:
        yield NewCondition(ACCEPTED, FALSE, refused.reason, refused.message)
        yield NewCondition(READY, FALSE, refused.reason, refused.message)
        return
    yield NewCondition(ACCEPTED, TRUE, Reason.SCHEDULE_ACCEPTED, "schedule accepted")
    why = blocked_by(view, verdict)
    if why is not None:
        yield NewCondition(READY, FALSE, why.reason, why.message)
    else:
        yield NewCondition(READY, TRUE, Reason.SCHEDULED, "The next run starts at status.nextRun")


def _retention(before: ScheduleStatus, old: Outdated) -> Iterator[NewCondition]:
    """Yield what blocks the deletion of old runs; once, that nothing does any more."""
    if old.blocked_by is not None:
        yield NewCondition(RETAINING, FALSE, old.blocked_by.reason, old.blocked_by.message)
    elif before.condition(RETAINING) is not None:
        yield NewCondition(RETAINING, TRUE, Reason.RETENTION_APPLIES, "Old runs are deleted as the policy says")


def blocked_by(view: ScheduleView, verdict: Verdict) -> Refused | None:
    """Return why no run starts although the schedule is accepted."""
    if view.schedule.paused:
        text = f"spec.paused is true; unpause it with foresail backup schedule unpause {view.schedule.key.name}"
        return Refused(Reason.PAUSED, text)
    return None if verdict.is_settling else verdict.blocked_by


def _news(view: ScheduleView, verdict: Verdict, after: ScheduleStatus) -> Iterator[Because]:
    """Return what to report as Events: conditions with another status or reason, and what happened to slots."""
    before = view.schedule.status
    evaluation = verdict.evaluation
    yield from _new_conditions(verdict, before, after)
    if evaluation.future:
        yield Because(Reason.TIME_IN_FUTURE, in_future_text(evaluation.future))
    if evaluation.observed.ignored and not (before.observed and before.observed.ignored):
        yield Because(Reason.SKIP_NOT_APPLIED, skip_not_applied_text(NON_ADMIN_SCHEDULE.name), Level.NORMAL)
    if evaluation.skipped:
        yield Because(Reason.SKIPPED, skipped_text(evaluation.base, verdict.upcoming), Level.NORMAL)
    if verdict.dropped is not None:
        yield Because(Reason.SKIPPED, dropped_text(verdict.dropped, verdict.due or verdict.upcoming), Level.NORMAL)
    if verdict.not_run is not None:
        is_late = verdict.not_run.expired > 0
        reason, level = (Reason.DEADLINE_EXCEEDED, Level.WARNING) if is_late else (Reason.OUTSIDE_WINDOW, Level.NORMAL)
        yield Because(reason, not_run_text(verdict.not_run, evaluation.base), level)
    if verdict.fires is not None and verdict.missed:
        yield Because(Reason.MISSED, missed_text(verdict.missed, evaluation.base, verdict.fires))


def _new_conditions(verdict: Verdict, before: ScheduleStatus, after: ScheduleStatus) -> Iterator[Because]:
    """Yield the conditions with another status or reason, except those that an Event of their own reports."""
    old = {condition.type: (condition.status, condition.reason) for condition in before.conditions}
    for condition in after.conditions:
        is_same = old.get(condition.type) == (condition.status, condition.reason)
        is_twice = condition.type == READY and verdict.refused is not None
        if is_same or is_twice or condition.reason == Reason.SCHEDULED:
            continue
        warns = condition.status == FALSE and condition.reason not in (Reason.PAUSED, Reason.OUTSIDE_WINDOW)
        yield Because(Reason(condition.reason), condition.message, Level.WARNING if warns else Level.NORMAL)


def subject_of(schedule: ScheduleRow) -> Subject:
    """Return the NonAdminSchedule as the subject of a Plan."""
    return Subject(NON_ADMIN_SCHEDULE, schedule.key, schedule.uid)
