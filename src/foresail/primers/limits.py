"""The bounds of what is held: how much at once, and how shortly before a fire it is begun."""

from datetime import timedelta

from foresail.primers.observe import CronJobRow, PrimerView
from foresail.primers.reasons import Because, Reason

MIN_LEAD = timedelta(seconds=5)
"""With less than this before a fire, nothing is begun any more."""

RUN_GRACE = timedelta(seconds=10)
"""For so long after a fire the run and its pods are waited for, before anything is made for the next one."""


def too_many(view: PrimerView, cron: CronJobRow, missing: int) -> Because | None:
    """Return why so many places more are not held: the administrator bounds all of them together."""
    here, settings = view.held_in_namespace, view.settings
    if here + missing <= settings.max_per_namespace and view.held_in_cluster + missing <= settings.max_in_cluster:
        return None
    text = f"{here} placeholders in this namespace and {view.held_in_cluster} in all leave no room for {missing}"
    most = f"{settings.max_per_namespace} and {settings.max_in_cluster} are allowed"
    return Because(Reason.TOO_MANY_PLACEHOLDERS, f"{text} for CronJob {cron.key.name}: {most}.")
