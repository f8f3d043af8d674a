"""From the view of a Primer to its Plan: what is held for each of its CronJobs, status, Events and reads."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from types import ModuleType

import msgspec

from foresail.api.marks import WARM_UP
from foresail.api.pods import POD
from foresail.api.primer import BY_BUFFER, BY_CRON_JOB, PLACEHOLDER, PRIMER, Primed
from foresail.cron.shift import Shifted
from foresail.plan import Action, Claim, Create, Patch, Plan, Subject
from foresail.primers import method_buffer, method_cronjob, method_placeholder
from foresail.primers.annotated import record_patch
from foresail.primers.buffer_rows import expected_pods
from foresail.primers.build import delete_placeholder, delete_primer_cron_job
from foresail.primers.reasons import Reason
from foresail.primers.rows import PrimerRow
from foresail.primers.rules import (
    Verdict,
    are_volumes_located,
    background_reads_due,
    is_admission_known,
    judge,
    next_dry_run,
    not_allowed_here,
    refusal,
)
from foresail.primers.status import patch_body, primed_of, status_of
from foresail.primers.steps import UNREADABLE, Steps, recorded_primed
from foresail.primers.view import DryRunRequest, PrimerView, Target, VolumeLookup
from foresail.reporting import Because, note

METHODS: dict[str, ModuleType] = {
    PLACEHOLDER: method_placeholder,
    BY_CRON_JOB: method_cronjob,
    BY_BUFFER: method_buffer,
}


MAX_CRON_JOBS = 100
"""Of CronJobs for one Primer: the status has an entry for each."""

_LONGEST_PROBLEM = 200
_MAX_REQUEUE = timedelta(hours=6)  # the rules of zones change, and clocks are set


class Expects(Claim, msgspec.Struct, frozen=True):
    """What a Plan creates: it counts before the store shows it."""

    creates: tuple[Create, ...]


def decide(view: PrimerView, now: datetime) -> Plan:
    """Return what to do for a Primer now, and when to reconcile next.

    Placeholders come before the status: if thousands are due at once, all are created before any status is written.
    Their names are derived, so a crash between the two creates no second one.
    """
    primer = view.primer
    subject = Subject(primer.kind, primer.key, primer.uid)
    if primer.is_terminating:
        return Plan(subject=subject)  # what it owns is deleted with it
    judged = _judge_targets(view, now)
    actions: list[Action] = [
        delete_placeholder(placeholder) for placeholder in view.stray_placeholders if not placeholder.is_terminating
    ]
    actions += [delete_primer_cron_job(job) for job in view.stray_primer_cron_jobs if not job.is_terminating]
    left = [
        method_buffer.release_buffers(view, view.stray_buffers, view.stray_templates, now),
        *_released_beyond(view, now),
    ]
    for steps in (*left, *(steps for _, steps in judged)):
        actions += steps.actions
    expects = _expects(actions)
    # With the next reconcile, which the placeholders themselves bring about.
    is_later = bool(expects.creates) and not _lost(judged)
    return Plan(
        actions=tuple(actions),
        status=None if is_later else _status(view, judged, now),
        notes=tuple(note(subject, event) for event in new_events(view, judged)),
        wake_at=_wake((*left, *(steps for _, steps in judged)), now) if judged or left[0].wakes else None,
        subject=subject,
        claims=(expects,),
    )


def _expects(actions: Sequence[Action]) -> Expects:
    return Expects(tuple(action for action in actions if isinstance(action, Create)))


def _released_beyond(view: PrimerView, now: datetime) -> list[Steps]:
    """Release what is held for CronJobs beyond the most that a Primer may have."""
    return [method.release(view, target, now) for target in view.targets[MAX_CRON_JOBS:] for method in METHODS.values()]


def _judge_target(view: PrimerView, target: Target, now: datetime) -> tuple[Verdict, Steps]:
    """Judge one CronJob; if its values cannot be read, release its capacity."""
    try:
        return plan_target(view, judge(view, target, now), now)
    except UNREADABLE as problem:
        text = f"the values for CronJob {target.cron.key.name} cannot be read: {str(problem)[:_LONGEST_PROBLEM]}"
        because = Because(Reason.UNREADABLE, f"{text}. Correct the CronJob, or what is set for it.")
        return plan_target(view, Verdict(target, because=because), now)


def _judge_targets(view: PrimerView, now: datetime) -> list[tuple[Verdict, Steps]]:
    """Judge one CronJob after the other: what is created for one counts in the limits and quotas for the next."""
    judged: list[tuple[Verdict, Steps]] = []
    for target in view.targets[:MAX_CRON_JOBS]:
        verdict, steps = _judge_target(view, target, now)
        judged.append((verdict, steps))
        view = _with_expected(view, steps)
    return judged


def _with_expected(view: PrimerView, steps: Steps) -> PrimerView:
    """Return the view in which what some steps create counts in the limits, and its buffers in the quotas."""
    creates = [action for action in steps.actions if isinstance(action, Create)]
    buffers = tuple(expected_pods(create, creates) for create in creates if create.kind == view.buffers.kind)
    more = sum(create.kind == POD for create in creates) + sum(buffer.count for buffer in buffers)
    if not more:
        return view
    return msgspec.structs.replace(
        view,
        held_in_namespace=view.held_in_namespace + more,
        held_in_cluster=view.held_in_cluster + more,
        namespace_buffers=(*view.namespace_buffers, *buffers) if view.quotas else (),
    )


def _status(view: PrimerView, sequence: Sequence[tuple[Verdict, Steps]], now: datetime) -> Patch | None:
    """Return the write of the status: into the Primer, or into the record of an annotated CronJob."""
    primer = view.primer
    if primer.kind == PRIMER:
        body = patch_body(primer.status, status_of(view, sequence, now))
        return Patch(PRIMER, primer.key, body, primer.version, "status") if body else None
    if view.annotated is None or not view.settings.allows_annotations(primer.key.namespace):
        return None
    primed = next((primed_of(view, verdict, steps) for verdict, steps in sequence), None)
    return record_patch(view.annotated, primed, now)


def plan_target(view: PrimerView, verdict: Verdict, now: datetime) -> tuple[Verdict, Steps]:
    """Plan by the method in use; release what another method has left behind."""
    target = verdict.target
    steps = Steps()
    left: list[Steps] = []
    for name, method in METHODS.items():
        if name != verdict.method:
            left.append(method.release(view, target, now))
        elif verdict.because is None:
            steps = method.plan(view, verdict, now)
        else:
            steps = method.release(view, target, now)
            if verdict.fires is not None:  # its status changes with the fires, whoever runs them
                steps = msgspec.structs.replace(steps, wakes=(*steps.wakes, verdict.fires.upcoming))
    again = next_dry_run(view, verdict)
    actions = [*steps.actions, *(action for released in left for action in released.actions)]
    wakes = [*steps.wakes, *(at for released in left for at in released.wakes), *([] if again is None else [again])]
    return verdict, msgspec.structs.replace(steps, actions=tuple(actions), wakes=tuple(wakes))


def new_events(view: PrimerView, sequence: Sequence[tuple[Verdict, Steps]]) -> list[Because]:
    """Return what to report as Events: what is new since the last reconcile."""
    news = [not_allowed_here(view) or _off(view.primer)] if view.is_off_unreported else []
    for verdict, steps in sequence:
        known = recorded_primed(view, verdict.target.cron.uid)
        because = verdict.because or steps.because
        if because is not None and _is_new(because, known):
            news.append(because)
        if verdict.shifted is not None and not verdict.shifted.exact and (known is None or known.exact):
            news.append(_inexact(verdict.target.cron.key.name, verdict.shifted))
        news += steps.events
    if view.images_refused and any(isinstance(action, Create) for _, steps in sequence for action in steps.actions):
        text = f"namespace {view.primer.key.namespace} refuses image volumes, so no image is pulled ahead"
        news.append(Because(Reason.IMAGES_NOT_PULLED, f"{text}: {view.images_refused}"))
    return news


def _is_new(because: Because, known: Primed | None) -> bool:
    if known is None or known.reason != because.reason.value:
        return True
    return because.reason is Reason.INVALID_ANNOTATION and known.message != because.message


def _off(primer: PrimerRow) -> Because:
    text = f"CronJob {primer.key}: annotation {WARM_UP} is ignored because the administrator allows only Primers"
    return Because(Reason.ANNOTATIONS_OFF, f"{text}: create one, or ask for primers.annotations in the chart's values.")


def _inexact(name: str, shifted: Shifted) -> Because:
    dates = ", ".join(day.isoformat() for day in shifted.inexact_dates[:3])
    on = f" The first dates are {dates}." if dates else ""
    return Because(Reason.INEXACT, f"CronJob {name}: {shifted.reason}.{on} {shifted.advice or ''}".strip())


def _lost(sequence: Sequence[tuple[Verdict, Steps]]) -> bool:
    return any(steps.warming is not None and steps.warming.lost for _, steps in sequence)


def _wake(several: Iterable[Steps], now: datetime) -> datetime:
    instants = [at for steps in several for at in steps.wakes if at > now]
    return min([*instants, now + _MAX_REQUEUE])


def due_read(view: PrimerView, target: Target, now: datetime) -> DryRunRequest | VolumeLookup | None:
    """Return the next background read about a CronJob; None if all is known, or not needed yet."""
    try:
        return _wanted(view, target, now)
    except UNREADABLE:  # as the decision reports
        return None


def _wanted(view: PrimerView, target: Target, now: datetime) -> DryRunRequest | VolumeLookup | None:
    cron = target.cron
    template = target.cron.shape
    if template is None:
        return None
    if is_dry_run_due(view, target, now):
        return DryRunRequest(cron.key, cron.uid, template, cron.generation, target.resources)
    if not template.claims:
        return None  # as with most, so the rules need not be evaluated a second time
    verdict = judge(view, target, now)
    if verdict.shape is not None and verdict.fires is not None and is_volume_lookup_due(view, verdict, now):
        return VolumeLookup(cron.key.namespace, cron.uid, verdict.shape.claims, verdict.fires.upcoming)
    return None


def is_dry_run_due(view: PrimerView, target: Target, now: datetime) -> bool:
    """Whether a dry run is due: shortly before the warm-up, unless a run has shown what admission does."""
    is_refused = bool(refusal(target))
    if target.cron.shape is None or (is_admission_known(target) and not is_refused):
        return False
    verdict = judge(view, target, now)
    if verdict.because is not None and verdict.because.reason not in (Reason.NOTHING_TO_RESERVE, Reason.REFUSED):
        return False
    if target.dry_run_at is not None:
        again = next_dry_run(view, verdict)
        return again is not None and again <= now
    if verdict.because is not None or view.primer.method == BY_CRON_JOB:
        return True
    return verdict.fires is not None and background_reads_due(view, verdict.fires) <= now


def is_volume_lookup_due(view: PrimerView, verdict: Verdict, now: datetime) -> bool:
    """Whether a volume lookup is due: again for each fire, shortly before its warm-up."""
    shape = verdict.shape
    fires = verdict.fires
    if shape is None or fires is None or verdict.because is not None:
        return False
    if are_volumes_located(verdict.target, shape, fires.upcoming):
        return False
    return view.primer.method == BY_CRON_JOB or background_reads_due(view, fires) <= now
