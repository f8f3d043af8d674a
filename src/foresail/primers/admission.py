"""What a pod of a run is after admission, how much it needs, and when the API server is asked."""

from datetime import datetime, timedelta
from fractions import Fraction

import msgspec

from foresail.primers.fires import Fires
from foresail.primers.observe import PrimerView, Target
from foresail.primers.shape import Shape, amounts, with_requests
from foresail.primers.verdict import Verdict
from foresail.primers.volumes import with_node_affinity, with_volume_affinity

BACKGROUND_READ_LEAD = timedelta(seconds=30)
"""How long before a warm-up the background reads are due: the admission dry run and the volume lookup."""

DRY_RUN_RETRY = timedelta(seconds=10)
"""How long after a dry run without an answer the next one is due."""


def wanted_shape(view: PrimerView, target: Target) -> Shape | None:
    """Return what one pod of a run needs, and where: by the last one after admission, else by the template."""
    shape = target.cron.shape
    if shape is None:
        return None
    admitted = last_admitted(target, shape) or target.admitted
    if admitted is not None:
        # The claims stay those of the template, which are looked up; terms about other pods may name the last Job.
        affinity = with_node_affinity(shape.affinity, admitted.affinity)
        template = {"claims": shape.claims, "spread": shape.spread, "labels": shape.labels}
        shape = msgspec.structs.replace(admitted, affinity=affinity, **template)
    volume_locations = target.volume_locations
    if volume_locations is not None and volume_locations.claims == shape.claims:
        shape = msgspec.structs.replace(shape, affinity=with_volume_affinity(shape.affinity, volume_locations.volumes))
    if view.primer.requests:
        shape = with_requests(shape, view.primer.requests)
    return shape


def last_admitted(target: Target, template: Shape) -> Shape | None:
    """Return the last pod of the CronJob as admission left it, if it was made from the template as it is."""
    newest = max((pod for pod in target.pods if pod.shape), key=lambda pod: pod.created, default=None)
    if newest is None or newest.shape is None or not _is_of_template(newest.shape, template):
        return None
    return newest.shape


def is_admission_known(target: Target) -> bool:
    """Whether it is known what admission makes of a pod: by a run, or by a dry run."""
    return target.is_dry_run_done or _is_shown_by_run(target)


def refusal(target: Target) -> str:
    """Return the message with which the API server refuses pods of the template; empty once it has admitted one."""
    return "" if target.cron.shape is None or _is_shown_by_run(target) else target.refused


def _is_shown_by_run(target: Target) -> bool:
    """Whether a run shows what admission makes of a pod; it does not have the Primer's own resources."""
    shape = target.cron.shape
    return not target.resources and shape is not None and last_admitted(target, shape) is not None


def next_dry_run(view: PrimerView, verdict: Verdict) -> datetime | None:
    """Return when the next dry run is due: soon if there was no answer, for the next warm-up after a refusal."""
    target = verdict.target
    if target.dry_run_at is None:
        return None
    if not target.is_dry_run_done:
        return target.dry_run_at + DRY_RUN_RETRY
    if verdict.fires is None or not refusal(target):
        return None
    due = background_reads_due(view, verdict.fires)
    return due if due > target.dry_run_at else None


def background_reads_due(view: PrimerView, fires: Fires) -> datetime:
    """Return when the background reads for the next fire are due."""
    return fires.upcoming - view.primer.warm_up - BACKGROUND_READ_LEAD


def are_volumes_located(target: Target, shape: Shape, fire: datetime | None = None) -> bool:
    """Whether it is known where the bound volumes of a run are, if it has any; with a fire, as of that one."""
    volume_locations = target.volume_locations
    if volume_locations is None or volume_locations.claims != shape.claims:
        return not shape.claims
    return fire is None or volume_locations.fire == fire


def _is_of_template(pod: Shape, template: Shape) -> bool:
    """Whether a pod was made from the template as it is now: admission only adds."""
    has = amounts(pod.requests)
    return set(template.images) <= set(pod.images) and all(
        has.get(name, Fraction(0)) >= amount for name, amount in amounts(template.requests).items()
    )
