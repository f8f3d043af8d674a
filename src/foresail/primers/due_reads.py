"""What the API server is to be asked about a CronJob before a placeholder is made for it."""

from datetime import datetime

from foresail.primers.admission_dry_run import DryRunRequest
from foresail.primers.observe import PrimerView, Target
from foresail.primers.rules import is_dry_run_due, is_volume_lookup_due, judge
from foresail.primers.steps import UNREADABLE
from foresail.primers.volume_lookup import VolumeLookup


def due_read(view: PrimerView, target: Target, now: datetime) -> DryRunRequest | VolumeLookup | None:
    """Return the next question about a CronJob; None if everything is known, or not needed yet."""
    try:
        return _wanted(view, target, now)
    except UNREADABLE:  # as the decision reports
        return None


def _wanted(view: PrimerView, target: Target, now: datetime) -> DryRunRequest | VolumeLookup | None:
    cron, template = target.cron, target.cron.shape
    if template is None:
        return None
    if is_dry_run_due(view, target, now):
        return DryRunRequest(cron.key, cron.uid, template, cron.generation)
    if not template.claims:
        return None  # as with most: and what the rules say need not be asked a second time
    verdict = judge(view, target, now)
    if verdict.shape is not None and verdict.fires is not None and is_volume_lookup_due(view, verdict, now):
        return VolumeLookup(cron.key.namespace, cron.uid, verdict.shape.claims, verdict.fires.upcoming)
    return None
