"""`foresail backup schedule get`: the last run, the next run, and why none starts."""

import argparse
import sys
from collections.abc import Sequence
from datetime import datetime

from foresail.cli.options.output import is_table
from foresail.cli.output.objects import as_text
from foresail.cli.output.table import fitted, table, terminal_width
from foresail.cli.output.times import ago, moment, short
from foresail.cli.tenant.schedule.snapshot import TenantSchedule, read_selected
from foresail.kube.clock import now

_SHORT = ("NAME", "SCHEDULE", "LAST RUN", "NEXT RUN", "WAITING")
_WIDE = ("NAME", "STATUS", "SCHEDULE", "LAST RUN", "NEXT RUN", "PAUSED", "AGE", "WAITING")
_SHRINKS = ("NAME", "SCHEDULE", "NAMESPACE", "LAST RUN")


def get(args: argparse.Namespace) -> int:
    """Print the selected schedules."""
    schedules = read_selected(args)
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
    following = f"in {short(schedule.next_run - at)}" if schedule.next_run else "n/a"
    return schedule.key.name, schedule.row.text, last_run(schedule, at), following, why(schedule, in_full=False)


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
        why(schedule, in_full=True),
    )


def last_run(schedule: TenantSchedule, at: datetime) -> str:
    """Return how the last run went, and how long ago it was due."""
    recent = schedule.row.status.recent
    phase = recent[0].phase if recent else ""
    age = ago(schedule.row.last_backup, at) if schedule.row.last_backup else ""
    return " ".join(filter(None, (phase, age))) or "n/a"


def why(schedule: TenantSchedule, *, in_full: bool) -> str:
    """Return why it does not run: a word, or that and a sentence."""
    because = schedule.blocking
    if because is None:
        return ""
    return f"{because.reason}: {because.message}" if in_full else because.reason
