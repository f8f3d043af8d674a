"""`foresail backup schedule calendar`: the week of a tenant's schedules."""

import argparse
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial

from foresail.cli.cron.load import Timetable, fires_between, load_of
from foresail.cli.schedule.calendar import days_of, draw, hint_omitted
from foresail.cli.tenant.schedule.snapshot import TenantSchedule, read_selected
from foresail.cron import IntervalSchedule, Schedule
from foresail.kube.clock import now
from foresail.selfservice.schedules.rules import DIALECT
from foresail.slots.expression import Unusable, read_expression


def calendar(args: argparse.Namespace) -> int:
    """Draw how many runs start when."""
    days, found, instant = days_of(args), read_selected(args), now()
    drawn = [each for each in map(timetable, found) if each is not None]
    draw(args, load_of(drawn, days, args.zone, instant))
    hint_omitted(len(found), len(drawn), sum(each.row.paused for each in found))
    return 0


def timetable(each: TenantSchedule) -> Timetable | None:
    """Return when a schedule runs; None if it does not."""
    cron = read_expression(each.row.text, each.zone, DIALECT)
    if isinstance(cron, Unusable) or each.row.paused:
        return None
    return Timetable(each.key, partial(fires_of, cron, each))


def fires_of(cron: Schedule, each: TenantSchedule, start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield the runs, delayed as the operator reports of the next one."""
    base, delay = each.row.last_backup or each.row.created, delay_of(cron, each)
    return (fire + delay for fire in fires_between(cron, base, start - delay, end - delay))


def delay_of(cron: Schedule, each: TenantSchedule) -> timedelta:
    """Return by how much the reported next run is later than the expression says."""
    if each.next_run is None or isinstance(cron, IntervalSchedule):
        return timedelta()
    fire = cron.previous(each.next_run + timedelta(seconds=1))
    return each.next_run - fire if fire is not None else timedelta()
