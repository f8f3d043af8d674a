"""Method CronJob: primer CronJobs that fire earlier by the warm-up, and hold what the run will need.

They are plain objects that work while Foresail is down. Their pods end a moment before the fire, so no run has to
preempt them.
"""

from collections.abc import Container
from datetime import datetime

from foresail.plan import Delete, Key
from foresail.primers.build import create_primer_cron_job, delete_primer_cron_job
from foresail.primers.reasons import Reason
from foresail.primers.rules import Verdict, are_volumes_located, is_admission_known
from foresail.primers.steps import Steps, runs_of
from foresail.primers.view import PrimerView, Target
from foresail.reporting import Because


def release(_seen: PrimerView, target: Target, _now: datetime) -> Steps:
    """Delete the primer CronJobs; their Jobs are deleted with them."""
    return Steps(_deletions(target, ()))


def plan(view: PrimerView, verdict: Verdict, now: datetime) -> Steps:
    """Create the primer CronJobs that are missing, and delete those that differ."""
    target = verdict.target
    shape = verdict.shape
    shifted = verdict.shifted
    fires = verdict.fires
    if shape is None or shifted is None or fires is None:
        return release(view, target, now)
    if not (is_admission_known(target) and are_volumes_located(target, shape)):
        return Steps(wakes=(fires.upcoming,), warm_nodes=_warm_nodes(view, target))  # the background read has not ended
    wanted = [
        create_primer_cron_job(view, target.cron, shape, schedule, verdict.count) for schedule in shifted.schedules
    ]
    existing = {row.key for row in target.primer_cron_jobs}
    missing = [creation for creation in wanted if creation.key not in existing]
    refusals = (view.refused[creation.key.name] for creation in missing if creation.key.name in view.refused)
    refused = next(refusals, None)
    deletions = _deletions(target, {creation.key for creation in wanted})
    return Steps(
        actions=(*missing, *deletions) if refused is None else deletions,
        wakes=(fires.upcoming - view.primer.warm_up, fires.upcoming),
        is_warming=fires.upcoming - view.primer.warm_up <= now < fires.upcoming,
        because=Because(Reason.REFUSED, refused) if refused is not None else None,
        warm_nodes=_warm_nodes(view, target),
    )


def _deletions(target: Target, kept: Container[Key]) -> tuple[Delete, ...]:
    """Return the deletion of the primer CronJobs that are not among the kept ones."""
    return tuple(
        delete_primer_cron_job(row) for row in target.primer_cron_jobs if row.key not in kept and not row.is_terminating
    )


def _warm_nodes(view: PrimerView, target: Target) -> tuple[tuple[datetime, tuple[str, ...]], ...]:
    """Return on which nodes the Jobs of primer CronJobs have held capacity, by fire."""
    runs = runs_of(Target(target.cron, target.primer_jobs, target.primer_pods))
    return tuple(
        (job.fire + view.primer.warm_up, tuple(sorted({pod.node for pod in pods if pod.node}))) for job, pods in runs
    )
