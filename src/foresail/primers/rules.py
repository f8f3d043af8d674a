"""The rules: whether a CronJob can be primed at all, how much is held for it, and whether that could delay its run.

Each rule is one small function with the name of what it answers; `judge` asks them in their order.
"""

from datetime import datetime, timedelta
from fractions import Fraction

import msgspec

from foresail.api.marks import WARM_UP
from foresail.api.primer import BY_BUFFER, BY_CRON_JOB, PLACEHOLDER, PRIMER
from foresail.cron.shift import Shifted
from foresail.plan import Level
from foresail.primers.buffer_rows import BufferedPods
from foresail.primers.cluster_rows import UNWARMABLE
from foresail.primers.fires import STANDING, Fires, duty_cycle, fires, shifted
from foresail.primers.method_choice import choose_method
from foresail.primers.observe import JobRow, PodRow, PrimerView, Target
from foresail.primers.quota import first_exceeded
from foresail.primers.reasons import Because, Reason
from foresail.primers.shape import Shape, amounts, with_requests
from foresail.primers.volumes import with_node_affinity, with_volume_affinity

MAX_PRIMER_CRON_JOBS = 2
"""Of primer CronJobs for one CronJob."""

BACKGROUND_READ_LEAD = timedelta(seconds=30)
"""How long before a warm-up the API server is asked what it would make of a pod, and where its volumes are."""

DRY_RUN_RETRY = timedelta(seconds=10)
"""How long after a dry run that brought no answer the API server is asked again."""


class Verdict(msgspec.Struct, frozen=True):
    """What the rules say about one CronJob at one instant."""

    target: Target
    because: Because | None = None  # why nothing is held for it
    fires: Fires | None = None
    duty: int = 0
    shape: Shape | None = None
    count: int = 1
    method: str = PLACEHOLDER  # how it is held, as `Auto` has chosen if it was to
    method_because: str | None = None  # why `Auto` has not chosen CapacityBuffer
    early: Because | None = None  # why what is held goes before the fire, not after it
    shifted: Shifted | None = None


