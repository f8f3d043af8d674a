"""The rules of NonAdminSchedules: whether one is accepted, what blocks a run, and which old runs are deleted.

Which slot is due, and when skipImmediately applies, is decided by the rules that all kinds of schedule share.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.instants import stamp, whole
from foresail.cron import Dialect, Schedule
from foresail.cron.duration import length_of
from foresail.cron.zone_names import is_zone
from foresail.plan import Claim
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.policy.locations import missing
from foresail.selfservice.policy.quotas import no_policy
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.requests import outcome
from foresail.selfservice.requests.rules import is_refused, waiting_for
from foresail.selfservice.requests.status import ACCEPTED, TRUE
from foresail.selfservice.rows.requests import LARGEST_SPEC, RequestRow
from foresail.selfservice.rows.schedules import ScheduleRow, run_name
from foresail.selfservice.rows.velero import glimpse
from foresail.selfservice.schedules.view import ScheduleView
from foresail.selfservice.specs.build import backup_spec
from foresail.slots.due import base_of, last_slot, unrecorded_slot
from foresail.slots.edits import BeforeEdit, dropped_slot, zone_to_compare
from foresail.slots.expression import Unusable, read_expression, too_rare
from foresail.slots.interval import shortest_gap
from foresail.slots.policy_timing import closed_text, never_open_text, timing_problem, timing_under
from foresail.slots.rules import RARE_RECHECK, WINDOW_RECHECK, Evaluation, evaluate, is_edited, is_settling
from foresail.slots.spread import stable_delay
from foresail.slots.starts import NotRun, Placed, Timing, missed_slots, place, start_of_last
from foresail.tenancy.policies import PolicyRow

DIALECT = Dialect.ROBFIG
"""In which tenants' expressions are read: that of CronJobs, whichever Velero is installed."""

ZONE = "UTC"
"""Of expressions that name no zone."""

_DELAY = re.compile(r" \+([0-9]{1,9})s$")  # what `_delayed` adds to an expression

WAITS = (Reason.NO_POLICY, Reason.TOO_MANY_SCHEDULES, Reason.RESTORED_FROM_BACKUP, Reason.POLICY_INVALID)
"""Reasons that do not make a schedule invalid: it starts automatically when the reason is gone."""


class Verdict(Claim, msgspec.Struct, frozen=True):
    """The result of the rules for one NonAdminSchedule at one instant; slots include the policy's jitter."""

    evaluation: Evaluation
    refused: Refused | None = None
    last: datetime | None = None  # the slot of the last run, if status.lastBackup does not record it yet
    due: datetime | None = None  # the slot whose run is due, blocked or not
    upcoming: datetime | None = None  # when the run after that starts
    not_run: NotRun | None = None  # slots that a SchedulePolicy leaves out, to be recorded now
    wake_at: datetime | None = None  # when the clock alone may change this
    dropped: datetime | None = None  # the last slot that had not run when the expression, zone or delay was edited
    missed: int = 0  # slots before the due one that will not run; at most a hundred are counted
    blocked_by: Refused | None = None
    is_settling: bool = False  # too early to tell: reconcile again in a moment
    never_fires: bool = False

    @property
    def fires(self) -> datetime | None:
        """The slot to create a NonAdminBackup for now; slots that are left out are recorded before."""
        return None if self.blocked_by or self.is_settling or self.not_run else self.due


def judge(view: ScheduleView, now: datetime) -> Verdict:
    """Evaluate every rule in order; the first that refuses the schedule or blocks a run is reported."""
    reading = _read(view, now)
    verdict = Verdict(reading.evaluation, last=unrecorded_slot(view.schedule, reading.last, now))
    cron = reading.cron
    held = is_held(view)
    if isinstance(cron, Unusable):
        invalid = invalid_schedule(cron.message)
        return msgspec.structs.replace(verdict, refused=held or invalid, never_fires=cron.never_fires)
    if held is not None:  # before the windows are searched: a tenant may have any number that are held
        return msgspec.structs.replace(verdict, refused=held)
    placed = place(cron, reading.base, now - reading.delay, reading.timing)
    refused = _without_slots(view, placed) or problem(view, cron, now)
    if refused is not None:
        never_fires = placed.is_without_slots and not placed.is_never_open
        return msgspec.structs.replace(verdict, refused=refused, never_fires=never_fires)
    verdict = _record(view, verdict, reading, placed, now)
    if view.schedule.paused or placed.due is None:
        return verdict
    slot = placed.due + reading.delay
    blockers = (blocker(view, slot) for blocker in BLOCKERS)
    return msgspec.structs.replace(
        verdict,
        due=slot,
        missed=missed_slots(cron, reading.base, placed),
        blocked_by=next(filter(None, blockers), None) or outside_window(view, now),
        is_settling=_is_settling(view, now, placed.since),
    )


