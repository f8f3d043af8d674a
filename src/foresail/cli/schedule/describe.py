"""`foresail schedule describe`: Velero's own description of a Schedule, then the rest."""

import argparse
import sys
from collections.abc import Iterator
from datetime import datetime

from foresail.cli.output.table import aligned, table
from foresail.cli.output.terminal import BOLD, GREEN, RED, painted
from foresail.cli.output.times import go_time, runs
from foresail.cli.schedule.get import last_result, next_run
from foresail.cli.schedule.hints import hint_who_fires, manager_of
from foresail.cli.schedule.snapshot import NOTED, EvaluatedSchedule, read_selected
from foresail.cli.schedule.velero_layout import veleros_lines
from foresail.schedules.decide import not_run
from foresail.schedules.observe import BackupRow
from foresail.schedules.rules import skip_not_applied

_SHOWN = 5
_COLOURS = {"Enabled": GREEN, "FailedValidation": RED}


def describe(args: argparse.Namespace) -> int:
    """Print everything about the selected Schedules."""
    evaluated, instant = read_selected(args)
    if evaluated:
        print("\n\n\n".join(described(each, instant) for each in evaluated))
        hint_who_fires(evaluated)
    return 0


def described(each: EvaluatedSchedule, instant: datetime) -> str:
    """Return a Schedule in Velero's layout, with our part below it."""
    text = aligned([*veleros_lines(each), "", *_our_lines(each, instant)])
    name, phase = each.schedule.key.name, each.schedule.phase
    text = text.replace(name, painted(name, BOLD, sys.stdout), 1)
    if phase in _COLOURS:
        text = text.replace(phase, painted(phase, _COLOURS[phase], sys.stdout), 1)
    return f"{text}\n\n{_last_backups(each)}"


def _our_lines(each: EvaluatedSchedule, instant: datetime) -> Iterator[str]:
    schedule, because = each.schedule, each.blocked_by
    yield f"Next Run:\t{next_run(each, instant)}"
    yield f"Last Result:\t{last_result(each)}"
    ignored = f" ({skip_not_applied().message})" if each.verdict.changes.observed.ignored else ""
    yield f"Skip Immediately:\t{'<unset>' if schedule.skip is None else str(schedule.skip).lower()}{ignored}"
    yield f"Last Skipped:\t{go_time(schedule.last_skipped) if schedule.last_skipped else '<never>'}"
    yield f"Waiting:\t{f'{because.reason}: {because.message}' if because else _would_wait(each)}"
    if each.verdict.missed:
        yield f"Missed:\t{runs(each.verdict.missed)} since {go_time(each.verdict.base)}; one late run at most follows"
    yield f"Dialect:\t{dialect_of(each)}"
    yield f"Policy:\t{each.view.policy.name if each.view.policy else '<none>'}"
    if each.view.policy is not None and each.verdict.not_run is not None:
        yield f"Not Run:\t{not_run(each.verdict.not_run, each.verdict.base).message}"
    retained = each.verdict.retained
    if retained is not None:
        deletes = f"{len(retained.goes)} of {len(retained.kept)} Backups are deleted"
        problem = retained.blocked_by or retained.failed
        why = f"; {problem.reason}: {problem.message}" if problem else ""
        yield f"Retention:\t{deletes}{why}"
    manager = manager_of(schedule)
    if manager:
        yield f"Managed By:\t{manager}"


def _would_wait(each: EvaluatedSchedule) -> str:
    because = each.blocks_next_run
    if because is None:
        return "<no>"
    return f"not yet; the next run would be blocked by {because.reason}: {because.message}"


def dialect_of(each: EvaluatedSchedule) -> str:
    """Return by whose rules the expression is read."""
    server = each.view.server
    if server.dialect is None:
        return "<unknown>: the version of Velero is unknown"
    if server.version == NOTED:
        return f"{server.dialect.value} ({NOTED})"
    return f"{server.dialect.value} ({f'Velero {server.version}' if server.version else 'by --velero-dialect'})"


def _last_backups(each: EvaluatedSchedule) -> str:
    ours = [row for row in each.view.backups if row.is_of(each.schedule)]
    if not ours:
        return "Last Backups:  <none>"
    newest = sorted(ours, key=lambda row: (row.created, row.key), reverse=True)[:_SHOWN]
    rows = [(f"  {row.key.name}", row.phase or "New", _slot(row), go_time(row.created), _end(row)) for row in newest]
    return "Last Backups:\n" + table(("  NAME", "PHASE", "SLOT", "CREATED", "ENDED"), rows)


def _slot(row: BackupRow) -> str:
    return go_time(row.slot) if row.slot else "<by hand>"


def _end(row: BackupRow) -> str:
    return go_time(row.completed) if row.completed else "<not yet>" if not row.is_terminal else "<n/a>"
