"""Whether anything runs a Schedule: the same answers for `schedule get` and for coverage."""

from datetime import datetime

from foresail.api.instants import stamp
from foresail.cli.schedule.snapshot import EvaluatedSchedule
from foresail.proof.reasons import OVERDUE, Reason


def runner_problem(schedule: EvaluatedSchedule, now: datetime) -> tuple[Reason, str] | None:
    """Return why nothing runs a Schedule, or why that is unknown; None if something does."""
    causes = (
        (Reason.VELERO_NOT_READY, velero_down(schedule)),
        (Reason.NOBODY_RUNS, nobody_runs(schedule, now)),
        (Reason.RUNNER_UNKNOWN, runner_unknown(schedule)),
    )
    return next(((reason, text) for reason, text in causes if text), None)


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
