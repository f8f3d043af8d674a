"""Method CronJob: primer CronJobs that fire earlier by the warm-up, and hold what the run will need.

They are plain objects that work while Foresail is down. Their pods end a moment before the fire, so no run has to
preempt them.
"""

from datetime import datetime

from foresail.primers.admission import are_volumes_located, is_admission_known
from foresail.primers.build import create_primer_cron_job, delete_primer_cron_job
from foresail.primers.observe import PrimerView, Target
from foresail.primers.reasons import Because, Reason
from foresail.primers.runs import runs_of
from foresail.primers.steps import Steps
from foresail.primers.verdict import Verdict


def release(_seen: PrimerView, target: Target, _now: datetime) -> Steps:
    """Delete the primer CronJobs; their Jobs are deleted with them."""
    return Steps(tuple(delete_primer_cron_job(each) for each in target.primer_cron_jobs if not each.is_terminating))


def plan(view: PrimerView, verdict: Verdict, now: datetime) -> Steps:
    """Create the primer CronJobs that are missing, and delete those that differ."""
    target, shape, shifted, fires = verdict.target, verdict.shape, verdict.shifted, verdict.fires
    if shape is None or shifted is None or fires is None:
        return release(view, target, now)
    if not (is_admission_known(target) and are_volumes_located(target, shape)):
        return Steps(wakes=(fires.upcoming,), warm_nodes=_warm_nodes(view, target))  # the background read has not ended
    wanted = [create_primer_cron_job(view, target.cron, shape, each, verdict.count) for each in shifted.schedules]
    names = {each.key for each in wanted}
    there = {each.key for each in target.primer_cron_jobs}
    makes = [each for each in wanted if each.key not in there]
    refused = next((view.refused[each.key.name] for each in makes if each.key.name in view.refused), None)
    because = Because(Reason.REFUSED, refused) if refused is not None else None
    return Steps(
        actions=(
            *(makes if refused is None else ()),
            *(
                delete_primer_cron_job(each)
                for each in target.primer_cron_jobs
                if each.key not in names and not each.is_terminating
            ),
        ),
        wakes=(fires.upcoming - view.primer.warm_up, fires.upcoming),
        is_warming=fires.upcoming - view.primer.warm_up <= now < fires.upcoming,
        because=because,
        warm_nodes=_warm_nodes(view, target),
    )


def _warm_nodes(view: PrimerView, target: Target) -> tuple[tuple[datetime, tuple[str, ...]], ...]:
    """Return on which nodes the Jobs of primer CronJobs have held capacity, by fire."""
    runs = runs_of(Target(target.cron, target.primer_jobs, target.primer_pods))
    return tuple(
        (job.fire + view.primer.warm_up, tuple(sorted({each.node for each in pods if each.node}))) for job, pods in runs
    )
