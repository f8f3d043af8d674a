"""The runs of a CronJob: whether one has its nodes, and whether one covers the next fire."""

from datetime import datetime

from foresail.primers.observe import Target
from foresail.primers.rows import JobRow, PodRow


def runs_of(target: Target) -> list[tuple[JobRow, list[PodRow]]]:
    """Return the runs in the order of their fires, each with its pods."""
    of: dict[str, list[PodRow]] = {}
    for pod in target.pods:
        of.setdefault(pod.job_uid, []).append(pod)
    return [(job, of.get(job.uid, [])) for job in sorted(target.jobs, key=lambda row: row.fire)]


def run_of(target: Target, fire: datetime) -> tuple[JobRow, list[PodRow]] | None:
    """Return the run of a fire; None if there is none yet."""
    return next((run for run in runs_of(target) if run[0].fire == fire), None)


def has_arrived(target: Target, fire: datetime, count: int) -> bool:
    """Whether the pods of a run have their nodes, so that nothing need be held for it."""
    run = run_of(target, fire)
    if run is None:
        return False
    job, pods = run
    if job.is_over:
        return True
    placed = [pod for pod in pods if pod.node or pod.is_over]
    return len(placed) >= min(count, max(target.cron.parallelism, 1)) and len(placed) == len(pods)


def is_covered(target: Target, upcoming: datetime, count: int) -> bool:
    """Whether runs of the CronJob itself hold as many places, and are expected to end before the next fire."""
    runs = runs_of(target)
    active = [(job, pods) for job, pods in runs if not job.is_over]
    if not active or sum(_held_places(pods) for _, pods in active) < count:
        return False
    took = [job.ended - job.started for job, _ in runs if job.started is not None and job.ended is not None]
    begun = [job.started or job.fire for job, _ in active]
    return not (target.cron.policy == "Allow" and took and min(begun) + max(took) > upcoming)


def _held_places(pods: list[PodRow]) -> int:
    return sum(not pod.is_over and not pod.is_terminating for pod in pods)
