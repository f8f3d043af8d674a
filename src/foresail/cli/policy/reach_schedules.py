"""`foresail policy test` on SchedulePolicies: which Schedules they would reach, and how the next week changes."""

import argparse
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from foresail.api.instants import stamp
from foresail.cli.output.objects import document
from foresail.cli.output.table import table
from foresail.cli.schedule.simulation import Fate, Span, simulated
from foresail.cli.schedule.snapshot import EvaluatedSchedule, read_selected
from foresail.cli.schedule.under_policy import policies_of, under

_HEADER = ("SCHEDULE", "NOW", "THEN", "NEXT START NOW", "NEXT START THEN", "RUNS IN A WEEK", "MOVED")
_WEEK = timedelta(days=7)


def preview_schedules(args: argparse.Namespace, read: list[Any]) -> int:
    """Print which Schedules the policies of a file would reach, and what becomes of their next week."""
    given = policies_of(args.file, read)
    selection = {"names": [], "selector": None, "all_namespaces": False, "namespace": args.velero_namespace}
    evaluated, instant = read_selected(argparse.Namespace(**{**vars(args), **selection}))
    pairs = [(each, under(each, given, instant)) for each in evaluated]
    names = {each.name for each in given}
    shown = [(now, then) for now, then in pairs if {_policy(now), _policy(then)} & names]
    found = [week_changes(now, then, instant) for now, then in shown]
    if args.output != "table":
        print(document(found, args.output))
    elif found:
        print(table(_HEADER, [_row(each) for each in found]))
    reached = sum(_policy(then) in names for _, then in pairs)
    print(f"the file's policies would apply to {reached} of {len(pairs)} Schedules", file=sys.stderr)
    return 0


def week_changes(now: EvaluatedSchedule, then: EvaluatedSchedule, instant: datetime) -> dict[str, Any]:
    """Return what a policy would change for one Schedule in the next week."""
    span = Span(instant, instant + _WEEK)
    before, after = (_starts(simulated(each.view, instant, span, timedelta())) for each in (now, then))
    refused = then.verdict.refused
    return {
        "schedule": str(now.schedule.key),
        "now": _policy(now),
        "then": _policy(then),
        "nextStartNow": _stamp(now.verdict.next_run),
        "nextStartThen": _stamp(then.verdict.next_run),
        "runsNow": len(before),
        "runsThen": len(after),
        "moved": _moved(before, after),
        "problem": refused.message if refused else None,
    }


def _moved(before: dict[datetime, datetime], after: dict[datetime, datetime]) -> int:
    """Count the runs that start at another time; another zone gives the slots themselves other times."""
    delayed = sum(after[slot] != at for slot, at in before.items() if slot in after)
    return delayed + min(len(before.keys() - after.keys()), len(after.keys() - before.keys()))


def _starts(fates: Sequence[Fate]) -> dict[datetime, datetime]:
    return {each.slot: each.at for each in fates if each.at is not None}


def _policy(each: EvaluatedSchedule) -> str | None:
    return each.view.policy.name if each.view.policy else None


def _stamp(at: datetime | None) -> str | None:
    return stamp(at) if at else None


def _row(found: dict[str, Any]) -> tuple[str, ...]:
    runs = f"{found['runsNow']} -> {found['runsThen']}"
    moved = found["problem"] or str(found["moved"])
    words = (found["now"], found["then"], found["nextStartNow"], found["nextStartThen"])
    return found["schedule"], *(each or "-" for each in words), runs, moved
