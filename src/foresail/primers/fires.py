"""When a CronJob fires next, as kube-controller-manager counts it, and for how much of the time it is warm before."""

from datetime import datetime, timedelta
from itertools import islice

import msgspec

from foresail.cron import CronError, Dialect, IntervalSchedule, Schedule, fires_after, outlook, parse
from foresail.cron.shift import Shifted, shift
from foresail.primers.reasons import Reason
from foresail.primers.rows import LONGEST_SCHEDULE, CronJobRow
from foresail.primers.small_cache import small_cache
from foresail.reporting import Because

STANDING = 50
"""The duty cycle in percent above which capacity is held almost permanently."""

_CACHE_SIZE = 20_000
_LONGEST_CACHED = 256  # characters of a schedule and its zone: a tenant can write any number of long ones
_HORIZON = timedelta(days=28)
_MOST_FIRES = 2_000


class Fires(msgspec.Struct, frozen=True):
    """The last fire of a CronJob, and the next one."""

    last: datetime | None
    upcoming: datetime


def fires(cron: CronJobRow, zone: str, now: datetime) -> Fires | Because:
    """Return the fires around now, found along the chain that the controller follows."""
    schedule = parsed_schedule(cron.text, cron.zone or zone)
    if isinstance(schedule, Because):
        return schedule
    if isinstance(schedule, IntervalSchedule) and cron.deadline is not None and cron.deadline < schedule.period:
        # The controller counts the period from its deadline before now at the earliest, so it always ends after now.
        text = f"startingDeadlineSeconds of {int(cron.deadline.total_seconds())} is shorter than the period"
        advice = f"{text} of {cron.text!r}, so Kubernetes never runs it: raise the deadline, or remove it."
        return Because(Reason.NEVER_FIRES, f"CronJob {cron.key}: {advice}")
    anchor = cron.last or cron.created
    if cron.deadline is not None:
        anchor = max(anchor, now - cron.deadline)  # the controller does not look further back
    ahead = outlook(schedule, anchor, now)
    if ahead.upcoming is None:
        text = f"{cron.text!r} has no fire in the next five years, which is the controller's horizon: correct it."
        return Because(Reason.NEVER_FIRES, f"CronJob {cron.key}: {text}")
    last = ahead.due or cron.last
    return Fires(last, ahead.upcoming)


@small_cache(_CACHE_SIZE, largest=_LONGEST_CACHED)
def parsed_schedule(text: str, zone: str) -> Schedule | Because:
    """Return the parsed schedule of a CronJob; a reason if it is invalid or too long."""
    if len(text) > LONGEST_SCHEDULE:
        problem = f"invalid schedule: it has more than {LONGEST_SCHEDULE} characters"
        return Because(Reason.INVALID, f"{problem}. Shorten spec.schedule of the CronJob.")
    try:
        return parse(text, Dialect.ROBFIG, zone)
    except CronError as error:
        return Because(Reason.INVALID, f"invalid schedule: {error}")


def duty_cycle(cron: CronJobRow, zone: str, warm_up: timedelta) -> int:
    """Return for how many percent of the time capacity is held; counted from the creation, so it does not change."""
    return _duty_cycle(cron.text, cron.zone or zone, warm_up, cron.created)


@small_cache(_CACHE_SIZE, largest=_LONGEST_CACHED)
def _duty_cycle(text: str, zone: str, warm_up: timedelta, since: datetime) -> int:
    schedule = parsed_schedule(text, zone)
    if isinstance(schedule, Because):
        return 0
    held = timedelta(0)
    free_from = since
    last = since
    for fire in islice(fires_after(schedule, since), _MOST_FIRES):
        if fire > since + _HORIZON:
            last = since + _HORIZON
            break
        held += fire - max(fire - warm_up, free_from)
        free_from = last = fire
    return round(100 * held / (last - since)) if last > since else 0


def shifted(cron: CronJobRow, zone: str, warm_up: timedelta, now: datetime) -> Shifted | Because:
    """Return the expressions that fire that much earlier, judged from the beginning of this month on."""
    month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return _shifted(cron.text, cron.zone or zone, warm_up // timedelta(minutes=1), month)


@small_cache(_CACHE_SIZE, largest=_LONGEST_CACHED)
def _shifted(text: str, zone: str, minutes: int, since: datetime) -> Shifted | Because:
    schedule = parsed_schedule(text, zone)
    return schedule if isinstance(schedule, Because) else shift(schedule, minutes, since)
