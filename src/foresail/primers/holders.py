"""Method CronJob: primer CronJobs that fire that much earlier by themselves, and hold what the run will need.

They are plain objects that work while Foresail is down. What they hold ends a moment before the fire, so no run has to
push it aside.
"""

from datetime import datetime

from foresail.primers.build import create_holder, delete_holder
from foresail.primers.observe import Seen, Target
from foresail.primers.reasons import Because, Reason
from foresail.primers.rules import Verdict, is_admission_known, is_located, runs_of
from foresail.primers.steps import Steps


def release(_seen: Seen, target: Target, _now: datetime) -> Steps:
    """Delete the primer CronJobs; their Jobs go with them."""
    return Steps(tuple(delete_holder(each) for each in target.holders if not each.is_going))


def plan(seen: Seen, verdict: Verdict, now: datetime) -> Steps:
    """Make the primer CronJobs that are missing, and delete those that say something else."""
    target, shape, shifted, fires = verdict.target, verdict.shape, verdict.shifted, verdict.fires
    if shape is None or shifted is None or fires is None:
        return release(seen, target, now)
    if not (is_admission_known(target) and is_located(target, shape)):
        return Steps(wakes=(fires.upcoming,), warm_nodes=_warm_nodes(seen, target))  # the answer is on its way
    wanted = [create_holder(seen, target.cron, shape, each, verdict.count) for each in shifted.schedules]
    names = {each.key for each in wanted}
    there = {each.key for each in target.holders}
    makes = [each for each in wanted if each.key not in there]
    refused = next((seen.refused[each.key.name] for each in makes if each.key.name in seen.refused), None)
    because = Because(Reason.REFUSED, refused) if refused is not None else None
    return Steps(
        actions=(
            *(makes if refused is None else ()),
            *(delete_holder(each) for each in target.holders if each.key not in names and not each.is_going),
        ),
        wakes=(fires.upcoming - seen.primer.warm_up, fires.upcoming),
        is_warming=fires.upcoming - seen.primer.warm_up <= now < fires.upcoming,
        because=because,
        warm_nodes=_warm_nodes(seen, target),
    )


def _warm_nodes(seen: Seen, target: Target) -> tuple[tuple[datetime, tuple[str, ...]], ...]:
    """Return where the Jobs of primer CronJobs have held capacity, by the fire that they did it for."""
    runs = runs_of(Target(target.cron, target.holder_jobs, target.holder_pods))
    return tuple(
        (job.fire + seen.primer.warm_up, tuple(sorted({each.node for each in pods if each.node}))) for job, pods in runs
    )
