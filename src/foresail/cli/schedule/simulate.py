"""`foresail schedule simulate`: which slots would run, and what becomes of the others."""

import argparse
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from foresail.api.instants import stamp
from foresail.cli.cron.load import week_lines
from foresail.cli.cron.words import instant_of, wall_time
from foresail.cli.errors import CommandError
from foresail.cli.options.values import documents, read_length
from foresail.cli.output.messages import hint
from foresail.cli.output.objects import document
from foresail.cli.output.table import table
from foresail.cli.output.words import compact
from foresail.cli.schedule.hints import hint_who_fires
from foresail.cli.schedule.simulation import (
    Fate,
    Outcome,
    Span,
    broken_promises,
    load_in,
    policies_of,
    simulated_together,
    under,
)
from foresail.cli.schedule.snapshot import EvaluatedSchedule, read_selected
from foresail.kube.clock import now

_WEEK = timedelta(days=7)
_MONTH = timedelta(days=30)
_SUMMARY = ("SCHEDULE", "SLOTS", "ON TIME", "LATE", "NOT RUN", "FIRST EXCEPTION")


def simulate(args: argparse.Namespace) -> int:
    """Print what becomes of each slot of the selected Schedules between two instants."""
    span, takes = _span(args, now())
    given = policies_of(args.policy, documents(args.policy)) if args.policy else None
    evaluated, instant = read_selected(args)
    if given is not None:
        return _compare(
            args, (span, takes), evaluated, [under(schedule, given, instant) for schedule in evaluated], instant
        )
    fates = fates_of(evaluated, instant, span, takes)
    if args.output == "table":
        print(table(_SUMMARY, summary_rows(fates, args.zone)))
    elif args.output == "wide":
        print(_every_slot(fates, args))
    else:
        print(document([_as_data(*pair) for pair in fates], args.output))
    for promise in broken_promises(fates, args.zone):
        hint(promise)
    _print_assumptions(evaluated, takes)
    return 0


def fates_of(
    evaluated: Sequence[EvaluatedSchedule], instant: datetime, span: Span, takes: timedelta
) -> list[tuple[Fate, EvaluatedSchedule]]:
    """Return what becomes of every slot of some Schedules, in order."""
    played = simulated_together([schedule.view for schedule in evaluated], instant, span, takes)
    return sorted(
        ((fate, schedule) for schedule, fates in zip(evaluated, played, strict=True) for fate in fates),
        key=lambda pair: (pair[0].slot, pair[1].schedule.key),
    )


def _compare(
    args: argparse.Namespace,
    simulates: tuple[Span, timedelta],
    before: Sequence[EvaluatedSchedule],
    after: Sequence[EvaluatedSchedule],
    instant: datetime,
) -> int:
    """Print what becomes of each slot without the policies of a file and with them, and draw both calendars."""
    span, takes = simulates
    both = {"without": fates_of(before, instant, span, takes), "with": fates_of(after, instant, span, takes)}
    if args.output in ("json", "yaml"):
        print(document([{name: [_as_data(*pair) for pair in fates] for name, fates in both.items()}], args.output))
    else:
        for name, fates in both.items():
            shown = (
                _every_slot(fates, args) if args.output == "wide" else table(_SUMMARY, summary_rows(fates, args.zone))
            )
            calendar = "\n".join(week_lines(load_in(fates, span, args.zone, instant)))
            print(f"{name} {args.policy}:\n{shown}\n\n{calendar}\n")
    for promise in broken_promises(both["with"], args.zone):
        hint(promise)
    _print_assumptions(after, takes)
    return 0


def _span(args: argparse.Namespace, instant: datetime) -> tuple[Span, timedelta]:
    start = instant_of(args.start, args.zone)
    end = instant_of(args.end, args.zone) if args.end else start + (_MONTH if args.policy else _WEEK)
    if end <= start:
        raise CommandError(f"--until {stamp(end)} is not after --from {stamp(start)}", "specify the earlier time first")
    if end <= instant:
        raise CommandError(f"--until {stamp(end)} is in the past, which is not simulated", "see velero backup get")
    length = read_length(args.backups_take, "--backups-take")
    return Span(start, end), timedelta(microseconds=length // 1000)


def summary_rows(fates: Sequence[tuple[Fate, EvaluatedSchedule]], zone: str) -> list[tuple[str, ...]]:
    """Return a row for each Schedule: how many slots run, and the first that does not run on time."""
    backups_by_schedule: dict[str, list[Fate]] = {}
    for fate, schedule in fates:
        backups_by_schedule.setdefault(str(schedule.schedule.key), []).append(fate)
    rows = []
    for name, of_schedule in sorted(backups_by_schedule.items()):
        on_time, late = (sum(fate.outcome is which for fate in of_schedule) for which in (Outcome.RUNS, Outcome.LATE))
        first = next((fate for fate in of_schedule if fate.outcome is not Outcome.RUNS), None)
        exception = f"{wall_time(first.slot, zone)} {outcome(first, zone)}" if first else ""
        counts = (len(of_schedule), on_time, late, len(of_schedule) - on_time - late)
        rows.append((name, *map(str, counts), exception))
    return rows


def _every_slot(fates: Sequence[tuple[Fate, EvaluatedSchedule]], args: argparse.Namespace) -> str:
    rows = [
        (wall_time(fate.slot, args.zone), stamp(fate.slot), str(schedule.schedule.key), outcome(fate, args.zone))
        for fate, schedule in fates
    ]
    return table((f"SLOT ({args.zone})", "UTC", "SCHEDULE", "OUTCOME"), rows)


def outcome(fate: Fate, zone: str) -> str:
    """Return what becomes of a slot, in words."""
    if fate.at is not None and fate.at > fate.slot and fate.outcome.value != "runs":
        return f"runs {compact(fate.at - fate.slot)} late, at {wall_time(fate.at.replace(microsecond=0), zone)}"
    return f"{fate.outcome}: {fate.because}" if fate.because else fate.outcome.value


def _as_data(fate: Fate, schedule: EvaluatedSchedule) -> dict[str, Any]:
    return {
        "slot": stamp(fate.slot),
        "namespace": schedule.schedule.key.namespace,
        "name": schedule.schedule.key.name,
        "outcome": fate.outcome.value,
        "at": stamp(fate.at) if fate.at else None,
        "because": fate.because or None,
    }


def _print_assumptions(evaluated: Sequence[EvaluatedSchedule], takes: timedelta) -> None:
    for schedule in evaluated:
        because = schedule.verdict.refused
        if because is not None:
            hint(f"Schedule {schedule.schedule.key} has no slots: {because.message}")
    length = "no time" if not takes else compact(takes)
    print(f"assumed: the cluster stays as it is, the operator runs, and each Backup takes {length}", file=sys.stderr)
    hint_who_fires(evaluated)
