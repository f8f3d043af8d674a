"""The rules of Velero's Schedules: what blocks a run that is due, beside the rules that all kinds share.

Each rule is one small function named after its question; `judge` evaluates them in their order.
"""

from bisect import bisect_left
from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from foresail.api import velero
from foresail.api.instants import stamp, whole
from foresail.cron import Schedule
from foresail.plan import Claim, Level
from foresail.reporting import Because, some
from foresail.schedules.build import crashing_selector, has_hooks, unreadable_duration
from foresail.schedules.expression import diff_dialects, parse_expression, refusal
from foresail.schedules.groups import next_stuck, stuck
from foresail.schedules.observe import LocationRow, ScheduleRow, ScheduleView, Turn, is_unfinished
from foresail.schedules.policies import problem_with
from foresail.schedules.reasons import Reason
from foresail.schedules.retention import Retained, ledger_of, retain, with_first_run
from foresail.schedules.retries import Attempts, attempts_of, ended_slot, repeated_slot
from foresail.schedules.slots import backup_name, last_slot, made_by_velero, timing_of
from foresail.schedules.status import UNKNOWN, Changes, last_observed
from foresail.slots import rules
from foresail.slots.due import base_of, unrecorded_slot
from foresail.slots.edits import BeforeEdit, dropped_slot, zone_to_compare
from foresail.slots.expression import too_rare
from foresail.slots.observed import Observed
from foresail.slots.policy_timing import closed_text, never_open_text
from foresail.slots.rules import (
    RARE_RECHECK,
    SETTLING_TIME,
    WINDOW_RECHECK,
    Evaluation,
    evaluate,
    in_future_text,
    is_edited,
)
from foresail.slots.skip_immediately import skip_not_applied_text
from foresail.slots.starts import NotRun, Placed, Timing, first_start, missed_slots, place, start_of_last

MOST_NAMED = 2  # Backups or Schedules in a message
_LONGEST_SHOWN = 64  # characters of a wrong value in a message
LONGEST_NAME = 63  # of a label's value: the name of a Schedule is in a label of each of its Backups


class Verdict(Claim, msgspec.Struct, frozen=True):
    """The result of the rules for one Schedule at one instant."""

    changes: Changes
    base: datetime
    refused: Because | None = None  # it cannot run as it is
    skipped: bool = False  # skipImmediately was applied just now
    edited: bool = False
    due: datetime | None = None  # the slot whose run is due, blocked or not
    due_since: datetime | None = None  # the first instant at which that run could start
    turn: Turn | None = None  # by which a run or a further attempt that is due waits in its group
    upcoming: datetime | None = None  # the first slot that has not come yet
    starts: datetime | None = None  # the first instant at which that one may start
    not_run: NotRun | None = None  # slots that a policy leaves out, to be recorded now
    records_first: bool = False  # before a Backup, which would hide them; a record that is refused delays no run
    wake_at: datetime | None = None  # when the clock alone may change this
    dropped: datetime | None = None  # the last slot that had not run when the expression or the zone was edited
    missed: int = 0  # slots before the due one that will not run; at most a hundred are counted
    blocked_by: Because | None = None
    dialect_changed: Because | None = None  # another dialect, and with it other fires
    is_settling: bool = False  # too early to tell: reconcile again in a moment
    in_future: Because | None = None  # a recorded time is in the future and ignored
    retained: Retained | None = None  # which Backups retention keeps
    attempts: Attempts | None = None  # at the last slot, if failed runs are repeated
    repeats: bool = False  # another attempt is due, blocked or not
    stuck: Because | None = None  # a Backup that is unfinished for too long
    ignored: Because | None = None  # skipImmediately was set again without a pause, and that is not reported yet

    @property
    def fires(self) -> datetime | None:
        """The slot to make a Backup for now."""
        return None if self.blocked_by or self.is_settling or self.records_first else self.due

    @property
    def repeated(self) -> Attempts | None:
        """The attempts at the slot to make another Backup for now."""
        return self.attempts if self.repeats and not (self.blocked_by or self.is_settling) else None

    @property
    def next_run(self) -> datetime | None:
        """When the next run starts, or could have started: with a policy, later than its slot."""
        return self.due_since or self.starts


