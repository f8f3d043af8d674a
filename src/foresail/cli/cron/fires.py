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


def following(chosen: argparse.Namespace) -> int:
    """Print the next fires; exit code 1 with the reason if there is none."""
    schedule = schedule_of(chosen)
    after = instant_of(chosen.after, schedule.zone)
    fires = list(islice(fires_after(schedule, after), chosen.count))
    if not fires:
        raise _nothing(schedule, f"after {utc_time(after)}", "the search ends after five years")
    _show(chosen, schedule, fires, after, "IN")
    return 0


def preceding(chosen: argparse.Namespace) -> int:
    """Print the latest fires, newest first; exit code 1 with the reason if there was none."""
    schedule = schedule_of(chosen)
    before = instant_of(chosen.before, schedule.zone)
    fires: list[datetime] = []
    at: datetime | None = before
    while len(fires) < chosen.count and at is not None and (at := schedule.previous(at)) is not None:
        fires.append(at)
    if not fires:
        raise _nothing(schedule, f"before {utc_time(before)}", "the search ends 45 years back")
    _show(chosen, schedule, fires, before, "AGO")
    return 0


def between(chosen: argparse.Namespace) -> int:
    """Print the fires of a stretch of time, which may have none."""
    schedule = schedule_of(chosen)
    start, end = instant_of(chosen.start, schedule.zone), instant_of(chosen.end, schedule.zone)
    if end <= start:
        raise UsageError(f"{chosen.end!r} is not after {chosen.start!r}", "specify the earlier time first")
    fires = list(schedule.between(start, end))
    if schedule.never_fires:
        raise _nothing(schedule, "", "")
    if not fires and chosen.output == "table":
        print(f"no fire in this period; {_later(schedule, end)}", file=sys.stderr)
        return 0
    _show(chosen, schedule, fires, start, "AFTER")
    return 0


def _later(schedule: Schedule, end: datetime) -> str:
    found = next(iter(fires_after(schedule, end)), None)
    return "no fire within five years either" if found is None else f"the next one is {wall_time(found, schedule.zone)}"


def _nothing(schedule: Schedule, when: str, limit: str) -> CommandError:
    if schedule.never_fires:
        return CommandError(f"{schedule.text!r} never fires: {schedule.never_fires}")
    return CommandError(f"{schedule.text!r} does not fire {when}: {limit}")


def _show(
    chosen: argparse.Namespace, schedule: Schedule, fires: Iterable[datetime], origin: datetime, distance: str
) -> None:
    if chosen.output == "json":
        print(json.dumps({**identity(schedule), "fires": [utc_time(fire) for fire in fires]}, indent=2))
        return
    rows = [(wall_time(fire, schedule.zone), utc_time(fire), length(fire - origin)) for fire in fires]
    print(table((f"FIRE ({schedule.zone})", "UTC", distance), rows))


def identity(schedule: Schedule) -> dict[str, str]:
    """Return what was asked about, for JSON."""
    return {"schedule": schedule.text, "dialect": schedule.dialect.value, "timeZone": schedule.zone}
