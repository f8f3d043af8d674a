"""The bounds of what is held: how much at once, and how shortly before a fire it is begun."""

from datetime import timedelta

from foresail.primers.observe import PrimerView
from foresail.primers.reasons import Reason
from foresail.primers.rows import CronJobRow
from foresail.reporting import Because

MIN_LEAD = timedelta(seconds=5)
"""Closer to a fire than this, no warm-up begins."""

RUN_GRACE = timedelta(seconds=10)
"""How long after a fire the next warm-up waits for the run and its pods."""


def too_many(view: PrimerView, cron: CronJobRow, missing: int) -> Because | None:
    """Return why capacity for so many more pods is not held: the administrator limits the total."""
    here = view.held_in_namespace
    settings = view.settings
    if missing <= 0:
        return None
    if here + missing <= settings.max_per_namespace and view.held_in_cluster + missing <= settings.max_in_cluster:
        return None
    held = f"this namespace holds {here} of {settings.max_per_namespace}"
    total = f"the cluster {view.held_in_cluster} of {settings.max_in_cluster}"
    text = f"CronJob {cron.key.name} needs {missing} more placeholders: {held}, {total}"
    return Because(Reason.TOO_MANY_PLACEHOLDERS, f"{text}. Wait, or ask an administrator for a higher limit.")