# What blocks a run that is due


def velero_schedules(view: ScheduleView, _now: datetime) -> Because | None:
    """Block runs while Velero's own schedule controller would create Backups for the same slots."""
    unread = view.server.unread
    if unread is not None:
        text = (
            f"Deployment {unread.key} cannot be read ({unread.problem}), so Velero may run Schedules itself. Correct it"
        )
        return Because(Reason.VELERO_SCHEDULES, f"{text}; the run then starts.")
    if not view.server.is_recognised:
        text = f"No Deployment or pod in namespace {view.schedule.key.namespace} is recognised as a Velero server, so"
        remedy = "If its controller is off, start the operator with --velero-schedules-off."
        return Because(Reason.VELERO_SCHEDULES, f"{text} Velero may run Schedules itself. {remedy}")
    if view.server.has_schedule_controller:
        text = "Velero's own schedule controller is on, so Foresail does not fire. Start Velero with"
        return Because(Reason.VELERO_SCHEDULES, f"{text} --disable-controllers=schedule.")
    pod = view.server.scheduling_pod
    if pod is None:
        return None
    text = f"Pod {pod} was started with Velero's own schedule controller. The run starts when the pod has ended"
    return Because(Reason.VELERO_SCHEDULES, f"{text}; if its node is lost, delete the pod.", Level.NORMAL)


def busy(view: ScheduleView, now: datetime) -> Because | None:
    """Block a run while the one before it has not ended."""
    for backup in view.backups:
        if is_unfinished(backup, view.schedule, now):
            text = f"Backup {backup.key} is {backup.phase or 'New'}; the next run starts when it finishes."
            return Because(Reason.BUSY, text)
    for unread in view.unread:
        text = f"Backup {unread.key} cannot be read ({unread.problem}), so it may be running. Correct or delete it"
        return Because(Reason.BUSY, f"{text}; the run then starts.")
    return None


def _earliest(*instants: datetime | None) -> datetime | None:
    return min((instant for instant in instants if instant is not None), default=None)


def outside_window(view: ScheduleView, now: datetime) -> Because | None:
    """Block a run that was blocked until the windows of the policy closed; it starts when they open."""
    text = closed_text(view.policy, timing_of(view), now)
    return Because(Reason.OUTSIDE_WINDOW, text, Level.NORMAL) if text is not None else None


def location_unavailable(view: ScheduleView, _now: datetime) -> Because | None:
    """Block a run while its location is unavailable: Velero would fail the Backup for good."""
    return _location_problem(view)


def location_problem(name: str, location: LocationRow | None, *, is_for_restore: bool = False) -> str:
    """Return why a storage location cannot be used now, by the name that a spec has; empty if it can."""
    if location is None:
        return f"BackupStorageLocation {name} does not exist" if name else "there is no default storage location"
    if location.is_read_only and not is_for_restore:
        return f"BackupStorageLocation {location.key} is read-only"
    if location.phase != velero.AVAILABLE:
        cause = f": {location.message}" if location.message else ""
        return f"BackupStorageLocation {location.key} is {location.phase or 'not checked by Velero yet'}{cause}"
    return ""


def _location_problem(view: ScheduleView) -> Because | None:
    problem = location_problem(view.schedule.location, view.location)
    if not problem:
        return None
    return Because(Reason.LOCATION_UNAVAILABLE, f"{problem}; the run starts when it is available.")


def concurrency_limit(view: ScheduleView, turn: Turn) -> Because | None:
    """Block a run while as many Backups of its group are unfinished as may be, or earlier ones wait for a place."""
    group = view.group
    if group is None:
        return None
    ahead = group.waiting[: bisect_left(group.waiting, (turn, view.schedule.key))]
    if len(ahead) < group.free:
        return None
    if group.free:
        first = ", ".join(key.name for _, key in ahead[:MOST_NAMED])
        text = f"Schedule {first} waits longer for a place in {group.name}; this run follows."
        return Because(Reason.CONCURRENCY_LIMIT, text, Level.NORMAL)
    named = some(group.unfinished, MOST_NAMED, len(group.unfinished) + group.more)
    by = f" (the smallest max, of SchedulePolicy {group.limited_by})" if group.limited_by else ""
    text = f"Limit of {group.most} concurrent Backups of {group.name}{by} reached: {named}."
    return Because(Reason.CONCURRENCY_LIMIT, f"{text} The run starts when one finishes.", Level.NORMAL)


