"""Why no run of a schedule starts at the moment, as far as that depends on no backup."""

from datetime import datetime

from foresail.api.instants import stamp
from foresail.proof.observe import ScheduleRow
from foresail.proof.reasons import OVERDUE, Gap, Reason


def blocked(schedule: ScheduleRow, now: datetime) -> list[Gap]:
    """Return why no run of a schedule starts; none if one does when it is due."""
    title = schedule.title
    if schedule.paused:
        return [Gap(Reason.PAUSED, f"{title} is paused", title)]
    if schedule.not_running:
        return [Gap(Reason.NOT_RUNNING, f"{title} does not run: {schedule.not_running}", title)]
    causes = (
        (Reason.VELERO_NOT_READY, schedule.velero_down),
        (Reason.NOBODY_RUNS, schedule.nobody_runs or _overdue(schedule, now)),
        (Reason.RUNNER_UNKNOWN, schedule.runner_unknown),
        (Reason.LOCATION_UNAVAILABLE, schedule.location_problem),
    )
    return [Gap(reason, f"{title}: {text}", title) for reason, text in causes if text]


def _overdue(schedule: ScheduleRow, now: datetime) -> str:
    """Return that the operator, the only one to run a tenant's schedule, has not run it when it should have."""
    upcoming = schedule.next_run if schedule.kind != "Schedule" else None
    if upcoming is None or now - upcoming <= OVERDUE:
        return ""
    return f"its run of {stamp(upcoming)} did not start, so the operator does not run"
