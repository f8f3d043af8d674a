"""A good moment to restart Velero: no run of a Schedule is due, and none comes due while Velero restarts."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from foresail.api import velero
from foresail.schedules.observe import ScheduleRow, ScheduleView, VeleroServer, schedule_row
from foresail.schedules.rules import judge
from foresail.schedules.settings import Settings

RESTART_TIME = timedelta(seconds=15)
_VELERO_LATENESS = timedelta(minutes=2)  # a run that is due for longer is blocked: it would not start now


def readable(raws: Iterable[msgspec.Raw]) -> list[ScheduleRow]:
    """Return the rows of the Schedules that can be read; the others never run."""
    rows = []
    for raw in raws:
        try:
            rows.append(schedule_row(msgspec.json.decode(raw, type=velero.Schedule)))
        except (msgspec.DecodeError, ValueError):
            continue
    return rows


def is_quiet(schedules: Iterable[ScheduleRow], zone: str, now: datetime) -> bool:
    """Tell whether no run is due now or within the time of a restart, by the cron expressions read in that zone."""
    return not any(_runs_soon(schedule, zone, now) for schedule in schedules)


def _runs_soon(row: ScheduleRow, zone: str, now: datetime) -> bool:
    verdict = judge(ScheduleView(row, (), None, VeleroServer(None), Settings(zone=zone)), now)
    if verdict.due_since is not None and now - verdict.due_since < _VELERO_LATENESS:
        return True
    return not row.paused and verdict.starts is not None and verdict.starts - now < RESTART_TIME
