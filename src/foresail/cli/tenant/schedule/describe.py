"""`foresail backup schedule describe`: everything about a schedule, its last runs, and what to do next."""

import argparse
import sys
from collections.abc import Iterator
from datetime import datetime

from foresail.cli.output.objects import document
from foresail.cli.output.table import aligned, table
from foresail.cli.output.terminal import BOLD, painted
from foresail.cli.output.times import moment
from foresail.cli.tenant.schedule.explain import advised
from foresail.cli.tenant.schedule.get import last_run, why
from foresail.cli.tenant.schedule.snapshot import TenantSchedule, read_selected
from foresail.kube.clock import now

_NONE = "<none>"


def describe(args: argparse.Namespace) -> int:
    """Print everything about the selected schedules."""
    schedules = read_selected(args)
    if schedules:
        print("\n\n\n".join(described(schedule, now()) for schedule in schedules))
    return 0


def described(schedule: TenantSchedule, at: datetime) -> str:
    """Return the text about a schedule: times, template, last runs, conditions and the next step."""
    text = aligned(list(_lines(schedule, at)))
    name = schedule.key.name
    text = text.replace(name, painted(name, BOLD, sys.stdout), 1)
    template = (schedule.content.get("spec") or {}).get("template") or {}
    spec = document(template, "yaml") if template else "{}"
    parts = [
        "\n".join(["Template:", *(f"  {line}" for line in spec.splitlines())]),
        _runs(schedule),
        _conditions(schedule),
    ]
    return "\n\n".join([text, *parts, f"Next: {advised(schedule)}"])


def _lines(schedule: TenantSchedule, at: datetime) -> Iterator[str]:
    row = schedule.row
    yield f"Name:\t{schedule.key.name}"
    yield f"Namespace:\t{schedule.key.namespace}"
    yield f"Phase:\t{row.phase or 'New'}"
    yield f"Schedule:\t{row.text}"
    yield f"Paused:\t{'true' if row.paused else 'false'}"
    yield f"Requester:\t{row.requester or _NONE}"
    yield f"Last Run:\t{last_run(schedule, at)}"
    yield f"Next Run:\t{moment(schedule.next_run, at) if schedule.next_run else 'n/a'}"
    yield f"Skip Immediately:\t{'<unset>' if row.skip is None else str(row.skip).lower()}"
    yield f"Last Skipped:\t{row.status.last_skipped or '<never>'}"
    yield f"Waiting:\t{why(schedule, in_full=True) or '<no>'}"


def _runs(schedule: TenantSchedule) -> str:
    rows = [
        (f"  {run.name}", run.phase, run.start_timestamp, run.completion_timestamp, run.expiration)
        for run in schedule.row.status.recent
    ]
    header = ("  NAME", "PHASE", "STARTED", "ENDED", "EXPIRES")
    return "Last Backups:\n" + table(header, rows) if rows else f"Last Backups:  {_NONE}"


def _conditions(schedule: TenantSchedule) -> str:
    conditions = schedule.row.status.conditions
    rows = [(f"  {one.type}", one.status, one.reason, one.last_transition_time, one.message) for one in conditions]
    header = ("  TYPE", "STATUS", "REASON", "SINCE", "MESSAGE")
    return "Conditions:\n" + table(header, rows) if rows else f"Conditions:  {_NONE}"
