"""Reads what a report shows, by the functions of `foresail coverage` and `foresail schedule calendar`."""

import asyncio
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from foresail.api.nonadmin import NON_ADMIN_SCHEDULE
from foresail.api.restore_check import RESTORE_CHECK
from foresail.cli.access.cluster import Cluster, may
from foresail.cli.coverage.own_snapshot import read_own_view
from foresail.cli.coverage.show import selected
from foresail.cli.coverage.snapshot import read_view_and_schedules
from foresail.cli.cron.load import Timetable
from foresail.cli.schedule.calendar import timetables
from foresail.cli.schedule.snapshot import EvaluatedSchedule
from foresail.cli.tenant.schedule.calendar import timetable as tenant_timetable
from foresail.cli.tenant.schedule.snapshot import decode_each
from foresail.console.report.figures import (
    MOST_RUNS,
    Figures,
    LastCheck,
    calendar_load,
    failed_first,
    failed_runs,
    last_checks,
    planned_runs,
    runs_of,
    upcoming_runs,
)
from foresail.cron.zone_names import validate_zone_name
from foresail.cron.zones import load_zoneinfo
from foresail.proof.coverage import NamespaceCoverage, judge
from foresail.proof.runs import blocked
from foresail.proof.view import BackupRow, ScheduleRow

_NEWEST, _MOST_SHOWN = 10, 1000
"""Velero Backups in the list of a namespace, and of each schedule on its time line."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a report is about."""

    velero_namespace: str
    namespace: str = ""  # empty: all namespaces
    objective: timedelta | None = None
    zone: str = "UTC"


async def read_cluster(cluster: Cluster, wanted: Wanted, now: datetime) -> Figures:
    """Read an administrator's report: all namespaces, or one."""
    view, evaluated = await read_view_and_schedules(cluster, wanted.velero_namespace, wanted.objective, now)
    judged = await asyncio.to_thread(judge, view, now)  # long with many namespaces: the console serves others meanwhile
    coverages = selected(judged, wanted.namespace, wanted.velero_namespace)
    runs = timetables(evaluated, now)
    runs += await _tenants_timetables(cluster, wanted.namespace)
    checks = await _checks(cluster, wanted.velero_namespace)
    if not wanted.namespace:
        shown = runs_of(view.backups, {}, MOST_RUNS)
        return replace(_figures(wanted, now, coverages, runs, view.backups, view.schedules), checks=checks, runs=shown)
    titles = {title for coverage in coverages for title in coverage.schedules}
    of_velero = wanted.velero_namespace
    runs = [run for run in runs if _title(run, of_velero) in titles]
    backups = [backup for backup in view.backups if backup.schedule in titles]
    own = await _checks(cluster, wanted.namespace) if wanted.namespace != of_velero else None
    covering = _covering(checks, titles, own)
    velero = _of_velero(view.backups, titles, wanted)
    by_hand = [backup for backup in velero if backup.schedule not in titles]
    return replace(
        _figures(wanted, now, coverages, runs, backups, view.schedules),
        checks=covering,
        velero=velero[:_NEWEST],
        runs=runs_of((*backups, *by_hand), _goes(evaluated), _MOST_SHOWN),
        planned=planned_runs(starting_runs(runs, view.schedules, of_velero, now), now),
    )


def _goes(evaluated: Iterable[EvaluatedSchedule]) -> dict[str, datetime | None]:
    """Return by their names when Backups of Schedules are deleted: by retention, or when Velero's ttl ends."""
    return {row.key.name: row.delete_after or row.expires for one in evaluated for row in one.view.backups}


def _of_velero(backups: Iterable[BackupRow], titles: Container[str], wanted: Wanted) -> tuple[BackupRow, ...]:
    """Return the newest Backups of the Schedules that cover a namespace, and those by hand that name it."""
    own = [
        backup
        for backup in backups
        if "/" not in backup.schedule
        and (backup.schedule in titles or wanted.namespace in (backup.spec.included_namespaces or ()))
    ]
    first = datetime(1970, 1, 1, tzinfo=UTC)
    return tuple(sorted(own, key=lambda backup: backup.started or first, reverse=True))


def _covering(
    checks: tuple[LastCheck, ...] | None, titles: Container[str], own: tuple[LastCheck, ...] | None
) -> tuple[LastCheck, ...] | None:
    """Return the checks of the schedules with these titles and a namespace's own; None if none may be listed."""
    if checks is None and own is None:
        return None
    covering = (check for check in checks or () if check.schedule in titles)
    return failed_first((*covering, *(own or ())))


async def read_own(cluster: Cluster, wanted: Wanted, now: datetime) -> Figures:
    """Read a tenant's report: their namespace, and their own schedules, backups and checks."""
    view = await read_own_view(cluster, wanted.namespace, wanted.velero_namespace, wanted.objective, now)
    runs = await _tenants_timetables(cluster, wanted.namespace)
    checks = await _checks(cluster, wanted.namespace)
    return replace(
        _figures(wanted, now, judge(view, now), runs, view.backups, view.schedules),
        is_tenant=True,
        checks=checks,
        runs=runs_of(view.backups, {}, _MOST_SHOWN),
        planned=planned_runs(starting_runs(runs, view.schedules, wanted.velero_namespace, now), now),
    )


async def _checks(cluster: Cluster, namespace: str) -> tuple[LastCheck, ...] | None:
    """Return the last results of the RestoreChecks of a namespace; None if the user may not list them."""
    if not await may(cluster, "list", RESTORE_CHECK, namespace):
        return None
    return last_checks(await cluster.listed_if_known(RESTORE_CHECK, namespace))


async def _tenants_timetables(cluster: Cluster, namespace: str) -> list[Timetable]:
    schedules = decode_each(await cluster.listed_if_known(NON_ADMIN_SCHEDULE, namespace))
    accepted = (schedule for schedule in schedules if schedule.blocking is None)
    return [timetable for tenant_schedule in accepted if (timetable := tenant_timetable(tenant_schedule)) is not None]


def starting_runs(
    runs: Iterable[Timetable], schedules: Iterable[ScheduleRow], velero_namespace: str, now: datetime
) -> list[Timetable]:
    """Return the timetables of the schedules whose runs start when they are due, as coverage judges them."""
    stopped = {schedule.title for schedule in schedules if blocked(schedule, now)}
    return [run for run in runs if _title(run, velero_namespace) not in stopped]


def _title(run: Timetable, velero_namespace: str) -> str:
    return run.key.name if run.key.namespace == velero_namespace else str(run.key)


def _figures(
    wanted: Wanted,
    now: datetime,
    coverages: Sequence[NamespaceCoverage],
    runs: Sequence[Timetable],
    backups: Iterable[BackupRow],
    schedules: Iterable[ScheduleRow],
) -> Figures:
    first = now.astimezone(load_zoneinfo(validate_zone_name(wanted.zone))).date()
    starting = starting_runs(runs, schedules, wanted.velero_namespace, now)
    return Figures(
        namespace=wanted.namespace,
        velero_namespace=wanted.velero_namespace,
        instant=now,
        namespaces=tuple(coverages),
        load=calendar_load(runs, first, wanted.zone, now),
        upcoming=upcoming_runs(starting, now),
        failed=failed_runs(backups, now),
        objective=wanted.objective,
    )
