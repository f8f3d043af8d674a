"""Whether a method can hold capacity for a CronJob, and whether that could delay its run."""

from datetime import datetime

import msgspec

from foresail.api.primer import PLACEHOLDER
from foresail.plan import Level
from foresail.primers.admission import refusal
from foresail.primers.buffer_rows import BufferedPods
from foresail.primers.durations import minutes
from foresail.primers.fires import shifted
from foresail.primers.observe import PrimerView, Target
from foresail.primers.quota import first_exceeded
from foresail.primers.reasons import Reason
from foresail.primers.runs import is_covered
from foresail.primers.shape import Shape
from foresail.primers.verdict import Verdict
from foresail.reporting import Because

MAX_PRIMER_CRON_JOBS = 2
"""Of primer CronJobs for one CronJob."""


def can_preempt(view: PrimerView, shape: Shape) -> bool:
    """Whether a pod of the run may preempt a placeholder."""
    its = view.priority(shape.priority_class)
    ours = view.priority(view.settings.priority_class)
    value = shape.priority if shape.priority is not None else its.value if its else 0
    preemption = shape.preemption or (its.preemption if its else "")
    return preemption != "Never" and (ours is None or value > ours.value)


def as_placeholder(view: PrimerView, shape: Shape) -> Shape:
    """Return a placeholder as quotas see it."""
    return msgspec.structs.replace(shape, deadline=True, priority_class=view.settings.priority_class)


def by_placeholder(view: PrimerView, verdict: Verdict, now: datetime) -> Verdict:
    """Hold until the run has its nodes, if both fit; else until a moment before the fire; else not at all."""
    shape = verdict.shape
    name = verdict.target.cron.key.name
    if shape is None or verdict.fires is None:
        return verdict
    begins = verdict.fires.upcoming - view.primer.warm_up
    ends = verdict.fires.upcoming
    if begins <= now < ends and not is_covered(verdict.target, ends, verdict.count):
        verdict = _within_quotas(view, verdict, shape)
    if verdict.because is None and verdict.early is None and not can_preempt(view, shape):
        text = f"the pods of CronJob {name} cannot preempt a placeholder, so it is released before the fire"
        early = Because(Reason.CANNOT_PREEMPT, f"{text}. Give them a higher priority class.", Level.NORMAL)
        return msgspec.structs.replace(verdict, early=early)
    return verdict


def _within_quotas(view: PrimerView, verdict: Verdict, shape: Shape) -> Verdict:
    """Check the quotas, only while the window is open: pods that run before it may end in time."""
    target = verdict.target
    name = target.cron.key.name
    missing = verdict.count - len([placeholder for placeholder in target.placeholders if placeholder.holds])
    held = [
        (msgspec.structs.replace(shape, requests=placeholder.requests), 1)
        for placeholder in view.namespace_placeholders
        if placeholder.holds
    ]
    more = (as_placeholder(view, shape), max(missing, 0))
    too_small = first_exceeded(view.quotas, [more])
    if too_small is not None and missing > 0:
        text = f"{too_small}, and what CronJob {name} needs does not fit into what is left"
        return msgspec.structs.replace(verdict, because=Because(Reason.QUOTA_TOO_SMALL, f"{text}: raise the quota."))
    # For each placeholder of the namespace a pod is still to start, and all of them may start at once.
    together = first_exceeded(view.quotas, [more, (shape, max(missing, 0)), *held])
    if together is not None:
        text = f"{together}, too little for a placeholder and a run of CronJob {name} together"
        early = Because(Reason.QUOTA_TOO_SMALL, f"{text}: it is released before the fire.", Level.NORMAL)
        return msgspec.structs.replace(verdict, early=early)
    return verdict


def by_buffer(view: PrimerView, verdict: Verdict, now: datetime) -> Verdict:
    """Hold no more than the quotas would let run: a buffer has no pods that they could count."""
    if not view.buffers.is_served:
        text = "the API server does not serve CapacityBuffer: install it with the autoscaler, or use method Auto."
        return msgspec.structs.replace(verdict, because=Because(Reason.BUFFER_NOT_SERVED, text))
    because = _quota_of_buffers(view, verdict, now) or refused_pods(verdict.target)
    return msgspec.structs.replace(verdict, because=because)


def _quota_of_buffers(view: PrimerView, verdict: Verdict, now: datetime) -> Because | None:
    """Check the quotas: a run must fit alone, and at its warm-up beside all pods and what other buffers hold."""
    target = verdict.target
    shape = verdict.shape
    fires = verdict.fires
    if shape is None or fires is None:
        return None
    name = target.cron.key.name
    run = [(shape, verdict.count)]
    alone = first_exceeded([msgspec.structs.replace(quota, used=()) for quota in view.quotas], run)
    if alone is not None:
        return Because(Reason.QUOTA_TOO_SMALL, f"{alone}, which a run of CronJob {name} exceeds: raise the quota.")
    is_open = fires.upcoming - view.primer.warm_up <= now < fires.upcoming
    held = [buffer.replicas for buffer in target.buffers if buffer.is_live and buffer.fire == fires.upcoming]
    is_held = max(held, default=0) >= verdict.count
    if not is_open or is_held or is_covered(target, fires.upcoming, verdict.count):
        return None
    own = {buffer.key for buffer in target.buffers}
    others = [(_as_buffered(shape, buffer), buffer.count) for buffer in view.namespace_buffers if buffer.key not in own]
    together = first_exceeded(view.quotas, run, others)
    if together is None:
        return None
    text = f"{together}, and what CronJob {name} needs does not fit beside its pods and other CapacityBuffers"
    return Because(Reason.QUOTA_TOO_SMALL, f"{text}: raise the quota.")


def _as_buffered(shape: Shape, pods: BufferedPods) -> Shape:
    """Return a pod of another buffer as quotas will see it, in the same scope; of an unknown size, it is as large."""
    if pods.requests is None:
        return shape
    return msgspec.structs.replace(shape, requests=pods.requests, limits=pods.limits)


def refused_pods(target: Target) -> Because | None:
    """Refuse pods that admission refuses: the autoscaler would create nodes for pods that never run."""
    words = refusal(target)
    if not words:
        return None
    instead = " with the resources of spec.template" if target.resources else ""
    text = f"the API server refuses the pods of CronJob {target.cron.key.name}{instead}"
    return Because(Reason.REFUSED, f"{text}: {words}")


def by_cron_job(view: PrimerView, verdict: Verdict, now: datetime) -> Verdict:
    """Shift the schedule by the warm-up: at most two primer CronJobs must express it."""
    cron = verdict.target.cron
    if not view.settings.hold_image:
        text = "method CronJob needs an image that can sleep: set --primer-hold-image of the operator"
        return msgspec.structs.replace(verdict, because=Because(Reason.NO_HOLD_IMAGE, f"{text}."))
    found = shifted(cron, view.settings.zone, view.primer.warm_up, now)
    if isinstance(found, Because):
        return msgspec.structs.replace(verdict, because=found)
    verdict = msgspec.structs.replace(verdict, shifted=found)
    if found.schedules and len(found.schedules) <= MAX_PRIMER_CRON_JOBS:
        return verdict
    why = found.reason if not found.schedules else f"that takes {len(found.schedules)} CronJobs"
    shifted_by = minutes(view.primer.warm_up)
    text = f"{cron.text!r} cannot be expressed {shifted_by} earlier by {MAX_PRIMER_CRON_JOBS} CronJobs: {why}"
    because = Because(Reason.INEXACT, f"{text}. Use method {PLACEHOLDER}.")
    return msgspec.structs.replace(verdict, because=because)
