"""What SchedulePolicies that are written into a form would change: the next days without them and with them."""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from time import monotonic
from typing import Any

from foresail.api.instants import stamp
from foresail.api.schedule_policy import SCHEDULE_POLICY
from foresail.cli.cron.load import Load
from foresail.cli.errors import CommandError
from foresail.cli.options.values import decoded, objects
from foresail.cli.output.messages import hint
from foresail.cli.output.objects import document
from foresail.cli.output.table import table
from foresail.cli.output.words import short
from foresail.cli.schedule.simulation import (
    Fate,
    Span,
    broken_promises,
    cron_of,
    load_in,
    policies_of,
    simulated,
    under,
)
from foresail.cli.schedule.snapshot import EvaluatedSchedule, read_selected
from foresail.slots.policy_timing import PolicyRow

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

    reach = reach_of(pairs, given, simulate)
    if args.output != "table":
        print(document(reach.changes, args.output))
    elif reach.changes:
        print(table(HEADER, [change_cells(change) for change in reach.changes]))
    print(f"the file's policies {reach.summary}", file=sys.stderr)
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


MOST_SCHEDULES = 1000
"""Schedules that are simulated for a form."""

MOST_SLOTS = 20_000
"""Slots that are simulated for a form, without and with the policies together."""

_DAYS = 7
_LONGEST = timedelta(seconds=20)
_TOO_MANY = f"more would be over {MOST_SLOTS} slots, without and with the policies together"
_INSTEAD = "run foresail schedule simulate --policy FILE"


@dataclass(frozen=True, slots=True)
class Preview:
    """The calendars without and with the policies, and what changes for each Schedule."""

    reach: Reach
    without: Load
    with_them: Load
    days: int

    @property
    def columns(self) -> list[str]:
        """The header of what changes for each Schedule."""
        shown = {1: "a day", _DAYS: "a week"}.get(self.days, f"{self.days} days")
        return [title.lower().replace("a week", shown) for title in HEADER]

    @property
    def assumptions(self) -> str:
        """What the reader must know about the simulation."""
        text = "Each Backup is taken to need no time, so waiting for concurrency is not shown."
        if self.days == _DAYS:
            return text
        return f"{text} Only {self.days} of {_DAYS} days are simulated: {_TOO_MANY}. For all, {_INSTEAD}."


def preview(
    text: str, evaluated: Sequence[EvaluatedSchedule], zone: str, instant: datetime, longest: timedelta = _LONGEST
) -> Preview:
    """Return what the policies of a text would change in the next days."""
    _refuse_aliases(text)
    if len(evaluated) > MOST_SCHEDULES:
        problem = f"{len(evaluated)} Schedules are more than {MOST_SCHEDULES}, and are not simulated here"
        raise CommandError(problem, _INSTEAD)
    given = policies_of("the form", decoded("the form", text))
    deadline = _Deadline(longest)
    pairs = list[Pair]()
    for schedule in evaluated:
        deadline.check()
        pairs.append((schedule, under(schedule, given, instant)))
    days = _simulated_days((evaluated_schedule for pair in pairs for evaluated_schedule in pair), instant)
    span = Span(instant, instant + timedelta(days=days))
    fates = [both_fates(pair, instant, span, deadline.check) for pair in pairs]
    sides = [
        [(fate, pair[side]) for pair, both in zip(pairs, fates, strict=True) for fate in both[side]] for side in (0, 1)
    ]
    without, with_them = (load_in(side, span, zone, instant) for side in sides)
    by_key = {now.schedule.key: both for (now, _), both in zip(pairs, fates, strict=True)}
    reach = reach_of(pairs, given, lambda pair: by_key[pair[0].schedule.key])
    return Preview(reach, without, with_them, days)


def _refuse_aliases(text: str) -> None:
    if "&" in text and "*" in text:  # few bytes of YAML aliases become a document of any size
        raise CommandError("the text has & and *, as YAML aliases do", "write the policy without aliases")


def policy_objects(text: str) -> list[dict[str, Any]]:
    """Return the SchedulePolicies of a text as they are written: name and spec, and nothing else."""
    _refuse_aliases(text)
    read = decoded("the form", text)
    policies_of("the form", read)
    kind = SCHEDULE_POLICY
    return [
        {
            "apiVersion": kind.api_version,
            "kind": kind.name,
            "metadata": {"name": item["metadata"]["name"]},
            "spec": item["spec"],
        }
        for item in objects(read, kind.name)
    ]


class _Deadline:
    """The end of the time for a simulation: the thread of a page cannot be cancelled."""

    def __init__(self, longest: timedelta) -> None:
        self._longest = longest
        self._until = monotonic() + longest.total_seconds()

    def check(self) -> None:
        """End the simulation if its time is over."""
        if monotonic() >= self._until:
            raise CommandError(f"the simulation takes longer than {short(self._longest)}", _INSTEAD)


def _simulated_days(evaluated: Iterable[EvaluatedSchedule], instant: datetime) -> int:
    """Return of how many days all slots can be simulated; the count ends at the first slot too many."""
    chains = [
        (cron, schedule.verdict.base) for schedule in evaluated if (cron := cron_of(schedule.view, instant)) is not None
    ]
    left = MOST_SLOTS
    for number in range(_DAYS):
        day = Span(instant + timedelta(days=number), instant + timedelta(days=number + 1))
        for cron, base in chains:
            left -= sum(1 for _ in islice(day.slots(cron, base), left + 1))
            if left < 0 and number == 0:
                raise CommandError(f"not even one day is simulated: {_TOO_MANY}", _INSTEAD)
            if left < 0:
                return number
    return _DAYS
