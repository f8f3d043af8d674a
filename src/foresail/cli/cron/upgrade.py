"""`foresail cron diff-dialects`: what an upgrade of Velero to 1.18.3 changes."""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from foresail.cli.cron.words import instant_of, utc_time, wall_time
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.options.values import documents, objects
from foresail.cli.output.table import table
from foresail.cron import CronError
from foresail.cron.dialect_diff import DialectChange, DialectDiff, compare_dialects
from foresail.cron.zone_names import validate_zone_name

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Scheduled:
    """An object with a schedule, or a bare expression without a name."""

    name: str
    text: str
    zone: str


def diff_dialects(args: argparse.Namespace) -> int:
    """Print what changes for one expression, or for every schedule in a file."""
    if (args.expression is None) == (args.file is None):
        raise UsageError("specify either an expression or -f FILE", "foresail cron diff-dialects '0 3 1 * 1'")
    at = instant_of(args.at, args.zone)
    if args.file is None:
        schedules = [Scheduled("", args.expression, args.zone)]
    else:
        schedules = list(scheduled_objects(documents(args.file), args.zone))
    compared = [(schedule, _compared(schedule, at)) for schedule in schedules]
    if args.output == "json":
        print(json.dumps([_as_json(schedule, change) for schedule, change in compared], indent=2))
    elif args.file is None:
        print(_in_full(compared[0][1]))
    else:
        _print_rows(compared)
    return 0


def _compared(schedule: Scheduled, at: datetime) -> DialectDiff:
    try:
        validate_zone_name(schedule.zone)
    except CronError as error:
        raise CommandError(f"{schedule.name or schedule.text}: {error}") from None
    return compare_dialects(schedule.text, schedule.zone, at)


def scheduled_objects(items: list[Any], zone: str) -> Iterator[Scheduled]:
    """Yield every Schedule and CronJob among decoded documents, lists of them included."""
    for item in objects(items, "Schedule", "CronJob"):
        spec = item.get("spec")
        if not isinstance(spec, dict):
            continue
        name = _name(item.get("metadata"))
        text = spec.get("schedule")
        place = spec.get("timeZone") or zone
        for field, value in (("schedule", text), ("timeZone", place)):
            if not isinstance(value, str):
                raise CommandError(f"{item['kind']} {name}: spec.{field} is not a string", "put it in quotes")
        yield Scheduled(name, str(text), str(place))


def _name(metadata: object) -> str:
    known = metadata if isinstance(metadata, dict) else {}
    return f"{known.get('namespace', 'default')}/{known.get('name', '?')}"


def _as_json(schedule: Scheduled, diff: DialectDiff) -> dict[str, object]:
    return {
        "name": schedule.name or None,
        "schedule": schedule.text,
        "timeZone": schedule.zone,
        "change": diff.change.value,
        "changes": diff.change not in (DialectChange.NONE, DialectChange.INVALID),
        "reason": diff.reason,
        "gone": [utc_time(at) for at in diff.removed],
        "new": [utc_time(at) for at in diff.added],
    }


def _in_full(diff: DialectDiff) -> str:
    lines = [f"{diff.change.value}" + (f": {diff.reason}" if diff.reason else "")]
    for word, fires in (("gone", diff.removed), ("new", diff.added)):
        lines += [f"{word:<5} {wall_time(at, diff.zone)}" for at in fires[:_SHOWN]]
        if len(fires) > _SHOWN:
            lines.append(f"{word:<5} and {len(fires) - _SHOWN} more within five years")
    return "\n".join(lines)


def _print_rows(compared: list[tuple[Scheduled, DialectDiff]]) -> None:
    changed = [(schedule, change) for schedule, change in compared if change.change is not DialectChange.NONE]
    rows = [
        (
            schedule.name,
            schedule.text,
            change.change.value,
            str(len(change.removed)),
            str(len(change.added)),
            _first(change),
        )
        for schedule, change in changed
    ]
    if rows:
        print(table(("NAME", "SCHEDULE", "CHANGE", "GONE", "NEW", "FIRST"), rows))
    print(f"{len(changed)} of {len(compared)} schedules change or are refused (within five years)", file=sys.stderr)


def _first(diff: DialectDiff) -> str:
    both = [*diff.removed[:1], *diff.added[:1]]
    return wall_time(min(both), diff.zone) if both else ""
