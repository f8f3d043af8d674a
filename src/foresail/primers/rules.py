"""The rules: whether a CronJob can be primed at all.

Each rule is one small function named after the question; `judge` asks them in order.
"""

from datetime import datetime

import msgspec

from foresail.api.marks import WARM_UP
from foresail.api.primer import BY_BUFFER, BY_CRON_JOB, PRIMER
from foresail.plan import Level
from foresail.primers.admission import wanted_shape
from foresail.primers.cluster_rows import UNWARMABLE
from foresail.primers.durations import minutes
from foresail.primers.fires import STANDING, duty_cycle, fires
from foresail.primers.method_choice import choose_method
from foresail.primers.method_rules import by_buffer, by_cron_job, by_placeholder
from foresail.primers.observe import PrimerView, Target
from foresail.primers.reasons import Reason
from foresail.primers.shape import amounts
from foresail.primers.verdict import Verdict
from foresail.reporting import Because


def judge(view: PrimerView, target: Target, now: datetime) -> Verdict:
    """Evaluate every rule in order; the first that fails is the reason."""
    primer = view.primer
    settings = view.settings
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
