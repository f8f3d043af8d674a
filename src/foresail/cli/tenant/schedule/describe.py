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
    found = read_selected(args)
    if found:
        print("\n\n\n".join(described(each, now()) for each in found))
    return 0


def described(each: TenantSchedule, at: datetime) -> str:
    """Return the text about a schedule: times, template, last runs, conditions and the next step."""
    text = aligned(list(_lines(each, at)))
    name = each.key.name
    text = text.replace(name, painted(name, BOLD, sys.stdout), 1)
    template = (each.content.get("spec") or {}).get("template") or {}
    spec = document(template, "yaml") if template else "{}"
    parts = ["\n".join(["Template:", *(f"  {line}" for line in spec.splitlines())]), _runs(each), _conditions(each)]
    return "\n\n".join([text, *parts, f"Next: {advised(each)}"])


def _lines(each: TenantSchedule, at: datetime) -> Iterator[str]:
    row = each.row
    yield f"Name:\t{each.key.name}"
    yield f"Namespace:\t{each.key.namespace}"
    yield f"Phase:\t{row.phase or 'New'}"
    yield f"Schedule:\t{row.text}"
    yield f"Paused:\t{'true' if row.paused else 'false'}"
    yield f"Requester:\t{row.requester or _NONE}"
    yield f"Last Run:\t{last_run(each, at)}"
    yield f"Next Run:\t{moment(each.next_run, at) if each.next_run else 'n/a'}"
    yield f"Skip Immediately:\t{'<unset>' if row.skip is None else str(row.skip).lower()}"
    yield f"Last Skipped:\t{row.status.last_skipped or '<never>'}"
    yield f"Waiting:\t{why(each, in_full=True) or '<no>'}"


def _runs(each: TenantSchedule) -> str:
    rows = [
        (f"  {run.name}", run.phase, run.start_timestamp, run.completion_timestamp, run.expiration)
        for run in each.row.status.recent
    ]
    header = ("  NAME", "PHASE", "STARTED", "ENDED", "EXPIRES")
    return "Last Backups:\n" + table(header, rows) if rows else f"Last Backups:  {_NONE}"


def _conditions(each: TenantSchedule) -> str:
    found = each.row.status.conditions
    rows = [(f"  {one.type}", one.status, one.reason, one.last_transition_time, one.message) for one in found]
    header = ("  TYPE", "STATUS", "REASON", "SINCE", "MESSAGE")
    return "Conditions:\n" + table(header, rows) if rows else f"Conditions:  {_NONE}"
