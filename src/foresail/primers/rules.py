"""The rules: whether a CronJob can be primed, by which method and for which shape, and what holds it up."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from fractions import Fraction

import msgspec

from foresail.api.marks import WARM_UP
from foresail.api.primer import BY_BUFFER, BY_CRON_JOB, PLACEHOLDER, PRIMER
from foresail.cron.shift import Shifted
from foresail.plan import Level
from foresail.primers.affinity import with_node_affinity, with_volume_affinity
from foresail.primers.buffer_rows import BufferedPods
from foresail.primers.fires import STANDING, Fires, duty_cycle, fires, shifted
from foresail.primers.method_auto import choose_method
from foresail.primers.quotas import first_exceeded
from foresail.primers.reasons import Reason
from foresail.primers.rows import UNWARMABLE, PrimerRow, minutes
from foresail.primers.shape import Shape, amounts, with_requests
from foresail.primers.steps import is_covered
from foresail.primers.view import PrimerView, Target
from foresail.reporting import Because


class Verdict(msgspec.Struct, frozen=True):
    """What the rules found about one CronJob at one instant."""

    target: Target
    because: Because | None = None  # why nothing is held for it
    fires: Fires | None = None
    duty: int = 0
    shape: Shape | None = None
    count: int = 1
    method: str = PLACEHOLDER  # how capacity is held; what `Auto` has chosen
    method_because: str | None = None  # why `Auto` has not chosen CapacityBuffer
    early: Because | None = None  # why what is held is released before the fire, not after it
    shifted: Shifted | None = None


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


MAX_PRIMER_CRON_JOBS = 2
"""Of primer CronJobs for one CronJob."""


def can_preempt(view: PrimerView, shape: Shape) -> bool:
    """Whether a pod of the run may preempt a placeholder."""
    its = view.priority(shape.priority_class)
    ours = view.priority(view.settings.priority_class)
    of_class = its.value if its else 0
    value = shape.priority if shape.priority is not None else of_class
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
    earlier = shifted(cron, view.settings.zone, view.primer.warm_up, now)
    if isinstance(earlier, Because):
        return msgspec.structs.replace(verdict, because=earlier)
    verdict = msgspec.structs.replace(verdict, shifted=earlier)
    if earlier.schedules and len(earlier.schedules) <= MAX_PRIMER_CRON_JOBS:
        return verdict
    why = earlier.reason if not earlier.schedules else f"that takes {len(earlier.schedules)} CronJobs"
    shifted_by = minutes(view.primer.warm_up)
    text = f"{cron.text!r} cannot be expressed {shifted_by} earlier by {MAX_PRIMER_CRON_JOBS} CronJobs: {why}"
    because = Because(Reason.INEXACT, f"{text}. Use method {PLACEHOLDER}.")
    return msgspec.structs.replace(verdict, because=because)


def judge(view: PrimerView, target: Target, now: datetime) -> Verdict:
    """Evaluate every rule in order; the first that fails is the reason."""
    primer = view.primer
    settings = view.settings
    next_fires = fires(target.cron, settings.zone, now)
    method, method_because = choose_method(view, target, now)
    verdict = Verdict(
        target,
        method=method,
        method_because=method_because,
        fires=None if isinstance(next_fires, Because) else next_fires,
        duty=duty_cycle(target.cron, settings.zone, primer.warm_up),
        shape=wanted_shape(view, target),
        count=primer.replicas or max(target.cron.parallelism, 1),
    )
    because = (
        not_allowed_here(view)
        or taken(view, target)
        or invalid_annotation(view)
        or suspended(view, target)
        or warm_up_too_long(view, target)
    )
    if because is None and isinstance(next_fires, Because):
        because = next_fires
    because = because or standing(view, verdict) or not_warmable(view, verdict) or nothing_to_reserve(view, verdict)
    if because is not None:
        return msgspec.structs.replace(verdict, because=because)
    if method == BY_CRON_JOB:
        return by_cron_job(view, verdict, now)
    if method == BY_BUFFER:
        return by_buffer(view, verdict, now)
    return by_placeholder(view, verdict, now)


# Whether it can be primed at all


def not_allowed_here(view: PrimerView) -> Because | None:
    """Keep to the namespaces in which the operator may create pods."""
    here = view.primer.key.namespace
    if view.settings.allows(here):
        return None
    text = f"the operator may not create pods in namespace {here}: ask an administrator to add it"
    return Because(Reason.NAMESPACE_NOT_ALLOWED, f"{text} to primers.namespaces in the chart's values.")


def primers_of(
    name: str, labels: dict[str, str], primers: Iterable[PrimerRow], annotated: PrimerRow | None = None
) -> list[PrimerRow]:
    """Return the Primers for a CronJob, the one that primes it first: the oldest; its own annotations come last."""
    choosing = [primer for primer in primers if not primer.is_terminating and primer.matches(name, labels)]
    oldest_first = sorted(choosing, key=lambda row: (row.created, row.key))
    return oldest_first if annotated is None else [*oldest_first, annotated]


def taken(view: PrimerView, target: Target) -> Because | None:
    """Of two Primers for one CronJob, the older one primes it; any Primer counts before an annotation."""
    if not target.taken_by:
        return None
    if view.primer.kind != PRIMER:
        text = f"Primer {target.taken_by} primes CronJob {target.cron.key.name}, so its annotation {WARM_UP} is ignored"
        return Because(Reason.TAKEN, f"{text}: remove the annotation, or delete the Primer.")
    text = f"Primer {target.taken_by} is for CronJob {target.cron.key.name} too and is older: delete one of the two"
    return Because(Reason.TAKEN, f"{text}, or let {view.primer.key.name} select others.")


def invalid_annotation(view: PrimerView) -> Because | None:
    """Report annotations that cannot be read: no schema has refused them."""
    return Because(Reason.INVALID_ANNOTATION, view.primer.problem) if view.primer.problem else None


def suspended(view: PrimerView, target: Target) -> Because | None:
    """Nothing fires, or nothing is wanted."""
    if view.primer.suspend:
        return Because(Reason.SUSPENDED, "spec.suspend is true, so nothing is held.", Level.NORMAL)
    if target.cron.suspend:
        text = f"CronJob {target.cron.key.name} is suspended, so nothing is held for it."
        return Because(Reason.SUSPENDED, text, Level.NORMAL)
    return None


def warm_up_too_long(view: PrimerView, _target: Target) -> Because | None:
    """Keep to the longest warm-up that the administrator allows."""
    most = view.settings.max_warm_up
    if view.primer.warm_up <= most:
        return None
    text = f"{view.primer.warm_up_field} is longer than the {minutes(most)} that the administrator allows."
    return Because(Reason.TOO_LONG, text)


def standing(view: PrimerView, verdict: Verdict) -> Because | None:
    """Capacity for more than half of the time is almost a permanent node, so it must be requested explicitly."""
    if verdict.duty <= STANDING or view.primer.allow_standing:
        return None
    shorten = view.primer.warm_up_field
    allow = view.primer.field("spec.allowStanding")
    text = f"capacity would be held for {verdict.duty} % of the time: shorten {shorten}, set {allow}"
    return Because(Reason.STANDING, f"{text}, or keep a node for CronJob {verdict.target.cron.key.name}.")


def not_warmable(view: PrimerView, verdict: Verdict) -> Because | None:
    """Pods that get a machine of their own when they start find no warm one."""
    shape = verdict.shape
    target = verdict.target
    wanted = dict(shape.node_selector) if shape else {}
    ran_on = [view.nodes[pod.node] for pod in target.pods if pod.node in view.nodes]
    if not any(wanted.get(name) == value for name, value in UNWARMABLE.items()) and not any(
        node.is_unwarmable for node in ran_on
    ):
        return None
    text = f"the pods of CronJob {target.cron.key.name} run on Windows, Fargate or a virtual kubelet"
    return Because(Reason.NOT_WARMABLE, f"{text}, where a placeholder warms nothing.")


def nothing_to_reserve(view: PrimerView, verdict: Verdict) -> Because | None:
    """Pods without requests fit anywhere, so there is nothing to hold for them."""
    if verdict.shape is not None and any(amounts(verdict.shape.requests).values()):
        return None
    text = f"the pods of CronJob {verdict.target.cron.key.name} request nothing: set resources.requests there"
    return Because(Reason.NOTHING_TO_RESERVE, f"{text}, or {view.primer.field('spec.template.resources')}.")