def hooks_not_allowed(view: ScheduleView, _: datetime) -> Because | None:
    """Block a run whose hooks the API server would refuse until the chart lists its Schedule."""
    name = view.schedule.key.name
    if view.settings.allows_hooks(name) or not has_hooks(view.schedule.template):
        return None
    text = "spec.template.hooks run commands in pods, which schedules.withHooks of the chart does not allow"
    return Because(Reason.HOOKS_NOT_ALLOWED, f"{text} for {name}; the run starts when it is listed there.")


BLOCKERS: tuple[Callable[[ScheduleView, datetime], Because | None], ...] = (
    velero_schedules,
    busy,
    outside_window,
    location_unavailable,
    hooks_not_allowed,
)


def is_settling(view: ScheduleView, now: datetime, since: datetime | None = None) -> bool:
    """Whether the store does not have the Backup of the last run yet, so that its phase is unknown."""
    last = view.schedule.last_backup
    name = backup_name(view.schedule, last) if last is not None else ""
    started = start_of_last(timing_of(view), last, since)
    return rules.is_settling(started, now, is_known=any(backup.key.name == name for backup in view.backups))


def is_version_awaited(view: ScheduleView, now: datetime) -> bool:
    """Whether the version was requested a moment ago, and an answer may still come."""
    return view.server.version_requested is not None and abs(now - view.server.version_requested) < SETTLING_TIME


# All together


def judge(view: ScheduleView, now: datetime) -> Verdict:
    """Evaluate every rule in order; the first that blocks a run is reported."""
    reading = _read(view, now)
    placing = _place(view, reading, now)
    verdict = _record(view, reading, placing, now)
    cron = placing.cron
    if isinstance(cron, Because):
        return _refuse(view, verdict, cron, now)
    if view.schedule.paused:
        return verdict
    return _block(view, verdict, cron, placing, now)


class _Reading(msgspec.Struct, frozen=True):
    """What is read of a Schedule before its slots are placed."""

    previous: Observed | None
    last: datetime | None  # the last slot that has a Backup
    zone: str  # of the policy
    timing: Timing | None
    cron: Schedule | Because
    before: BeforeEdit | None
    evaluation: Evaluation
    is_refused: bool  # by its name, its template or its policy, whatever the expression is


class _Placing(msgspec.Struct, frozen=True):
    """Where the slots are; `base` counts a Backup that Velero has made itself."""

    cron: Schedule | Because  # or why there is no slot
    base: datetime
    placed: Placed = Placed()
    made: datetime | None = None  # by Velero, for a slot that seemed due


def _read(view: ScheduleView, now: datetime) -> _Reading:
    """Read the expression and what was observed before, and evaluate the rules that all kinds share."""
    schedule = view.schedule
    previous = last_observed(schedule)
    refused = _name_too_long(schedule) or _fatal_template(schedule) or _policy_problem(view)
    cron = refused or parse_expression(schedule.text, view.settings.zone, view.server.dialect, now)
    last = last_slot(view, now)
    zone = (view.policy.spec.time_zone if view.policy else None) or ""
    timing = timing_of(view)
    before = _before_edit(view, previous, last, zone, now)
    readable = None if isinstance(cron, Because) else cron
    evaluation = evaluate(
        schedule,
        previous,
        last,
        now,
        skips=view.settings.skip_immediately,
        zone=zone_to_compare(schedule, previous, before, readable, zone, now),
        offset=timing.offset if timing is not None else timedelta(),
    )
    return _Reading(previous, last, zone, timing, cron, before, evaluation, is_refused=refused is not None)


