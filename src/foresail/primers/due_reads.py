"""Which background read about a CronJob is due: an admission dry run, or a volume lookup."""

from datetime import datetime

from foresail.api.primer import BY_CRON_JOB
from foresail.primers.admission import (
    are_volumes_located,
    background_reads_due,
    is_admission_known,
    next_dry_run,
    refusal,
)
from foresail.primers.admission_dry_run import DryRunRequest
from foresail.primers.observe import PrimerView, Target
from foresail.primers.reasons import Reason
from foresail.primers.rules import judge
from foresail.primers.steps import UNREADABLE
from foresail.primers.verdict import Verdict
from foresail.primers.volume_lookup import VolumeLookup


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