class _Reading(msgspec.Struct, frozen=True):
    """What is read of a schedule before its slots are placed."""

    last: datetime | None  # the last slot that has a backup
    delay: timedelta
    timing: Timing | None
    cron: Schedule | Unusable
    before: BeforeEdit | None
    evaluation: Evaluation

    @property
    def base(self) -> datetime:
        """The instant from which slots count, which do not include the delay."""
        return self.evaluation.base - self.delay


def _read(view: ScheduleView, now: datetime) -> _Reading:
    """Read the expression and what was observed before, and evaluate the rules that all kinds share."""
    delay = delay_of(view)
    schedule = _delayed(view.schedule, delay)
    previous = schedule.status.observed
    zone = zone_of(view)
    timing = timing_of(view)
    cron = read_expression(view.schedule.text, zone or ZONE, DIALECT)
    last = last_slot((*(backup.slot for backup in view.backups), view.deleted), now)
    before = _before_edit(schedule, last, zone, now)
    readable = None if isinstance(cron, Unusable) else cron
    evaluation = evaluate(
        schedule,
        previous,
        last,
        now,
        skips=False,
        zone=zone_to_compare(schedule, previous, before, readable, zone, now),
        offset=timing.offset if timing is not None else timedelta(),
    )
    observed = msgspec.structs.replace(evaluation.observed, zone=zone)
    return _Reading(last, delay, timing, cron, before, msgspec.structs.replace(evaluation, observed=observed))


def _without_slots(view: ScheduleView, placed: Placed) -> Refused | None:
    if not placed.is_without_slots:
        return None
    return never_in_window(view) if placed.is_never_open else invalid_schedule(too_rare(view.schedule.text).message)


def _record(view: ScheduleView, verdict: Verdict, reading: _Reading, placed: Placed, now: datetime) -> Verdict:
    """Add what is reported whether a run is due or not; what the clock decides includes the delay."""
    delay = reading.delay
    return msgspec.structs.replace(
        verdict,
        upcoming=placed.starts + delay if placed.starts is not None else None,
        not_run=None if view.schedule.paused else placed.not_run,
        wake_at=placed.wake_at + delay if placed.wake_at is not None else None,
        dropped=dropped_slot(reading.before, reading.evaluation, placed, now),
    )


def _before_edit(schedule: ScheduleRow, last: datetime | None, zone: str, now: datetime) -> BeforeEdit | None:
    """Return what an edit of an accepted schedule replaces; None if nothing was edited.

    The schedule is one with its delay in the text.
    """
    previous = schedule.status.observed
    accepted = schedule.status.condition(ACCEPTED)
    if previous is None or schedule.paused or accepted is None or accepted.status != TRUE:
        return None
    if previous.zone == zone and not is_edited(schedule, previous):
        return None
    suffix = _DELAY.search(previous.schedule)
    delay = timedelta(seconds=int(suffix[1])) if suffix is not None else timedelta()
    cron = read_expression(_DELAY.sub("", previous.schedule), previous.zone or ZONE, DIALECT)
    if isinstance(cron, Unusable):
        return None
    return BeforeEdit(cron, base_of(schedule, previous, last, now) - delay, delay)


def _delayed(schedule: ScheduleRow, delay: timedelta) -> ScheduleRow:
    """Return the schedule with its delay in the text: another delay counts like another expression."""
    seconds = delay // timedelta(seconds=1)
    return msgspec.structs.replace(schedule, text=f"{schedule.text} +{seconds}s") if seconds else schedule


def delay_of(view: ScheduleView) -> timedelta:
    """Return by how much the runs are delayed: at most the policy's jitter, the same for each run."""
    spec = view.policy.spec.schedules if view.policy is not None else None
    jitter = spec.jitter if spec is not None and not spec.schedule_policy else None
    return stable_delay(view.schedule.uid, duration(jitter)) if jitter else timedelta()


