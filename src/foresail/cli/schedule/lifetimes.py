"""The words about Schedules whose Backups do not live until the next run."""

from datetime import datetime

from foresail.cli.output.words import compact
from foresail.reporting import Because
from foresail.schedules.expression import parse_expression
from foresail.schedules.lifetimes import ShortLife, short_life
from foresail.schedules.observe import ScheduleView
from foresail.schedules.slots import timing_of

LONGER = "set a longer ttl in the template, or retention in a SchedulePolicy"
"""What to do about it."""


def short_life_of(view: ScheduleView, at: datetime) -> ShortLife | None:
    """Return how long the Backups of a Schedule live if that is no longer than the time between two runs."""
    cron = parse_expression(view.schedule.text, view.settings.zone, view.server.dialect, at)
    if isinstance(cron, Because):
        return None
    return short_life(view.schedule.template, view.server.default_ttl, cron, at, timing_of(view), view.policy)


def expires_first(life: ShortLife) -> str:
    """Return what that means."""
    apart = f"and runs are up to {compact(life.gap)} apart"
    return f"Velero deletes each Backup after {compact(life.ttl)}, {apart}, so after a run that fails none is left"
