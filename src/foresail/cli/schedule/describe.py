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
        print("\n\n\n".join(described(schedule, instant) for schedule in evaluated))
        hint_who_fires(evaluated)
    return 0


def described(schedule: EvaluatedSchedule, instant: datetime) -> str:
    """Return a Schedule in Velero's layout, with our part below it."""
    text = aligned([*veleros_lines(schedule), "", *_our_lines(schedule, instant)])
    name = schedule.schedule.key.name
    phase = schedule.schedule.phase
    text = text.replace(name, painted(name, BOLD, sys.stdout), 1)
    if phase in _COLOURS:
        text = text.replace(phase, painted(phase, _COLOURS[phase], sys.stdout), 1)
    return f"{text}\n\n{_last_backups(schedule)}"


def _our_lines(evaluated: EvaluatedSchedule, instant: datetime) -> Iterator[str]:
    schedule = evaluated.schedule
    because = evaluated.blocked_by
    yield f"Next Run:\t{next_run(evaluated, instant)}"
    yield f"Last Result:\t{last_result(evaluated)}"
    ignored = f" ({skip_not_applied().message})" if evaluated.verdict.changes.observed.ignored else ""
    yield f"Skip Immediately:\t{'<unset>' if schedule.skip is None else str(schedule.skip).lower()}{ignored}"
    yield f"Last Skipped:\t{go_time(schedule.last_skipped) if schedule.last_skipped else '<never>'}"
    yield f"Waiting:\t{f'{because.reason}: {because.message}' if because else _would_wait(evaluated)}"
    if evaluated.verdict.missed:
        since = go_time(evaluated.verdict.base)
        yield f"Missed:\t{runs(evaluated.verdict.missed)} since {since}; one late run at most follows"
    yield f"Dialect:\t{dialect_of(evaluated)}"
    yield f"Policy:\t{evaluated.view.policy.name if evaluated.view.policy else '<none>'}"
    if evaluated.view.policy is not None and evaluated.verdict.not_run is not None:
        yield f"Not Run:\t{not_run(evaluated.verdict.not_run, evaluated.verdict.base).message}"
    retained = evaluated.verdict.retained
    if retained is not None:
        deletes = f"{len(retained.goes)} of {len(retained.kept)} Backups are deleted"
        problem = retained.blocked_by or retained.failed
        why = f"; {problem.reason}: {problem.message}" if problem else ""
        yield f"Retention:\t{deletes}{why}"
    manager = manager_of(schedule)
    if manager:
        yield f"Managed By:\t{manager}"


def _would_wait(schedule: EvaluatedSchedule) -> str:
    because = schedule.blocks_next_run
    if because is None:
        return "<no>"
    return f"not yet; the next run would be blocked by {because.reason}: {because.message}"


def dialect_of(schedule: EvaluatedSchedule) -> str:
    """Return by whose rules the expression is read."""
    server = schedule.view.server
    if server.dialect is None:
        return "<unknown>: the version of Velero is unknown"
    if server.version == NOTED:
        return f"{server.dialect.value} ({NOTED})"
    return f"{server.dialect.value} ({f'Velero {server.version}' if server.version else 'by --velero-dialect'})"


def _last_backups(schedule: EvaluatedSchedule) -> str:
    ours = [row for row in schedule.view.backups if row.is_of(schedule.schedule)]
    if not ours:
        return "Last Backups:  <none>"
    newest = sorted(ours, key=lambda row: (row.created, row.key), reverse=True)[:_SHOWN]
    rows = [(f"  {row.key.name}", row.phase or "New", _slot(row), go_time(row.created), _end(row)) for row in newest]
    return "Last Backups:\n" + table(("  NAME", "PHASE", "SLOT", "CREATED", "ENDED"), rows)


def _slot(row: BackupRow) -> str:
    return go_time(row.slot) if row.slot else "<by hand>"


def _end(row: BackupRow) -> str:
    return go_time(row.completed) if row.completed else "<not yet>" if not row.is_terminal else "<n/a>"
