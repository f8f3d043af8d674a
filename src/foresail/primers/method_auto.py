"""Method Auto: CapacityBuffer, where it is served and an autoscaler answers it, and placeholders otherwise."""

from datetime import datetime

from foresail.api.instants import stamp
from foresail.api.primer import AUTO, BY_BUFFER, PLACEHOLDER
from foresail.primers.buffer_rows import is_recent
from foresail.primers.steps import recorded_primed
from foresail.primers.view import PrimerView, Target


def choose_method(view: PrimerView, target: Target, now: datetime) -> tuple[str, str | None]:
    """Return the method, and why it is not CapacityBuffer where `Auto` was to choose.

    What holds capacity already stays: a change of the method in the middle of a warm-up would lose it.
    """
    method = view.primer.method
    if method != AUTO:
        return method, None
    if any(buffer.is_live and buffer.ready == "True" for buffer in target.buffers):
        return BY_BUFFER, None
    because = _why_not_buffer(view, target, now)
    return (BY_BUFFER, None) if because is None else (PLACEHOLDER, because)


def _why_not_buffer(view: PrimerView, target: Target, now: datetime) -> str | None:
    support = view.buffers
    known = recorded_primed(view, target.cron.uid)
    if not support.is_served:
        return "the API server does not serve CapacityBuffer."
    if support.unanswered is not None and support.is_unanswered(now):
        text = f"no autoscaler had answered a CapacityBuffer by {stamp(support.unanswered)}"
        return f"{text}: switch the feature on there, as in Karpenter's feature gates."
    if known is not None and known.buffer_refused is not None and is_recent(known.buffer_refused, now):
        text = f"the autoscaler or the API server refused a CapacityBuffer of CronJob {target.cron.key.name}"
        return f"{text} at {stamp(known.buffer_refused)}: an Event has its answer."
    if any(placeholder.holds for placeholder in target.placeholders):
        return "placeholders hold the capacity for this fire."
    return None
