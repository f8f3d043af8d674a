"""`foresail cron next`, `previous` and `between`: the fires themselves."""

import argparse
import json
import sys
from collections.abc import Iterable
from datetime import datetime
from itertools import islice

from foresail.cli.cron.words import instant_of, length, schedule_of, utc_time, wall_time
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.output.table import table
from foresail.cron import Schedule, fires_after


def following(args: argparse.Namespace) -> int:
    """Print the next fires; exit code 1 with the reason if there is none."""
    schedule = schedule_of(args)
    after = instant_of(args.after, schedule.zone)
    fires = list(islice(fires_after(schedule, after), args.count))
    if not fires:
        raise _nothing(schedule, f"after {utc_time(after)}", "the search ends after five years")
    _show(args, schedule, fires, after, "IN")
    return 0


def preceding(args: argparse.Namespace) -> int:
    """Print the latest fires, newest first; exit code 1 with the reason if there was none."""
    schedule = schedule_of(args)
    before = instant_of(args.before, schedule.zone)
    fires: list[datetime] = []
    at: datetime | None = before
    while len(fires) < args.count and at is not None and (at := schedule.previous(at)) is not None:
        fires.append(at)
    if not fires:
        raise _nothing(schedule, f"before {utc_time(before)}", "the search ends 45 years back")
    _show(args, schedule, fires, before, "AGO")
    return 0


def between(args: argparse.Namespace) -> int:
    """Print the fires of a stretch of time, which may have none."""
    schedule = schedule_of(args)
    start = instant_of(args.start, schedule.zone)
    end = instant_of(args.end, schedule.zone)
    if end <= start:
        raise UsageError(f"{args.end!r} is not after {args.start!r}", "specify the earlier time first")
    fires = list(schedule.between(start, end))
    if schedule.never_fires:
        raise _nothing(schedule, "", "")
    if not fires and args.output == "table":
        print(f"no fire in this period; {_later(schedule, end)}", file=sys.stderr)
        return 0
    _show(args, schedule, fires, start, "AFTER")
    return 0


def _later(schedule: Schedule, end: datetime) -> str:
    fire = next(iter(fires_after(schedule, end)), None)
    return "no fire within five years either" if fire is None else f"the next one is {wall_time(fire, schedule.zone)}"


def _nothing(schedule: Schedule, when: str, limit: str) -> CommandError:
    if schedule.never_fires:
        return CommandError(f"{schedule.text!r} never fires: {schedule.never_fires}")
    return CommandError(f"{schedule.text!r} does not fire {when}: {limit}")


def _show(
    args: argparse.Namespace, schedule: Schedule, fires: Iterable[datetime], origin: datetime, distance: str
) -> None:
    if args.output == "json":
        print(json.dumps({**identity(schedule), "fires": [utc_time(fire) for fire in fires]}, indent=2))
        return
    rows = [(wall_time(fire, schedule.zone), utc_time(fire), length(fire - origin)) for fire in fires]
    print(table((f"FIRE ({schedule.zone})", "UTC", distance), rows))


def identity(schedule: Schedule) -> dict[str, str]:
    """Return the schedule and the zone, for JSON."""
    return {"schedule": schedule.text, "dialect": schedule.dialect.value, "timeZone": schedule.zone}