def judge(view: PrimerView, target: Target, now: datetime) -> Verdict:
    """Ask every rule, in order; the first that says no is the one that is named."""
    primer, settings = view.primer, view.settings
    found = fires(target.cron, settings.zone, now)
    method, method_because = choose_method(view, target, now)
    verdict = Verdict(
        target,
        method=method,
        method_because=method_because,
        fires=None if isinstance(found, Because) else found,
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
    if because is None and isinstance(found, Because):
        because = found
    because = because or standing(view, verdict) or not_warmable(view, verdict) or nothing_to_reserve(view, verdict)
    if because is not None:
        return msgspec.structs.replace(verdict, because=because)
    if method == BY_CRON_JOB:
        return _by_cron_job(view, verdict, now)
    if method == BY_BUFFER:
        return _by_buffer(view, verdict, now)
    return _by_placeholder(view, verdict, now)


# Whether it can be primed at all


def not_allowed_here(view: PrimerView) -> Because | None:
    """Keep to the namespaces in which the operator may create pods."""
    here = view.primer.key.namespace
    if view.settings.allows(here):
        return None
    text = f"the operator may not create pods in namespace {here}: ask an administrator to add it"
    return Because(Reason.NAMESPACE_NOT_ALLOWED, f"{text} to primers.namespaces in the chart's values.")


def taken(view: PrimerView, target: Target) -> Because | None:
    """Of two Primers for one CronJob, the older one primes it; any Primer counts before an annotation."""
    if not target.taken_by:
        return None
    if view.primer.kind != PRIMER:
        text = f"Primer {target.taken_by} primes CronJob {target.cron.key.name}, so its annotation {WARM_UP} is ignored"
        return Because(Reason.TAKEN, f"{text}: remove the annotation, or delete the Primer.")
    text = f"Primer {target.taken_by} is for CronJob {target.cron.key.name} too and is older: delete one of the two"
    return Because(Reason.TAKEN, f"{text}, or let {view.primer.key.name} choose others.")


def invalid_annotation(view: PrimerView) -> Because | None:
    """Tell annotations that cannot be read: no schema has refused them."""
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
    """Capacity for more than half of the time is as good as a node for ever, so it must be asked for."""
    if verdict.duty <= STANDING or view.primer.allow_standing:
        return None
    shorten, allow = view.primer.warm_up_field, view.primer.field("spec.allowStanding")
    text = f"capacity would be held for {verdict.duty} % of the time: shorten {shorten}, set {allow}"
    return Because(Reason.STANDING, f"{text}, or keep a node for CronJob {verdict.target.cron.key.name}.")


def not_warmable(view: PrimerView, verdict: Verdict) -> Because | None:
    """Tell pods that get a machine of their own when they start: they find no warm one."""
    shape, target = verdict.shape, verdict.target
    wanted = dict(shape.node_selector) if shape else {}
    ran_on = [view.nodes[each.node] for each in target.pods if each.node in view.nodes]
    if not any(wanted.get(name) == value for name, value in UNWARMABLE.items()) and not any(
        each.is_unwarmable for each in ran_on
    ):
        return None
    text = f"the pods of CronJob {target.cron.key.name} run on Windows, Fargate or a virtual kubelet"
    return Because(Reason.NOT_WARMABLE, f"{text}, where a placeholder warms nothing.")


def nothing_to_reserve(view: PrimerView, verdict: Verdict) -> Because | None:
    """Tell pods without requests: they fit anywhere, so there is nothing to hold for them."""
    if verdict.shape is not None and any(amounts(verdict.shape.requests).values()):
        return None
    text = f"the pods of CronJob {verdict.target.cron.key.name} request nothing: set resources.requests there"
    return Because(Reason.NOTHING_TO_RESERVE, f"{text}, or {view.primer.field('spec.template.resources')}.")


# How much is held


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
    newest = max((each for each in target.pods if each.shape), key=lambda each: each.created, default=None)
    if newest is None or newest.shape is None or not _is_of_template(newest.shape, template):
        return None
    return newest.shape


def is_admission_known(target: Target) -> bool:
    """Whether it is known what admission makes of a pod: a run has told it, or the API server was asked."""
    shape = target.cron.shape
    return target.is_dry_run_done or (shape is not None and last_admitted(target, shape) is not None)


def refusal(target: Target) -> str:
    """Return in what words the API server refuses pods of the template; nothing once it has admitted one."""
    shape = target.cron.shape
    return target.refused if shape is not None and last_admitted(target, shape) is None else ""


def is_dry_run_due(view: PrimerView, target: Target, now: datetime) -> bool:
    """Whether it is time to ask what a pod would be: shortly before it is needed, where no run has told it yet."""
    is_refused = bool(refusal(target))
    if target.cron.shape is None or (is_admission_known(target) and not is_refused):
        return False
    verdict = judge(view, target, now)
    if verdict.because is not None and verdict.because.reason not in (Reason.NOTHING_TO_RESERVE, Reason.REFUSED):
        return False
    if target.asked is not None:
        again = next_dry_run(view, verdict)
        return again is not None and again <= now
    if verdict.because is not None or view.primer.method == BY_CRON_JOB:
        return True
    return verdict.fires is not None and _background_reads_due(view, verdict.fires) <= now


def next_dry_run(view: PrimerView, verdict: Verdict) -> datetime | None:
    """Return when the next dry run is due: soon if there was no answer, for the next warm-up after a refusal."""
    target = verdict.target
    if target.asked is None:
        return None
    if not target.is_dry_run_done:
        return target.asked + DRY_RUN_RETRY
    if verdict.fires is None or not refusal(target):
        return None
    due = _background_reads_due(view, verdict.fires)
    return due if due > target.asked else None


def _background_reads_due(view: PrimerView, found: Fires) -> datetime:
    return found.upcoming - view.primer.warm_up - BACKGROUND_READ_LEAD


def are_volumes_located(target: Target, shape: Shape, fire: datetime | None = None) -> bool:
    """Whether it is known where the bound volumes of a run are, if it has any; with a fire, as of that one."""
    volume_locations = target.volume_locations
    if volume_locations is None or volume_locations.claims != shape.claims:
        return not shape.claims
    return fire is None or volume_locations.fire == fire


def is_volume_lookup_due(view: PrimerView, verdict: Verdict, now: datetime) -> bool:
    """Whether it is time to ask where the bound volumes of a run are: for each fire anew, shortly before it matters."""
    shape, found = verdict.shape, verdict.fires
    if shape is None or found is None or verdict.because is not None:
        return False
    if are_volumes_located(verdict.target, shape, found.upcoming):
        return False
    return view.primer.method == BY_CRON_JOB or found.upcoming - view.primer.warm_up - BACKGROUND_READ_LEAD <= now


def _is_of_template(pod: Shape, template: Shape) -> bool:
    """Whether a pod was made from the template as it is now: admission only adds."""
    has = amounts(pod.requests)
    return set(template.images) <= set(pod.images) and all(
        has.get(name, Fraction(0)) >= amount for name, amount in amounts(template.requests).items()
    )


# Whether it could delay the run


def can_preempt(view: PrimerView, shape: Shape) -> bool:
    """Whether a pod of the run may push a placeholder aside."""
    its, ours = view.priority(shape.priority_class), view.priority(view.settings.priority_class)
    value = shape.priority if shape.priority is not None else its.value if its else 0
    preemption = shape.preemption or (its.preemption if its else "")
    return preemption != "Never" and (ours is None or value > ours.value)


def as_placeholder(view: PrimerView, shape: Shape) -> Shape:
    """Return a placeholder as quotas see it."""
    return msgspec.structs.replace(shape, deadline=True, priority_class=view.settings.priority_class)


def _by_placeholder(view: PrimerView, verdict: Verdict, now: datetime) -> Verdict:
    """Hold until the run has come, if it then finds room; else until a moment before; else not at all."""
    shape, name = verdict.shape, verdict.target.cron.key.name
    if shape is None or verdict.fires is None:
        return verdict
    begins, ends = verdict.fires.upcoming - view.primer.warm_up, verdict.fires.upcoming
    if begins <= now < ends and not is_covered(verdict.target, ends, verdict.count):
        verdict = _within_quotas(view, verdict, shape)
    if verdict.because is None and verdict.early is None and not can_preempt(view, shape):
        text = f"the pods of CronJob {name} may not push a placeholder aside: it goes before the fire"
        early = Because(Reason.CANNOT_PREEMPT, f"{text}. Give them a higher priority class.", Level.NORMAL)
        return msgspec.structs.replace(verdict, early=early)
    return verdict


def _within_quotas(view: PrimerView, verdict: Verdict, shape: Shape) -> Verdict:
    """Ask the quotas, which tell only while a window is open: before it, pods may be there that go in time."""
    target = verdict.target
    name, missing = target.cron.key.name, verdict.count - len([each for each in target.placeholders if each.holds])
    held = [
        (msgspec.structs.replace(shape, requests=each.requests), 1)
        for each in view.namespace_placeholders
        if each.holds
    ]
    more = (as_placeholder(view, shape), max(missing, 0))
    too_small = first_exceeded(view.quotas, [more])
    if too_small is not None and missing > 0:
        text = f"{too_small}, and what CronJob {name} needs does not fit into what is left"
        return msgspec.structs.replace(verdict, because=Because(Reason.QUOTA_TOO_SMALL, f"{text}: raise the quota."))
    # For each placeholder of the namespace a pod is still to come, and all of them may come at once.
    together = first_exceeded(view.quotas, [more, (shape, max(missing, 0)), *held])
    if together is not None:
        text = f"{together}, which does not hold a placeholder and a run of CronJob {name} together"
        early = Because(Reason.QUOTA_TOO_SMALL, f"{text}: it goes before the fire.", Level.NORMAL)
        return msgspec.structs.replace(verdict, early=early)
    return verdict


def _by_buffer(view: PrimerView, verdict: Verdict, now: datetime) -> Verdict:
    """Hold no more than the quotas would let run: a buffer has no pods that they could count."""
    if not view.buffers.is_served:
        text = "the API server does not serve CapacityBuffer: install it with the autoscaler, or use method Auto."
        return msgspec.structs.replace(verdict, because=Because(Reason.BUFFER_NOT_SERVED, text))
    because = _quota_of_buffers(view, verdict, now) or refused_pods(verdict.target)
    return msgspec.structs.replace(verdict, because=because)


def _quota_of_buffers(view: PrimerView, verdict: Verdict, now: datetime) -> Because | None:
    """Ask the quotas: a run must fit alone, and at its warm-up beside all pods and what other buffers hold."""
    target, shape, found = verdict.target, verdict.shape, verdict.fires
    if shape is None or found is None:
        return None
    name, run = target.cron.key.name, [(shape, verdict.count)]
    alone = first_exceeded([msgspec.structs.replace(each, used=()) for each in view.quotas], run)
    if alone is not None:
        return Because(Reason.QUOTA_TOO_SMALL, f"{alone}, which a run of CronJob {name} exceeds: raise the quota.")
    is_open = found.upcoming - view.primer.warm_up <= now < found.upcoming
    is_held = any(each.is_live and each.fire == found.upcoming for each in target.buffers)
    if not is_open or is_held or is_covered(target, found.upcoming, verdict.count):
        return None
    own = {each.key for each in target.buffers}
    others = [(_as_buffered(shape, each), each.count) for each in view.namespace_buffers if each.key not in own]
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
    """Tell pods that admission refuses: with a buffer, the autoscaler would make nodes for pods that never run."""
    words = refusal(target)
    if not words:
        return None
    return Because(Reason.REFUSED, f"the API server refuses the pods of CronJob {target.cron.key.name}: {words}")


def _by_cron_job(view: PrimerView, verdict: Verdict, now: datetime) -> Verdict:
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
    text = (
        f"{cron.text!r} cannot be said {minutes(view.primer.warm_up)} earlier by {MAX_PRIMER_CRON_JOBS} CronJobs: {why}"
    )
    because = Because(Reason.INEXACT, f"{text}. Use method {PLACEHOLDER}.")
    return msgspec.structs.replace(verdict, because=because)


# Runs


def runs_of(target: Target) -> list[tuple[JobRow, list[PodRow]]]:
    """Return the runs in the order of their fires, each with its pods."""
    of: dict[str, list[PodRow]] = {}
    for pod in target.pods:
        of.setdefault(pod.job_uid, []).append(pod)
    return [(job, of.get(job.uid, [])) for job in sorted(target.jobs, key=lambda each: each.fire)]


def run_of(target: Target, fire: datetime) -> tuple[JobRow, list[PodRow]] | None:
    """Return the run of a fire; None if there is none yet."""
    return next((each for each in runs_of(target) if each[0].fire == fire), None)


def has_arrived(target: Target, fire: datetime, count: int) -> bool:
    """Whether the pods of a run have their nodes, so that nothing need be held for it."""
    run = run_of(target, fire)
    if run is None:
        return False
    job, pods = run
    if job.is_over:
        return True
    placed = [each for each in pods if each.node or each.is_over]
    return len(placed) >= min(count, max(target.cron.parallelism, 1)) and len(placed) == len(pods)


def is_covered(target: Target, upcoming: datetime, count: int) -> bool:
    """Whether runs of the CronJob itself hold as many places, and are expected to end before the next fire."""
    runs = runs_of(target)
    active = [(job, pods) for job, pods in runs if not job.is_over]
    held = [each for _, pods in active for each in pods if not each.is_over and not each.is_terminating]
    if not active or len(held) < count:
        return False
    took = [job.ended - job.started for job, _ in runs if job.started is not None and job.ended is not None]
    begun = [job.started or job.fire for job, _ in active]
    return not (target.cron.policy == "Allow" and took and min(begun) + max(took) > upcoming)


def minutes(length: timedelta) -> str:
    """Return a length of time as people write it."""
    whole = length // timedelta(minutes=1)
    hours, left = divmod(whole, 60)
    return "".join((f"{hours}h" if hours else "", f"{left}m" if left or not hours else ""))