def timing_of(view: ScheduleView) -> Timing | None:
    """Return what the SchedulePolicy says about times; the delay is derived from the UID, which no tenant chooses."""
    return timing_under(view.schedule_policy, view.schedule.uid, zone_of(view) or ZONE)


def zone_of(view: ScheduleView) -> str:
    """Return the zone that the SchedulePolicy sets; empty if it sets none.

    While the policy cannot be used, the last zone stays: the slots of that time are not dropped.
    """
    if schedule_policy_problem(view) is not None:
        observed = view.schedule.status.observed
        return observed.zone if observed is not None and is_zone(observed.zone) else ""
    return (view.schedule_policy.spec.time_zone if view.schedule_policy is not None else None) or ""


def duration(text: str | None) -> timedelta:
    """Return the length of a duration of a policy."""
    return length_of(text or "0s") or timedelta()


# Whether it is accepted


def is_held(view: ScheduleView) -> Refused | None:
    """Say why a schedule does not run although nothing is wrong with it."""
    schedule = view.schedule
    policy = view.policy
    if schedule.restored_by:
        key = schedule.key
        ask = f"kubectl label nonadminschedule {key.name} --namespace {key.namespace} {velero.RESTORE_NAME_LABEL}-"
        text = f"Velero Restore {schedule.restored_by} restored this NonAdminSchedule, so it does not run"
        return Refused(Reason.RESTORED_FROM_BACKUP, f"{text}. To run it: {ask}")
    if policy is None:
        return no_policy(schedule.key.namespace)
    most = policy.spec.schedules.maximum
    if view.older < most:
        return schedule_policy_problem(view)
    if not most:
        text = f"SelfServicePolicy {policy.name} allows no NonAdminSchedule"
        return Refused(Reason.TOO_MANY_SCHEDULES, f"{text}; ask a cluster administrator to raise schedules.maximum")
    text = f"Limit of {most} NonAdminSchedules reached; starts automatically when an older one is deleted"
    raised = f"To raise it, ask a cluster administrator about schedules.maximum of SelfServicePolicy {policy.name}"
    return Refused(Reason.TOO_MANY_SCHEDULES, f"{text}. {raised}")


def schedule_policy_problem(view: ScheduleView) -> Refused | None:
    """Hold a schedule whose SchedulePolicy is missing or unusable: it may not run at just any time."""
    name = view.policy.spec.schedules.schedule_policy if view.policy is not None else None
    if view.policy is None or not name:
        return None
    policy = view.schedule_policy
    cause = view.schedule_policy_problem or ("it does not exist" if policy is None else timing_problem(policy.spec))
    if cause is None:
        return None
    text = f"SchedulePolicy {name}, which SelfServicePolicy {view.policy.name} names, cannot be used: {cause}"
    return Refused(Reason.POLICY_INVALID, f"{text}. Ask a cluster administrator to correct it")


def never_in_window(view: ScheduleView) -> Refused:
    """Refuse an expression none of whose slots is inside the windows."""
    text = never_open_text(view.schedule_policy, view.schedule.text)
    return Refused(Reason.NEVER_IN_WINDOW, f"{text} Correct spec.schedule, or ask a cluster administrator")


def problem(view: ScheduleView, cron: Schedule, now: datetime) -> Refused | None:
    """Say what the tenant must change before the schedule is accepted."""
    policy = view.policy
    if policy is None:
        return None
    return too_frequent(cron, policy, now) or template_problem(view.schedule, policy)


def too_frequent(cron: Schedule, policy: PolicyRow, now: datetime) -> Refused | None:
    """Refuse an expression with two fires closer together than the policy allows."""
    least = policy.spec.schedules.minimum_interval
    gap = shortest_gap(cron, now)
    if gap is None or gap >= duration(least):
        return None
    text = f"spec.schedule has runs only {in_units(gap)} apart"
    allowed = f"SelfServicePolicy {policy.name} allows one run in {least}"
    return Refused(Reason.POLICY_VIOLATION, f"{text}, but {allowed}. Make it less frequent")