def _place(view: ScheduleView, reading: _Reading, now: datetime) -> _Placing:
    """Place the slots; one that Velero has made a Backup for is not due."""
    cron = reading.cron
    base = reading.evaluation.base
    if isinstance(cron, Because):
        return _Placing(cron, base)
    placed = place(cron, base, now, reading.timing)
    made = made_by_velero(view, placed.due) if placed.due is not None else None
    if made is not None:
        base = max(base, made)
        placed = place(cron, base, now, reading.timing)
    if not placed.is_without_slots:
        return _Placing(cron, base, placed, made)
    never = _never_in_window(view) if placed.is_never_open else refusal(too_rare(view.schedule.text))
    return _Placing(never, base, made=made)


def _record(view: ScheduleView, reading: _Reading, placing: _Placing, now: datetime) -> Verdict:
    """Return what is remembered and reported, whether a run is due or not."""
    schedule = view.schedule
    previous = reading.previous
    evaluation = reading.evaluation
    retained = None if reading.is_refused else retain(view, previous, now)
    observed = _observed(view, reading, retained, now)
    placed = placing.placed
    attempts = None
    if not reading.is_refused:
        attempts = attempts_of(view, observed, placed.since or placed.starts, previous, now)
    ended = ended_slot(attempts, previous, paused=schedule.paused)
    observed = msgspec.structs.replace(observed, ended=ended, repeated=repeated_slot(attempts))
    recorded = placing.made or unrecorded_slot(schedule, reading.last, now)
    if recorded is not None:  # there is a write anyway
        takes_over = placing.made is not None and not view.server.has_schedule_controller
        observed = with_first_run(observed, view, begins=takes_over)
    if schedule.paused:
        placed = Placed()
    not_run = placed.not_run
    is_newly_ignored = observed.ignored and not (previous and previous.ignored)
    return Verdict(
        _changes(schedule, evaluation, observed, placing.cron, not_run, recorded, now),
        placing.base,
        skipped=evaluation.skipped,
        edited=evaluation.edited,
        dialect_changed=_dialect_changed(view, previous, now),
        in_future=_in_future(evaluation.future),
        retained=retained,
        attempts=attempts,
        not_run=not_run,
        records_first=not_run is not None and not view.is_record_refused,
        wake_at=_earliest(placed.wake_at, next_stuck(view, now)),
        stuck=stuck(view, now),
        dropped=dropped_slot(reading.before, evaluation, placed, now),
        ignored=skip_not_applied() if is_newly_ignored else None,
    )


def _observed(view: ScheduleView, reading: _Reading, retained: Retained | None, now: datetime) -> Observed:
    """Return what the shared rules remember, with what only Velero's Schedules do."""
    previous = reading.previous
    evaluation = reading.evaluation
    ledger = ledger_of(previous)  # also without rules: they may return within a day
    return msgspec.structs.replace(
        evaluation.observed,
        dialect=_dialect(view, previous, now, edited=evaluation.edited),
        retention=retained.digest if retained is not None and retained.is_in_effect else "",
        zone=reading.zone,
        deletions=dict(ledger.deletions),
        deleted_runs=dict(ledger.runs),
        deleting=ledger.last,
        first=previous.first if previous is not None else "",
    )


def _changes(
    schedule: ScheduleRow,
    evaluation: Evaluation,
    observed: Observed,
    cron: Schedule | Because,
    not_run: NotRun | None,
    recorded: datetime | None,
    now: datetime,
) -> Changes:
    """Return the desired state; while the dialect is unknown, whether the Schedule is valid stays as it is."""
    phase = velero.ENABLED
    errors: tuple[str, ...] = ()
    if isinstance(cron, Because):
        is_unknown = cron.reason is Reason.DIALECT_UNKNOWN
        phase = schedule.phase if is_unknown else velero.FAILED_VALIDATION
        errors = schedule.errors if is_unknown else (cron.message,)
    last_skipped = not_run.last if not_run is not None else None
    return Changes(
        observed=observed,
        phase=phase,
        errors=errors,
        last_backup=recorded,
        last_skipped=whole(now) if evaluation.skipped else last_skipped,
        clears_skip=evaluation.skipped and schedule.skip is True,
        clears=tuple(field for field in ("lastBackup", "lastSkipped") if field in evaluation.future),
    )


