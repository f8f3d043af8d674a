"""How the runs of a schedule go: what is wrong with the last one, and why none starts now."""

from collections.abc import Sequence
from datetime import datetime

from foresail.api.instants import stamp
from foresail.api.velero import COMPLETED
from foresail.backups import has_shrunk
from foresail.proof.reasons import OVERDUE, Gap, Reason
from foresail.proof.view import BackupRow, ScheduleRow


def last_run_gaps(title: str, runs: Sequence[BackupRow]) -> list[Gap]:
    """Return what is wrong with the last runs of a schedule, given all that have ended, oldest first."""
    if not runs:
        return []
    last = runs[-1]
    gaps = []
    streak = 0
    for run in reversed(runs):
        if run.phase == COMPLETED:
            break
        streak += 1
    if streak:
        text = f"the last {streak} of {len(runs)} runs of {title} did not complete; {last.name} is {last.phase}"
        gaps.append(Gap(Reason.PARTIAL_RUNS, text, title, last.name))
    if last.items == 0:
        text = f"the last run of {title}, {last.name}, backed up no object"
        gaps.append(Gap(Reason.EMPTY, text, title, last.name))
    elif len(runs) > 1 and has_shrunk(runs[-2], last):
        text = f"the last run of {title}, {last.name}, has {last.items} objects; the one before it had {runs[-2].items}"
        gaps.append(Gap(Reason.SHRUNK, text, title, last.name))
    return gaps


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
    return overdue_text(upcoming, now)


def overdue_text(upcoming: datetime | None, now: datetime) -> str:
    """Return that a run which only the operator starts did not start at its time; empty if it still may."""
    if upcoming is None or now - upcoming <= OVERDUE:
        return ""
    return f"its run of {stamp(upcoming)} did not start, so the operator does not run"