def in_units(span: timedelta) -> str:
    """Return a length of time as people say it: 5 minutes, or 1 hour and 30 minutes."""
    minutes, seconds = divmod(round(span.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    numbers = ((hours, "hour"), (minutes, "minute"), (seconds, "second"))
    return " and ".join(f"{number} {unit}{'' if number == 1 else 's'}" for number, unit in numbers if number)


def template_problem(schedule: ScheduleRow, policy: PolicyRow) -> Refused | None:
    """Refuse a template whose backups would all be refused."""
    where = "spec.template.backupSpec"
    if schedule.is_oversized:
        text = f"{where} is larger than {LARGEST_SPEC // 1024} KiB of JSON; shorten it or split it"
        return Refused(Reason.INVALID_SCHEDULE_SPEC, text)
    try:
        tenant: dict[str, Any] = msgspec.json.decode(schedule.template or "{}", type=dict[str, Any])
    except RecursionError:
        return Refused(Reason.INVALID_SCHEDULE_SPEC, f"{where} is nested too deeply; flatten it")
    named = tenant.get("storageLocation")
    own = named if isinstance(named, str) and missing(named, policy) is not None else ""  # each run checks it
    spec = backup_spec(tenant, schedule.key.namespace, policy, own)
    if not isinstance(spec, Refused):
        return None
    is_invalid = spec.reason is Reason.INVALID_BACKUP_SPEC
    return Refused(Reason.INVALID_SCHEDULE_SPEC if is_invalid else spec.reason, f"spec.template: {spec.message}")


def invalid_schedule(message: str) -> Refused:
    """Refuse an expression that has no slots."""
    return Refused(Reason.INVALID_SCHEDULE_SPEC, message)


# What blocks a run that is due


def busy(view: ScheduleView, _slot: datetime) -> Refused | None:
    """Block a run while the one before it has not ended."""
    for backup in view.backups:
        if is_busy(backup):
            state = waiting_for(BACKUPS, backup) or velero_phase(backup) or backup.status.phase or "New"
            text = f"NonAdminBackup {backup.key.name} is {state}; the next run starts when it finishes"
            return Refused(Reason.BUSY, text)
    return None


def is_busy(backup: RequestRow) -> bool:
    """Whether a run has not ended; one that was refused has, and so has one that is being deleted."""
    is_over = outcome.has_ended(backup) or is_refused(BACKUPS, backup.status.phase, backup.status.condition(ACCEPTED))
    return not (is_over or backup.is_being_removed)


def velero_phase(backup: RequestRow) -> str:
    """Return the phase of the Velero Backup of a run; empty if there is none yet."""
    return glimpse(backup.status.velero.mirror).phase


def name_taken(view: ScheduleView, slot: datetime) -> Refused | None:
    """Block a run whose name another NonAdminBackup has: that one is left alone."""
    name = run_name(view.schedule.key.name, slot)
    if name not in view.taken:
        return None
    text = f"NonAdminBackup {name} exists and was not created by this schedule, so the run of {stamp(slot)} is blocked"
    return Refused(Reason.NAME_TAKEN, f"{text}. Delete that NonAdminBackup, or wait for the next run")


def outside_window(view: ScheduleView, now: datetime) -> Refused | None:
    """Block a run that was blocked until the windows closed; it starts when they open."""
    text = closed_text(view.schedule_policy, timing_of(view), now)
    return Refused(Reason.OUTSIDE_WINDOW, text) if text is not None else None


BLOCKERS: tuple[Callable[[ScheduleView, datetime], Refused | None], ...] = (busy, name_taken)


def _is_settling(view: ScheduleView, now: datetime, since: datetime | None) -> bool:
    last = view.schedule.last_backup
    is_known = last is not None and any(backup.slot == last for backup in view.backups)
    return is_settling(start_of_last(timing_of(view), last, since), now, is_known=is_known)


def refused_runs(view: ScheduleView) -> list[RequestRow]:
    """Return the runs that were refused before anything was backed up."""
    return [
        backup
        for backup in view.backups
        if is_refused(BACKUPS, backup.status.phase, backup.status.condition(ACCEPTED))
        and not (backup.status.velero.nacuuid or backup.is_being_removed)
    ]


def next_reconcile(verdict: Verdict, later: datetime | None, now: datetime) -> datetime | None:
    """Return the instant at which the clock alone may change the verdict."""
    if verdict.is_settling:
        return whole(now) + timedelta(seconds=1)
    if verdict.never_fires:
        return now + RARE_RECHECK
    if verdict.refused is not None and verdict.refused.reason is Reason.NEVER_IN_WINDOW:
        return now + WINDOW_RECHECK
    return min((instant for instant in (verdict.wake_at, later) if instant is not None), default=None)
