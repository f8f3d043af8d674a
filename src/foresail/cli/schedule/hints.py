"""What a user should know beside the answer: who else manages a Schedule, and who fires it."""

from collections.abc import Iterable
from datetime import datetime

from foresail.api.instants import stamp
from foresail.cli.access.managed_by import ManagedMetadata, managing_tool
from foresail.cli.output.messages import hint
from foresail.cli.schedule.snapshot import EvaluatedSchedule
from foresail.proof.reasons import OVERDUE, Reason
from foresail.schedules.observe import ScheduleRow
from foresail.schedules.reasons import Reason as Blocked

_MANAGED = "app.kubernetes.io/managed-by"


def manager_of(schedule: ScheduleRow) -> str:
    """Return the tool that manages a Schedule; empty if none is known."""
    key = schedule.key
    metadata = ManagedMetadata(key.name, key.namespace, labels=schedule.labels, annotations=schedule.annotations)
    tool = managing_tool(metadata)
    return str(tool) if tool is not None else schedule.labels.get(_MANAGED, "")


def hint_who_manages(schedules: Iterable[ScheduleRow]) -> None:
    """Print a hint for each Schedule whose manager will undo a change."""
    for schedule in schedules:
        manager = manager_of(schedule)
        if manager:
            hint(f"Schedule {schedule.key} is managed by {manager}, which will undo this change; make the change there")


def hint_who_fires(evaluated: Iterable[EvaluatedSchedule]) -> None:
    """Print a hint for each namespace in which Foresail's operator is not the only one to fire Schedules."""
    spaces = {schedule.schedule.key.namespace: schedule for schedule in evaluated}
    for namespace, schedule in sorted(spaces.items()):
        text = who_fires(
            namespace, has_schedule_controller=schedule.view.server.has_schedule_controller, operator=schedule.operator
        )
        if text:
            hint(text)


def who_fires(namespace: str, *, has_schedule_controller: bool, operator: str) -> str:
    """Return what is odd about who fires Schedules in a namespace; empty if nothing is."""
    if has_schedule_controller and operator:
        return (
            f"Velero's own schedule controller is on in {namespace}, so Foresail's operator does not fire; "
            "start Velero with --disable-controllers=schedule"
        )
    if has_schedule_controller:
        return (
            f"Foresail's operator does not run in {namespace} and Velero's own schedule controller is on: "
            "Velero fires these Schedules by its own rules, up to a minute late"
        )
    if not operator:
        return (
            f"nothing fires Schedules in {namespace}: Foresail's operator does not run, and no Velero with its own "
            "schedule controller on was found there"
        )
    return ""


def runner_problem(schedule: EvaluatedSchedule, now: datetime) -> tuple[Reason, str] | None:
    """Return why nothing runs a Schedule, or why that is unknown; None if something does."""
    causes = (
        (Reason.VELERO_NOT_READY, velero_down(schedule)),
        (Reason.NOBODY_RUNS, nobody_runs(schedule, now)),
        (Reason.RUNNER_UNKNOWN, runner_unknown(schedule)),
    )
    return next(((reason, text) for reason, text in causes if text), None)


def waits_because(schedule: EvaluatedSchedule, now: datetime) -> tuple[str, str] | None:
    """Return why it waits, why nothing runs it, or what would block its next run: a word and a sentence."""
    problem = runner_problem(schedule, now)
    because = schedule.blocked_by
    is_busy = because is not None and because.reason == Blocked.BUSY
    if because is not None and not (is_busy and velero_down(schedule)):  # no Backup ends without Velero
        return because.reason.value, because.message
    if problem is not None:
        return problem[0].value, problem[1]
    later = schedule.blocks_next_run
    return (later.reason.value, later.message) if later is not None else None


def velero_down(schedule: EvaluatedSchedule) -> str:
    """Return why no pod of Velero can run it; empty if one can."""
    return schedule.known.velero.problem if schedule.known is not None else ""


def runner_unknown(schedule: EvaluatedSchedule) -> str:
    """Return why it is unknown whether anything runs it; empty if that is known."""
    return "" if schedule.view.server.is_recognised else "no Deployment or pod is recognised as a Velero server"


def nobody_runs(schedule: EvaluatedSchedule, now: datetime) -> str:
    """Return that neither Velero nor the operator runs it, or that a run which nothing blocks has not started."""
    if not (schedule.operator or schedule.view.server.runs_schedules):
        return "both Velero's schedule controller and the operator are off"
    verdict = schedule.verdict
    since = schedule.verdict.due_since
    is_blocked = verdict.blocked_by is not None or verdict.is_settling or schedule.schedule.paused
    if since is None or is_blocked or is_without_its_policy(schedule) or now - since <= OVERDUE:
        return ""
    return f"its run of {stamp(since)} did not start, so whoever should run it does not work"


def is_without_its_policy(schedule: EvaluatedSchedule) -> bool:
    """Whether Velero runs a Schedule that has a SchedulePolicy, to which Velero pays no heed."""
    return schedule.view.policy is not None and not schedule.operator
