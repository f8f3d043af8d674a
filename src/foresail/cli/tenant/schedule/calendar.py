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
    days = days_of(args)
    schedules = read_selected(args)
    instant = now()
    drawn = [line for line in map(timetable, schedules) if line is not None]
    draw(args, load_of(drawn, days, args.zone, instant))
    hint_omitted(len(schedules), len(drawn), sum(schedule.row.paused for schedule in schedules))
    return 0


def timetable(schedule: TenantSchedule) -> Timetable | None:
    """Return when a schedule runs; None if it does not."""
    cron = read_expression(schedule.row.text, schedule.zone, DIALECT)
    if isinstance(cron, Unusable) or schedule.row.paused:
        return None
    return Timetable(schedule.key, partial(fires_of, cron, schedule))


def fires_of(cron: Schedule, schedule: TenantSchedule, start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield the runs, delayed as the operator reports of the next one."""
    base = schedule.row.last_backup or schedule.row.created
    delay = delay_of(cron, schedule)
    return (fire + delay for fire in fires_between(cron, base, start - delay, end - delay))


def delay_of(cron: Schedule, schedule: TenantSchedule) -> timedelta:
    """Return by how much the reported next run is later than the expression says."""
    if schedule.next_run is None or isinstance(cron, IntervalSchedule):
        return timedelta()
    fire = cron.previous(schedule.next_run + timedelta(seconds=1))
    return schedule.next_run - fire if fire is not None else timedelta()
