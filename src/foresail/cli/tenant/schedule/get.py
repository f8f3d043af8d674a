"""`foresail backup schedule get`: the last run, the next run, and why none starts."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime

from foresail.cli.access.cluster import on_namespace
from foresail.cli.options.shared import is_table
from foresail.cli.output.messages import BOLD, painted
from foresail.cli.output.objects import as_text, document
from foresail.cli.output.table import aligned, fitted, table, terminal_width
from foresail.cli.output.words import ago, moment, short
from foresail.cli.tenant.schedule.explain import advised
from foresail.cli.tenant.schedule.snapshot import TenantSchedule, stopped_by, with_stalled
from foresail.kube.clock import now

_SHORT = ("NAME", "SCHEDULE", "LAST RUN", "NEXT RUN", "WAITING")
_WIDE = ("NAME", "STATUS", "SCHEDULE", "LAST RUN", "NEXT RUN", "PAUSED", "AGE", "WAITING")
_SHRINKS = ("NAME", "SCHEDULE", "NAMESPACE", "LAST RUN")


def get(args: argparse.Namespace) -> int:
    """Print the selected schedules."""
    schedules = on_namespace(args, lambda cluster: with_stalled(cluster, args))
    if not is_table(args.output):
        print(as_text([schedule.content for schedule in schedules], args.output))
    elif schedules:
        width = terminal_width(sys.stdout)
        print(schedule_table(schedules, now(), width, wide=args.output == "wide", with_namespace=args.all_namespaces))
    return 0


def schedule_table(
    schedules: Sequence[TenantSchedule],
    at: datetime,
    width: int | None,
    *,
    wide: bool,
    with_namespace: bool,
) -> str:
    """Return the table; the short one fits the width."""
    header = [*(("NAMESPACE",) if with_namespace else ()), *(_WIDE if wide else _SHORT)]
    cells = wide_cells if wide else short_cells
    rows = [[*((schedule.key.namespace,) if with_namespace else ()), *cells(schedule, at)] for schedule in schedules]
    return table(header, rows) if wide else fitted(header, rows, width, _SHRINKS)


def short_cells(schedule: TenantSchedule, at: datetime) -> tuple[str, ...]:
    """Return the cells of the short table."""
    is_run = schedule.next_run is not None and stopped_by(schedule, at) is None
    following = f"in {short(schedule.next_run - at)}" if schedule.next_run and is_run else "n/a"
    return schedule.key.name, schedule.row.text, last_run(schedule, at), following, why(schedule, at, in_full=False)


def wide_cells(schedule: TenantSchedule, at: datetime) -> tuple[str, ...]:
    """Return the cells of the wide table."""
    return (
        schedule.key.name,
        schedule.row.phase or "New",
        schedule.row.text,
        last_run(schedule, at),
        moment(schedule.next_run, at) if schedule.next_run else "n/a",
        "true" if schedule.row.paused else "false",
        short(at - schedule.row.created),
        why(schedule, at, in_full=True),
    )


def last_run(schedule: TenantSchedule, at: datetime) -> str:
    """Return how the last run went, and how long ago it was due."""
    recent = schedule.row.status.recent
    phase = recent[0].phase if recent else ""
    age = ago(schedule.row.last_backup, at) if schedule.row.last_backup else ""
    return " ".join(filter(None, (phase, age))) or "n/a"


def why(schedule: TenantSchedule, at: datetime, *, in_full: bool) -> str:
    """Return why it does not run: a word, or that and a sentence."""
    blocking = schedule.blocking
    because = (blocking.reason, blocking.message) if blocking is not None else stopped_by(schedule, at)
    if because is None:
        return ""
    return ": ".join(because) if in_full else str(because[0])


_NONE = "<none>"


def describe(args: argparse.Namespace) -> int:
    """Print everything about the selected schedules."""
    schedules = on_namespace(args, lambda cluster: with_stalled(cluster, args))
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
    return "\n\n".join([text, *parts, f"Next: {advised(schedule, at)}"])


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
    yield f"Waiting:\t{why(schedule, at, in_full=True) or '<no>'}"


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
