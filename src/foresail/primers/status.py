"""The status of a Primer: an entry for each CronJob, the last start delays, and the conditions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from foresail.api.instants import whole
from foresail.api.primer import BY_CRON_JOB, Expression, Primed, PrimerStatus
from foresail.api.requests import Condition
from foresail.cron.shift import Shifted
from foresail.primers.reasons import Reason
from foresail.primers.rows import PrimerRow, minutes
from foresail.primers.rules import Verdict
from foresail.primers.start_delays import start_delays
from foresail.primers.steps import Steps, recorded_primed
from foresail.primers.view import PrimerView
from foresail.reporting import LONGEST_MESSAGE, dated, merge_patch

READY, EXACT, WARMING = "Ready", "Exact", "Warming"

_DATES = 10


def status_of(view: PrimerView, sequence: Sequence[tuple[Verdict, Steps]], now: datetime) -> PrimerStatus:
    """Return the whole next status."""
    primer = view.primer
    primed = tuple(primed_of(view, verdict, steps) for verdict, steps in sequence)
    held = [cron_job for cron_job in primed if cron_job.reason is None]
    return PrimerStatus(
        observed_generation=primer.generation,
        matched=len(primed),
        warm_up=minutes(primer.warm_up),
        next_fire=min((cron_job.next_fire for cron_job in held if cron_job.next_fire), default=None),
        next_warm_up=min((cron_job.next_warm_up for cron_job in held if cron_job.next_warm_up), default=None),
        cron_jobs=primed,
        conditions=tuple(_conditions(view, primed, sequence, now)),
    )


def primed_of(view: PrimerView, verdict: Verdict, steps: Steps) -> Primed:
    """Return the status entry of one CronJob."""
    cron = verdict.target.cron
    fires = verdict.fires
    blank = Primed(name=cron.key.name, uid=cron.uid)
    known = recorded_primed(view, cron.uid) or blank
    known_buffer = known if verdict.method_because else blank
    because = verdict.because or steps.because
    upcoming = fires.upcoming if fires and because is None else None
    primed = msgspec.structs.replace(
        blank,
        next_fire=upcoming,
        next_warm_up=upcoming - view.primer.warm_up if upcoming is not None else None,
        duty_cycle_percent=verdict.duty,
        reason=because.reason.value if because else None,
        message=because.message[:LONGEST_MESSAGE] if because else None,
        method=verdict.method,
        method_because=verdict.method_because,
        buffer_unanswered=steps.unanswered or known_buffer.buffer_unanswered,
        buffer_refused=steps.refused or known_buffer.buffer_refused,
        early=verdict.early.message if verdict.early and because is None else None,
        warming=steps.warming,
        start_delays=start_delays(known.start_delays, verdict, steps),
    )
    return _with_shift(primed, verdict.shifted) if verdict.shifted else primed


def _with_shift(primed: Primed, shifted: Shifted) -> Primed:
    """Add the expressions that fire earlier by the warm-up, and when they are not exact."""
    return msgspec.structs.replace(
        primed,
        shifted=tuple(Expression(schedule.schedule, schedule.time_zone) for schedule in shifted.schedules),
        exact=shifted.exact,
        inexact_because=None if shifted.exact else shifted.reason,
        inexact_dates=tuple(day.isoformat() for day in shifted.inexact_dates[:_DATES]),
    )


def patch_body(before: PrimerStatus, after: PrimerStatus) -> dict[str, Any]:
    """Return the merge patch from one status to the other; empty if nothing changes."""
    if before == after:
        return {}
    return {"status": merge_patch(msgspec.to_builtins(before), msgspec.to_builtins(after))}


def _conditions(
    view: PrimerView, primed: Sequence[Primed], sequence: Sequence[tuple[Verdict, Steps]], now: datetime
) -> list[Condition]:
    values = (
        (READY, _ready(view, primed)),
        (EXACT, _exact(view.primer, primed)),
        (WARMING, _warming(sequence)),
    )
    return [_condition(view.primer, kind, value, now) for kind, value in values]


def _ready(view: PrimerView, primed: Sequence[Primed]) -> "_ConditionValue":
    primer = view.primer
    targets = len(view.targets)
    if len(primed) < targets:
        text = f"{targets} CronJobs match, and a Primer can prime at most {len(primed)}: select fewer."
        return "False", Reason.TOO_MANY, text
    if not primed:
        return "False", Reason.NO_CRON_JOB, _none(primer)
    if primer.suspend:
        return "False", Reason.SUSPENDED, "spec.suspend is true, so nothing is held."
    blocked = next((entry for entry in primed if entry.reason not in (None, Reason.SUSPENDED.value)), None)
    if blocked is not None:
        return "False", Reason(blocked.reason or ""), blocked.message or ""
    count = "One CronJob is" if len(primed) == 1 else f"{len(primed)} CronJobs are"
    return "True", Reason.READY, f"{count} primed."


def _exact(primer: PrimerRow, primed: Sequence[Primed]) -> "_ConditionValue":
    inexact = next((entry for entry in primed if not entry.exact), None)
    if inexact is not None:
        dates = f", first on {', '.join(inexact.inexact_dates[:3])}" if inexact.inexact_dates else ""
        return "False", Reason.INEXACT, f"CronJob {inexact.name}: {inexact.inexact_because}{dates}."
    if primer.method == BY_CRON_JOB:
        text = "The primer CronJobs fire at each fire minus the warm-up, and at no other time."
        return "True", Reason.EXACT, text
    return "True", Reason.INSTANTS, "Each warm-up is at a fire minus the warm-up."


def _warming(sequence: Sequence[tuple[Verdict, Steps]]) -> "_ConditionValue":
    if any(steps.is_warming for _, steps in sequence):
        return "True", Reason.WARMING, "Capacity is held, or being created, for the next fire."
    return "False", Reason.WAITING, "No warm-up has begun."


_ConditionValue = tuple[Literal["True", "False"], Reason, str]


def _condition(primer: PrimerRow, kind: str, value: _ConditionValue, now: datetime) -> Condition:
    status, reason, message = value
    new = Condition(kind, status, reason.value, message[:LONGEST_MESSAGE], whole(now), primer.generation)
    return dated(primer.status.conditions or (), new)


def _none(primer: PrimerRow) -> str:
    where = f"namespace {primer.key.namespace}"
    if primer.selector is None:
        return f"There is no CronJob {primer.cron_job} in {where}: create it, or correct spec.cronJob."
    return f"No CronJob in {where} has the labels of spec.selector."
