"""What the API server is to be asked about a CronJob before a placeholder is made for it."""

from datetime import datetime

from foresail.primers.observe import Seen, Target
from foresail.primers.rehearsal import Wish
from foresail.primers.rules import judge, wants_rehearsal, wants_search
from foresail.primers.search import Search
from foresail.primers.steps import UNREADABLE


def wanted_read(seen: Seen, target: Target, now: datetime) -> Wish | Search | None:
    """Return the next question about a CronJob; None if everything is known, or not needed yet."""
    try:
        return _wanted(seen, target, now)
    except UNREADABLE:  # as the decision reports
        return None


def _wanted(seen: Seen, target: Target, now: datetime) -> Wish | Search | None:
    cron, template = target.cron, target.cron.shape
    if template is None:
        return None
    if wants_rehearsal(seen, target, now):
        return Wish(cron.key, cron.uid, template, cron.generation)
    if not template.claims:
        return None  # as with most: and what the rules say need not be asked a second time
    verdict = judge(seen, target, now)
    if verdict.shape is not None and verdict.fires is not None and wants_search(seen, verdict, now):
        return Search(cron.key.namespace, cron.uid, verdict.shape.claims, verdict.fires.upcoming)
    return None