def _refuse(view: ScheduleView, verdict: Verdict, problem: Because, now: datetime) -> Verdict:
    """Refuse a Schedule without slots; while only the dialect is unknown, block it."""
    if problem.reason is not Reason.DIALECT_UNKNOWN:
        return msgspec.structs.replace(verdict, refused=problem)
    blocked_by = None if view.schedule.paused else problem
    return msgspec.structs.replace(verdict, blocked_by=blocked_by, is_settling=is_version_awaited(view, now))


def _block(view: ScheduleView, verdict: Verdict, cron: Schedule, placing: _Placing, now: datetime) -> Verdict:
    """Add the run or the further attempt that is due, and what blocks it."""
    placed = placing.placed
    attempts = verdict.attempts
    verdict = msgspec.structs.replace(verdict, upcoming=placed.upcoming, starts=placed.starts)
    repeats = placed.due is None and attempts is not None and attempts.is_due(now)
    since = _waits_since(view, cron, verdict.changes.observed, placed, now)
    if since is None and attempts is not None:
        since = attempts.slot
    if since is None or (placed.due is None and not repeats):
        return verdict
    turn = Turn(since, _last_start(view))
    blockers = (blocker(view, now) for blocker in BLOCKERS)
    return msgspec.structs.replace(
        verdict,
        due=placed.due,
        due_since=placed.since,
        turn=turn,
        missed=missed_slots(cron, placing.base, placed),
        repeats=repeats,
        wake_at=_earliest(_wake_at(view, placed, now), verdict.wake_at) if repeats else verdict.wake_at,
        blocked_by=next(filter(None, blockers), None) or concurrency_limit(view, turn),
        is_settling=is_settling(view, now, placed.since),
    )


def _waits_since(
    view: ScheduleView, cron: Schedule, observed: Observed, placed: Placed, now: datetime
) -> datetime | None:
    """Return the first instant at which a slot since the last run could start: slots that a policy left out count."""
    if view.group is None or placed.since is None:
        return placed.since
    run = msgspec.structs.replace(view.schedule, last_skipped=None)
    first = first_start(cron, base_of(run, observed, last_slot(view, now), now), now, timing_of(view))
    return min(first, placed.since) if first is not None else placed.since


def _last_start(view: ScheduleView) -> datetime:
    """Return when the last run of a Schedule started, as far as is known."""
    schedule = view.schedule
    ours = (backup.created for backup in view.backups if backup.schedule_uid == schedule.uid)
    return max(ours, default=schedule.last_backup or schedule.created)


def _before_edit(
    view: ScheduleView, previous: Observed | None, last: datetime | None, zone: str, now: datetime
) -> BeforeEdit | None:
    """Return what was observed before an edit of the expression or of the policy's zone; None if nothing was edited."""
    schedule = view.schedule
    settings = view.settings
    if previous is None or schedule.paused or (previous.zone == zone and not is_edited(schedule, previous)):
        return None
    zone = previous.zone or settings.zone_without_policy or settings.zone
    cron = parse_expression(previous.schedule, zone, view.server.dialect, now)
    return None if isinstance(cron, Because) else BeforeEdit(cron, base_of(schedule, previous, last, now))


def cannot_run(view: ScheduleView, verdict: Verdict) -> Because | None:
    """Return why no run can start until someone changes something; a pause is intended and does not count."""
    if view.schedule.paused:
        return None
    is_missing = view.location is None or view.location.is_read_only
    return verdict.refused or (_location_problem(view) if is_missing else None)


