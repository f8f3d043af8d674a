"""The bounds of what is held: how much at once, and how shortly before a fire it is begun."""

from datetime import timedelta

from foresail.primers.observe import CronJobRow, Seen
from foresail.primers.reasons import Because, Reason

USEFUL = timedelta(seconds=5)
"""With less than this before a fire, nothing is begun any more."""

SETTLES = timedelta(seconds=10)
"""For so long after a fire the run and its pods are waited for, before anything is made for the next one."""


def too_many(seen: Seen, cron: CronJobRow, missing: int) -> Because | None:
    """Return why so many places more are not held: the administrator bounds all of them together."""
    here, settings = seen.held_here, seen.settings
    if here + missing <= settings.per_namespace and seen.held_in_all + missing <= settings.in_all:
        return None
    text = f"{here} placeholders in this namespace and {seen.held_in_all} in all leave no room for {missing}"
    most = f"{settings.per_namespace} and {settings.in_all} are allowed"
    return Because(Reason.TOO_MANY_PLACEHOLDERS, f"{text} for CronJob {cron.key.name}: {most}.")
