"""What the methods share: the steps they return, the runs of a CronJob, and the bounds of what is held."""

from datetime import datetime, timedelta

import msgspec

from foresail.api.primer import Primed, Warming
from foresail.plan import Action
from foresail.primers.reasons import Reason
from foresail.primers.rows import CronJobRow, JobRow, PodRow
from foresail.primers.view import PrimerView, Target
from foresail.reporting import Because

UNREADABLE = (ValueError, ArithmeticError, RecursionError, msgspec.MsgspecError)
"""What values that a tenant has written can raise."""


class Steps(msgspec.Struct, frozen=True):
    """What to do for one CronJob."""

    actions: tuple[Action, ...] = ()
    wakes: tuple[datetime, ...] = ()
    warming: Warming | None = None  # for the status
    is_warming: bool = False
    because: Because | None = None  # why nothing is held, found out only now
    events: tuple[Because, ...] = ()
    warm_nodes: tuple[tuple[datetime, tuple[str, ...]], ...] = ()  # for a fire, where capacity was held
    cold_because: tuple[
        tuple[datetime, str], ...
    ] = ()  # for a fire, why its run was not warm, if the nodes do not show it
    refused: datetime | None = None  # when the autoscaler or the API server refused the CapacityBuffer of this CronJob
    unanswered: datetime | None = None  # when an autoscaler should have answered a CapacityBuffer


def recorded_primed(view: PrimerView, uid: str) -> Primed | None:
    """Return what the status has recorded of a CronJob."""
    return next((job for job in view.primer.status.cron_jobs if job.uid == uid), None)


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


MIN_LEAD = timedelta(seconds=5)
"""Closer to a fire than this, no warm-up begins."""

RUN_GRACE = timedelta(seconds=10)
"""How long after a fire the next warm-up waits for the run and its pods."""


def too_many(view: PrimerView, cron: CronJobRow, missing: int) -> Because | None:
    """Return why capacity for so many more pods is not held: the administrator limits the total."""
    here = view.held_in_namespace
    settings = view.settings
    if missing <= 0:
        return None
    if here + missing <= settings.max_per_namespace and view.held_in_cluster + missing <= settings.max_in_cluster:
        return None
    held = f"this namespace holds {here} of {settings.max_per_namespace}"
    total = f"the cluster {view.held_in_cluster} of {settings.max_in_cluster}"
    text = f"CronJob {cron.key.name} needs {missing} more placeholders: {held}, {total}"
    return Because(Reason.TOO_MANY_PLACEHOLDERS, f"{text}. Wait, or ask an administrator for a higher limit.")
