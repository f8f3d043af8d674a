"""A made-up cluster of many namespaces, judged by the rules of `foresail coverage`."""

from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256

import msgspec

from foresail.api.restore_check import CheckResult
from foresail.api.specs import BackupSpec
from foresail.cli.cron.load import Timetable, fires_between
from foresail.console.report.figures import Figures, LastCheck, calendar_load, failed_runs, upcoming_runs
from foresail.cron import parse
from foresail.plan import Key
from foresail.proof.coverage import judge
from foresail.proof.view import BackupRow, ClaimRow, CoverageView, NamespaceRow, ScheduleRow

NOW = datetime(2026, 11, 16, 9, 40, tzinfo=UTC)
_TEAMS = ("shop", "bank", "lab", "search", "billing", "mail", "maps", "photos", "travel", "games")
_FAILURES = ("2 errors", "1 error", "error getting volume snapshotter: timed out")


def fleet(size: int = 500) -> Figures:
    """Return the report of that many namespaces; some have gaps."""
    names = [f"{_TEAMS[number % len(_TEAMS)]}-{number // len(_TEAMS):03}" for number in range(size)]
    created = NOW - timedelta(days=90)
    claims = [_claim(name) for number, name in enumerate(names) if number % 3 == 0]
    schedules, backups, runs = [], [], []
    for number, team in enumerate(_TEAMS):
        own = tuple(each for each in names if each.startswith(team) and not each.endswith("07"))
        spec = BackupSpec(included_namespaces=own, snapshot_volumes=False if number == 6 else None)
        text = f"{number * 6} {number % 4} * * *" if number % 3 else "0 2 * * *"
        title = f"{team}-nightly"
        schedules.append(
            ScheduleRow("Schedule", "velero", title, spec, team == "games" and size > 100, parse(text).next(NOW))
        )
        backups += [_backup(title, spec, age, is_bad=team == "mail" and age < 3) for age in range(14)]
        if team != "games" or size <= 100:
            runs.append(Timetable(Key("velero", title), partial(fires_between, parse(text), NOW)))
    rows = tuple(NamespaceRow(each, created) for each in names)
    view = CoverageView(rows, tuple(claims), tuple(schedules), tuple(backups), timedelta(hours=26))
    return Figures(
        namespace="",
        velero_namespace="velero",
        instant=NOW,
        namespaces=tuple(judge(view, NOW)),
        load=calendar_load(runs, NOW.date(), "UTC", NOW),
        upcoming=upcoming_runs(runs, NOW),
        failed=failed_runs(backups, NOW),
        objective=view.objective,
        checks=(_check("mail-proof", is_bad=True), _check("shop-proof", is_bad=False), LastCheck("new")),
    )


def _check(name: str, *, is_bad: bool) -> LastCheck:
    start, end = NOW - timedelta(hours=6), NOW - timedelta(hours=6) + timedelta(seconds=48)
    reason, message = (
        ("ItemsRefused", "Service web: refused") if is_bad else ("Complete", "The sandbox took all objects")
    )
    last = CheckResult("1", "nightly", "u", start, end, "Fail" if is_bad else "Pass", reason, message, 1, 140, 140)
    return LastCheck(name, name, msgspec.structs.replace(last, restore_seconds=31))


def _claim(namespace: str) -> ClaimRow:
    body = {"metadata": {"name": "data", "namespace": namespace}, "spec": {"volumeName": "pv"}}
    return ClaimRow(namespace, "data", body, {"metadata": {"name": "pv"}, "spec": {}})


def _backup(title: str, spec: BackupSpec, age: int, *, is_bad: bool) -> BackupRow:
    started = NOW.replace(hour=2, minute=0) - timedelta(days=age)
    uid = sha256(title.encode()).hexdigest()[:8]  # of the Schedule, as schedules.build names Backups
    name, phase = f"{title}-{started:%Y%m%d%H%M%S}-{uid}", "PartiallyFailed" if is_bad else "Completed"
    return BackupRow(name, phase, spec, started, 400, title, _FAILURES[age % 3] if is_bad else "")
