"""Which method holds capacity for a CronJob: the one that its Primer names, or what `Auto` takes in this cluster."""

from datetime import datetime

from foresail.api.instants import stamp
from foresail.api.primer import AUTO, BY_BUFFER, PLACEHOLDER
from foresail.primers.observe import Seen, Target


def method_of(seen: Seen, target: Target, now: datetime) -> tuple[str, str | None]:
    """Return the method, and why it is not CapacityBuffer where `Auto` was to choose.

    What holds capacity already stays: a change of the method in the middle of a warm-up would lose it.
    """
    asked, support = seen.primer.method, seen.buffers
    if asked != AUTO:
        return asked, None
    if any(each.is_live and each.ready == "True" for each in target.buffers):
        return BY_BUFFER, None
    if not support.is_served:
        return PLACEHOLDER, "the API server does not serve CapacityBuffer."
    if support.unanswered is not None and support.is_unanswered(now):
        text = f"no autoscaler had answered a CapacityBuffer by {stamp(support.unanswered)}"
        return PLACEHOLDER, f"{text}: switch the feature on there, as in Karpenter's feature gates."
    if any(each.holds for each in target.placeholders):
        return PLACEHOLDER, "placeholders hold the capacity for this fire."
    return BY_BUFFER, None
