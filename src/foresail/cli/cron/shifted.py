"""`foresail cron shift`: a schedule some minutes earlier, as CronJobs that run without us."""

import argparse
import json
import sys
from datetime import date

from foresail.cli.cron.words import instant_of, minutes_of, schedule_of, utc_time
from foresail.cli.errors import PROBLEM, CommandError
from foresail.cli.output.table import table
from foresail.cron import Schedule
from foresail.cron.shift import Shifted, shift

_DATES_SHOWN = 6
_INSTANTS_LISTED = 100  # a schedule for each minute can have tens of thousands in five years


def shift_earlier(args: argparse.Namespace) -> int:
    """Print the expressions that fire that much earlier; exit code 1 with the dates if they are not exact."""
    schedule = schedule_of(args)
    minutes = minutes_of(args.lead)
    shifted = shift(schedule, minutes, instant_of(args.at, schedule.zone))
    if args.output == "json":
        print(json.dumps(_as_json(shifted), indent=2))
        return 0 if shifted.exact else PROBLEM
    if not shifted.schedules:
        raise CommandError(f"{schedule.text!r} cannot be shifted: {_reason(schedule, shifted)}", shifted.advice)
    print(
        table(
            ("SCHEDULE", "TIME ZONE"), [(expression.schedule, expression.time_zone) for expression in shifted.schedules]
        )
    )
    print(_verdict(shifted), file=sys.stderr)
    return 0 if shifted.exact else PROBLEM


def _reason(schedule: Schedule, shifted: Shifted) -> str:
    return (shifted.reason or "").replace(repr(schedule.text), "it", 1)


def _as_json(shifted: Shifted) -> dict[str, object]:
    return {
        "exact": shifted.exact,
        "schedules": [
            {"schedule": schedule.schedule, "timeZone": schedule.time_zone} for schedule in shifted.schedules
        ],
        "reason": shifted.reason,
        "until": utc_time(shifted.until) if shifted.until else None,
        "lost": {"count": len(shifted.lost), "first": [utc_time(at) for at in shifted.lost[:_INSTANTS_LISTED]]},
        "spurious": {
            "count": len(shifted.spurious),
            "first": [utc_time(at) for at in shifted.spurious[:_INSTANTS_LISTED]],
        },
        "dates": [day.isoformat() for day in shifted.inexact_dates],
        "advice": shifted.advice,
    }


def _verdict(shifted: Shifted) -> str:
    if shifted.exact:
        until = f" until {shifted.until:%Y-%m-%d}, as far as clock changes are known" if shifted.until else ""
        return f"exact{until}" + (f": {shifted.reason}" if shifted.reason else "")
    lines = [f"not exact: {shifted.reason}"]
    if shifted.lost or shifted.spurious:
        lines.append(
            f"in the next five years {len(shifted.lost)} lost and {len(shifted.spurious)} spurious, "
            f"on {_some(shifted.inexact_dates)}"
        )
    if shifted.advice:
        lines.append(f"hint: {shifted.advice}")
    return "\n".join(lines)


def _some(days: tuple[date, ...]) -> str:
    shown = ", ".join(day.isoformat() for day in days[:_DATES_SHOWN])
    return shown if len(days) <= _DATES_SHOWN else f"{shown} and {len(days) - _DATES_SHOWN} more dates"
