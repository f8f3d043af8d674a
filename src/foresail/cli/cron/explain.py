"""`foresail cron explain` and `check`: what a schedule means, and what is odd about it."""

import argparse
import json
import sys
from collections.abc import Iterator
from datetime import datetime, time, timedelta
from itertools import islice

from foresail.cli.cron.fires import identity
from foresail.cli.cron.words import InvalidScheduleError, instant_of, schedule_of, utc_time, wall_time
from foresail.cli.errors import PROBLEM, CommandError
from foresail.cli.output.table import table
from foresail.cron import CalendarSchedule, CronError, Dialect, IntervalSchedule, Schedule, fires_after
from foresail.cron.clock_changes import ClockChangeEffect, clock_change_effects
from foresail.cron.dialect_diff import DialectChange, compare_dialects
from foresail.cron.fields import ALL_DAYS, ALL_WEEKDAYS, spans_of, values_of

_YEAR = timedelta(days=366)
_SHOWN = 3
_READERS = {
    Dialect.ROBFIG: "robfig/cron v3: CronJobs, and Velero up to 1.18.2",
    Dialect.GOCRON: "go-cron v0.15: Velero from 1.18.3 on",
}


def explain(args: argparse.Namespace) -> int:
    """Print what a schedule means: in words, by fields, its next fires, and what is odd about it."""
    schedule = schedule_of(args)
    at = instant_of(args.at, schedule.zone)
    fires = list(islice(fires_after(schedule, at), _SHOWN))
    oddities = list(notes(schedule, at))
    if args.output == "json":
        explanation = {
            **identity(schedule),
            "meaning": schedule.describe(),
            "fields": {name: values for name, _, values in _fields(schedule)},
            "next": [utc_time(fire) for fire in fires],
            "notes": oddities,
        }
        print(json.dumps(explanation, indent=2))
        return 0
    print(f"{schedule.describe()}\n\nread in {schedule.zone} by {_READERS[schedule.dialect]}\n")
    rows = [(name, text, _ranges(values)) for name, text, values in _fields(schedule)]
    if rows:
        print(table(("FIELD", "TEXT", "VALUES"), rows) + "\n")
    for fire in fires:
        print(f"next fire  {wall_time(fire, schedule.zone)}")
    for note in oddities:
        print(f"note: {note}")
    return 0


def check(args: argparse.Namespace) -> int:
    """Print whether a schedule is valid and fires; notes go to standard error."""
    try:
        schedule = schedule_of(args)
    except InvalidScheduleError as error:
        if args.output != "json":
            raise
        print(json.dumps(_invalid(args, error.cause), indent=2))
        return PROBLEM
    at = instant_of(args.at, schedule.zone)
    oddities = list(notes(schedule, at))
    if args.output == "json":
        answer = {**identity(schedule), "valid": True, "neverFires": schedule.never_fires, "notes": oddities}
        print(json.dumps(answer, indent=2))
        return PROBLEM if schedule.never_fires else 0
    if schedule.never_fires:
        raise CommandError(f"{schedule.text!r} never fires: {schedule.never_fires}")
    print(f"valid: {schedule.describe()}")
    for note in oddities:
        print(f"note: {note}", file=sys.stderr)
    return 0


def _invalid(args: argparse.Namespace, error: CronError) -> dict[str, object]:
    return {
        "schedule": args.expression,
        "dialect": args.dialect,
        "timeZone": args.zone,
        "valid": False,
        "problem": f"{error.field}: {error.problem}" if error.field else error.problem,
        "allowed": error.allowed,
        "column": error.column,
        "neverFires": None,
        "notes": [],
    }


def notes(schedule: Schedule, at: datetime) -> Iterator[str]:
    """Yield surprises of this schedule."""
    if schedule.never_fires:
        yield f"it never fires: {schedule.never_fires}"
        return
    if "TZ=" in schedule.text:
        yield "CronJobs refuse a time zone in the schedule: use spec.timeZone there"
    if isinstance(schedule, IntervalSchedule):
        yield "it counts from the creation of its object or from its last run, not from the clock"
    if isinstance(schedule, CalendarSchedule):
        yield from _calendar_notes(schedule, at)
    yield from _upgrade_notes(schedule, at)


def _calendar_notes(schedule: CalendarSchedule, at: datetime) -> Iterator[str]:
    if schedule.next(at) is None:
        yield f"it does not fire within five years of {utc_time(at)}, which controllers treat as never"
    yield from _day_notes(schedule)
    changed = clock_change_effects(schedule, at, at + _YEAR)
    for change in changed[:_SHOWN]:
        yield f"clocks change on {change.day:%a %Y-%m-%d}: {_effect(change)}"
    if len(changed) > _SHOWN:
        yield f"clocks change {len(changed) - _SHOWN} more times within a year of {utc_time(at)}"


def _day_notes(schedule: CalendarSchedule) -> Iterator[str]:
    fields = schedule.fields
    full = (fields.days == ALL_DAYS, fields.weekdays == ALL_WEEKDAYS)
    if fields.requires_both_day_fields(schedule.dialect) or all(full):
        return
    if any(full):
        yield "one day field allows every day, and one match is enough: it fires every day"
    else:
        yield "both day fields are limited, and one match is enough: it fires on more days than either alone"


def _upgrade_notes(schedule: Schedule, at: datetime) -> Iterator[str]:
    comparison = compare_dialects(schedule.text, schedule.zone, at)
    if comparison.change in (DialectChange.DAYS, DialectChange.REFUSED, DialectChange.ACCEPTED):
        difference = f"{comparison.change.value} ({comparison.reason})"
        yield f"Velero 1.18.3 reads it differently from earlier releases: {difference}"


def _effect(change: ClockChangeEffect) -> str:
    parts = [
        f"{word} at {_times(times)}"
        for word, times in (
            ("no fire", change.lost),
            ("two fires", change.doubled),
            ("an additional fire", change.moved),
        )
        if times
    ]
    return ", ".join(parts)


def _times(times: tuple[time, ...]) -> str:
    shown = ", ".join(f"{at:%H:%M}" for at in times[:_SHOWN])
    return shown if len(times) <= _SHOWN else f"{shown} and {len(times) - _SHOWN} more times"


def _ranges(values: list[int]) -> str:
    """Return numbers in order, with three or more in a row as a range."""
    parts = [str(first) if first == last else f"{first}-{last}" for first, last in spans_of(values)]
    return ", ".join(parts) or "(none)"


def _fields(schedule: Schedule) -> list[tuple[str, str, list[int]]]:
    if not isinstance(schedule, CalendarSchedule):
        return []
    fields = schedule.fields
    words = schedule.text.split()[-5:] if "@" not in schedule.text else [""] * 5
    sets = (fields.minutes, fields.hours, fields.days, fields.months, fields.weekdays)
    names = ("minute", "hour", "day of month", "month", "day of week (0 is Sunday)")
    return [(name, word, values_of(bits)) for name, word, bits in zip(names, words, sets, strict=True)]
