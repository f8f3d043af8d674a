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
    found = read_selected(args)
    if not is_table(args.output):
        print(as_text([each.content for each in found], args.output))
    elif found:
        width = terminal_width(sys.stdout)
        print(schedule_table(found, now(), width, wide=args.output == "wide", with_namespace=args.all_namespaces))
    return 0


def schedule_table(
    found: Sequence[TenantSchedule],
    at: datetime,
    width: int | None,
    *,
    wide: bool,
    with_namespace: bool,
) -> str:
    """Return the table; the short one fits the width."""
    header = [*(("NAMESPACE",) if with_namespace else ()), *(_WIDE if wide else _SHORT)]
    cells = wide_cells if wide else short_cells
    rows = [[*((each.key.namespace,) if with_namespace else ()), *cells(each, at)] for each in found]
    return table(header, rows) if wide else fitted(header, rows, width, _SHRINKS)


def short_cells(each: TenantSchedule, at: datetime) -> tuple[str, ...]:
    """Return the cells of the short table."""
    following = f"in {short(each.next_run - at)}" if each.next_run else "n/a"
    return each.key.name, each.row.text, last_run(each, at), following, why(each, in_full=False)


def wide_cells(each: TenantSchedule, at: datetime) -> tuple[str, ...]:
    """Return the cells of the wide table."""
    return (
        each.key.name,
        each.row.phase or "New",
        each.row.text,
        last_run(each, at),
        moment(each.next_run, at) if each.next_run else "n/a",
        "true" if each.row.paused else "false",
        short(at - each.row.created),
        why(each, in_full=True),
    )


def last_run(each: TenantSchedule, at: datetime) -> str:
    """Return how the last run went, and how long ago it was due."""
    recent = each.row.status.recent
    phase = recent[0].phase if recent else ""
    age = ago(each.row.last_backup, at) if each.row.last_backup else ""
    return " ".join(filter(None, (phase, age))) or "n/a"


def why(each: TenantSchedule, *, in_full: bool) -> str:
    """Return why it does not run: a word, or that and a sentence."""
    because = each.blocking
    if because is None:
        return ""
    return f"{because.reason}: {because.message}" if in_full else because.reason
