"""What the user wrote, as values of the domain; and instants and durations, as a user reads them."""

import argparse
import shlex
from datetime import UTC, datetime, timedelta

from foresail.cli.errors import CommandError, UsageError
from foresail.cron import CronError, Dialect, Schedule, parse
from foresail.cron.duration import nanoseconds
from foresail.cron.zone_names import validate_zone_name
from foresail.cron.zones import load_zoneinfo
from foresail.kube.clock import now

_MINUTE = 60 * 10**9


class InvalidScheduleError(CommandError):
    """Ends the command with a pointer to what is wrong with a schedule."""

    def __init__(self, cause: CronError) -> None:
        super().__init__(pointed_out(cause), f"allowed: {cause.allowed}")
        self.cause = cause


def explain_hint(text: str) -> str:
    """Return how to find out what an expression means."""
    return f"see what it means: foresail cron explain {shlex.quote(text)}"


def schedule_of(args: argparse.Namespace, text: str | None = None) -> Schedule:
    """Return the schedule that the user wrote, or say with a pointer what is wrong with it."""
    text = args.expression if text is None else text
    dialect = Dialect(args.dialect)
    try:
        validate_zone_name(args.zone)
    except CronError as error:
        raise UsageError(f"--zone: {error}") from None
    try:
        return parse(text, dialect, args.zone)
    except CronError as error:
        raise InvalidScheduleError(error) from None


def pointed_out(error: CronError) -> str:
    """Return a cron error with the text below it and a caret under the place that is wrong."""
    problem = f"{error.field}: {error.problem}" if error.field else error.problem
    if error.column is None or not error.text.isprintable():
        return problem
    return f"{problem}\n  {error.text}\n  {' ' * (error.column - 1)}^"


def instant_of(text: str | None, zone: str) -> datetime:
    """Return the instant that the user wrote, read in the zone if it names none; the present without a text."""
    if text is None:
        return now()
    try:
        wall = load_zoneinfo(validate_zone_name(zone))
        instant = datetime.fromisoformat(text)
    except CronError as error:
        raise UsageError(f"--zone: {error}") from None
    except ValueError:
        hint = "write 2026-03-29, 2026-03-29T02:30 or 2026-03-29T00:30:00Z"
        raise UsageError(f"{text!r} is not a date or time", hint) from None
    return (instant if instant.tzinfo else instant.replace(tzinfo=wall)).astimezone(UTC)


def minutes_of(text: str) -> int:
    """Return a lead time in minutes, from a Go duration or a plain number."""
    length = nanoseconds(f"{text}m" if text.isdecimal() else text)
    if length is None or length < _MINUTE or length % _MINUTE:
        raise UsageError(f"{text!r} is not a lead time", "write whole minutes: 10m, 1h30m, or just 10")
    return length // _MINUTE


def wall_time(at: datetime, zone: str) -> str:
    """Return an instant in the wall-clock time of a zone, with its offset."""
    local = at.astimezone(load_zoneinfo(zone))
    seconds = "" if local.second == 0 else f":{local.second:02}"
    offset = local.strftime("%z")
    return f"{local:%a %Y-%m-%d %H:%M}{seconds} {offset[:3]}{'' if offset[3:] == '00' else ':' + offset[3:]}"


def utc_time(at: datetime) -> str:
    """Return an instant as Kubernetes writes it."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def length(span: timedelta) -> str:
    """Return a length of time with its two largest units."""
    minutes, seconds = divmod(abs(round(span.total_seconds())), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")]
    first = next((place for place, (value, _) in enumerate(parts) if value), len(parts) - 1)
    return " ".join(f"{value} {unit}" for value, unit in parts[first : first + 2] if value) or "0 s"
