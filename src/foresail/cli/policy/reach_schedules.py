"""`foresail policy test` on SchedulePolicies: which Schedules they would reach, and how the next week changes."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from foresail.api.instants import stamp
from foresail.cli.output.messages import hint
from foresail.cli.output.objects import document
from foresail.cli.output.table import table
from foresail.cli.schedule.promises import broken_promises
from foresail.cli.schedule.simulation import Fate, Span, simulated
from foresail.cli.schedule.snapshot import EvaluatedSchedule, read_selected
from foresail.cli.schedule.under_policy import policies_of, under
from foresail.slots.policies import PolicyRow

HEADER = ("SCHEDULE", "NOW", "THEN", "NEXT START NOW", "NEXT START THEN", "RUNS IN A WEEK", "MOVED")
"""The columns of the table."""

Pair = tuple[EvaluatedSchedule, EvaluatedSchedule]
"""A Schedule without the policies, and with them."""

BothFates = tuple[list[Fate], list[Fate]]
"""What becomes of the slots of a Schedule without the policies, and with them."""

_WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Reach:
    """What SchedulePolicies would change in the next days, Schedule by Schedule, and to how many they would apply."""

    changes: list[dict[str, Any]]
    reached: int
    schedules: int

    @property
    def summary(self) -> str:
        """To how many Schedules they would apply, in words."""
        return f"would apply to {self.reached} of {self.schedules} Schedules"


def preview_schedules(args: argparse.Namespace, read: list[Any]) -> int:
    """Print which Schedules the policies of a file would reach, and what becomes of their next week."""
    given = policies_of(args.file, read)
    selection = {"names": [], "selector": None, "all_namespaces": False, "namespace": args.velero_namespace}
    evaluated, instant = read_selected(argparse.Namespace(**{**vars(args), **selection}))
    span = Span(instant, instant + _WEEK)
    pairs = [(schedule, under(schedule, given, instant)) for schedule in evaluated]
    fates: list[tuple[Fate, EvaluatedSchedule]] = []

    def simulate(pair: Pair) -> BothFates:
        both = both_fates(pair, instant, span)
        fates.extend((fate, pair[1]) for fate in both[1])
        return both

    found = reach_of(pairs, given, simulate)
    if args.output != "table":
        print(document(found.changes, args.output))
    elif found.changes:
        print(table(HEADER, [change_cells(change) for change in found.changes]))
    print(f"the file's policies {found.summary}", file=sys.stderr)
    for promise in broken_promises(fates, "UTC"):
        hint(promise)
    return 0


def reach_of(pairs: Sequence[Pair], given: Sequence[PolicyRow], simulate: Callable[[Pair], BothFates]) -> Reach:
    """Return what policies would change if they were applied over those of the cluster."""
    names = {policy.name for policy in given}
    shown = [pair for pair in pairs if {_policy(schedule) for schedule in pair} & names]
    changes = [_changes(pair, simulate(pair)) for pair in shown]
    return Reach(changes, sum(_policy(then) in names for _, then in pairs), len(pairs))


def both_fates(pair: Pair, instant: datetime, span: Span, on_step: Callable[[], None] = lambda: None) -> BothFates:
    """Simulate a Schedule without and with the policies; once if they change nothing for it."""
    now, then = (schedule.view for schedule in pair)
    without = simulated(now, instant, span, timedelta(), on_step)
    return without, without if now == then else simulated(then, instant, span, timedelta(), on_step)


def _changes(pair: Pair, fates: BothFates) -> dict[str, Any]:
    """Return what a policy would change for one Schedule."""
    now, then = pair
    before, after = map(_starts, fates)
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
    return {fate.slot: fate.at for fate in fates if fate.at is not None}


def _policy(schedule: EvaluatedSchedule) -> str | None:
    return schedule.view.policy.name if schedule.view.policy else None


def _stamp(at: datetime | None) -> str | None:
    return stamp(at) if at else None


def change_cells(item: dict[str, Any]) -> tuple[str, ...]:
    """Return a row of the table."""
    runs = f"{item['runsNow']} -> {item['runsThen']}"
    moved = item["problem"] or str(item["moved"])
    words = (item["now"], item["then"], item["nextStartNow"], item["nextStartThen"])
    return item["schedule"], *(word or "-" for word in words), runs, moved