def next_reconcile(verdict: Verdict, now: datetime) -> datetime | None:
    """Return the instant at which the clock alone may change the verdict."""
    if verdict.is_settling:
        return now + timedelta(seconds=1)
    if verdict.refused is not None and verdict.refused.reason is Reason.NEVER_FIRES:
        return now + RARE_RECHECK  # a fire in eight years is found once it is within five
    if verdict.refused is not None and verdict.refused.reason is Reason.NEVER_IN_WINDOW:
        return now + WINDOW_RECHECK
    again = verdict.attempts.next_at if verdict.attempts else None
    if again is None or verdict.due is not None or again <= now:
        return verdict.wake_at
    return min(again, verdict.wake_at or again)


def _dialect(view: ScheduleView, previous: Observed | None, now: datetime, *, edited: bool) -> str:
    """Return the dialect to store: only for expressions on which the two differ, which saves writes."""
    known = view.server.dialect
    if previous is None or edited:
        differs = diff_dialects(view.schedule.text, view.settings.zone, now) is not None
    else:
        differs = bool(previous.dialect)
    if known is None:
        before = previous.dialect if previous and not edited else ""
        return before or (UNKNOWN if differs else "")
    return known.value if differs else ""


def _dialect_changed(view: ScheduleView, previous: Observed | None, now: datetime) -> Because | None:
    known = view.server.dialect
    if known is None or previous is None or previous.read_by in (None, known) or is_edited(view.schedule, previous):
        return None
    diff = diff_dialects(view.schedule.text, view.settings.zone, now)
    if diff is None:
        return None
    fires = sorted((*diff.removed, *diff.added))
    first = f" The first fire that differs is {stamp(fires[0])}." if fires else ""
    reason = f": {diff.reason}" if diff.reason else ""
    text = (
        f"Velero {view.server.version} now reads {view.schedule.text!r} by the rules of {known.value}{reason}.{first}"
    )
    return Because(Reason.DIALECT_CHANGED, text)


def _in_future(fields: dict[str, datetime]) -> Because | None:
    return Because(Reason.TIME_IN_FUTURE, in_future_text(fields)) if fields else None


def skip_not_applied() -> Because:
    """Return why a second skipImmediately has no effect."""
    return Because(Reason.SKIP_NOT_APPLIED, skip_not_applied_text(velero.SCHEDULE.name), Level.NORMAL)


def _policy_problem(view: ScheduleView) -> Because | None:
    problem = problem_with(view.policy) if view.policy else None
    if view.policy is None or problem is None:
        return None
    return Because(Reason.POLICY_INVALID, f"SchedulePolicy {view.policy.name} cannot be used: {problem}. Correct it.")


def _wake_at(view: ScheduleView, placed: Placed, now: datetime) -> datetime | None:
    """Return when to reconcile a further attempt: at the next slot, or when the windows open."""
    timing = timing_of(view)
    opening = timing.opens(whole(now)) if timing is not None else None
    return placed.wake_at if opening == whole(now) else _earliest(placed.wake_at, opening)


def _never_in_window(view: ScheduleView) -> Because:
    text = never_open_text(view.policy, view.schedule.text)
    return Because(Reason.NEVER_IN_WINDOW, f"{text} Correct spec.windows.")


def _name_too_long(schedule: ScheduleRow) -> Because | None:
    if len(schedule.key.name) <= LONGEST_NAME:
        return None
    text = f"the name has {len(schedule.key.name)} characters, which does not fit into the label of a Backup"
    return Because(Reason.NAME_TOO_LONG, f"{text}. Create it again with at most {LONGEST_NAME} characters.")


def _fatal_template(schedule: ScheduleRow) -> Because | None:
    """Return what in a template would stop Velero, and with it the backups of everybody."""
    malformed = crashing_selector(schedule.template)
    if malformed is not None:
        text = f"a selector of spec.template.orLabelSelectors is malformed: {malformed[:_LONGEST_SHOWN]}"
        return Because(Reason.INVALID, f"{text}; Velero would crash, and all later backups would wait. Correct it.")
    field = unreadable_duration(schedule.template)
    if field is None:
        return None
    text = f"spec.template.{field[0]} {field[1][:_LONGEST_SHOWN]!r} is not a duration that Velero can read"
    return Because(Reason.INVALID, f"{text}; a Backup with it would stop Velero. Correct it, such as 720h0m0s.")
