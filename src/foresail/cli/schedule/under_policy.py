"""Schedules as they would be under the SchedulePolicies of a file, before those are applied."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from foresail.api.schedule_policy import SchedulePolicy
from foresail.cli.cron.load import Load, Timetable, load_of
from foresail.cli.errors import CommandError
from foresail.cli.options.manifest_files import objects
from foresail.cli.schedule.simulation import Fate, Span
from foresail.cli.schedule.snapshot import EvaluatedSchedule, evaluate
from foresail.cron.zone_names import validate_zone_name
from foresail.cron.zones import load_zoneinfo
from foresail.schedules.policies import problem_with
from foresail.slots.policies import PolicyRow, policy_row

KIND = "SchedulePolicy"
Fates = Sequence[tuple[Fate, EvaluatedSchedule]]


def policies_of(file: str, read: list[Any]) -> list[PolicyRow]:
    """Return the SchedulePolicies of a file; report one that cannot be used."""
    found: dict[str, PolicyRow] = {}
    for item in objects(read, KIND):
        metadata = item.get("metadata")
        name = str(metadata.get("name", "?")) if isinstance(metadata, dict) else "?"
        try:
            row = policy_row(msgspec.convert(item, SchedulePolicy))
        except msgspec.ValidationError as error:
            raise CommandError(f"{KIND} {name} in {file}: {error}", "correct that field") from None
        problem = problem_with(row)
        if problem is not None:
            raise CommandError(f"{KIND} {name} in {file}: {problem}", "correct that field")
        if name in found:
            raise CommandError(f"{file} has {KIND} {name} twice", "remove one of them")
        found[name] = row
    if not found:
        raise CommandError(f"{file} has no {KIND}", "specify a file with at least one")
    return list(found.values())


PLANNED = "planned"
"""The operator in a snapshot of how a cluster would be under a policy."""


def under(schedule: EvaluatedSchedule, given: Iterable[PolicyRow], instant: datetime) -> EvaluatedSchedule:
    """Return a Schedule as it would be if these policies were applied over those of the cluster."""
    if schedule.known is None:
        return schedule
    merged = {row.name: row for row in (*schedule.known.policies, *given)}
    operator = schedule.known.operator or PLANNED  # Velero knows no policy, so these suppose that the operator runs
    known = replace(schedule.known, policies=tuple(merged.values()), operator=operator)
    return evaluate(schedule.schedule, schedule.content, known, instant)


def load_in(fates: Fates, span: Span, zone: str, now: datetime) -> Load:
    """Return how many runs start when, as they were simulated."""
    starts = {key: list[datetime]() for key in sorted({each.schedule.key for _, each in fates})}
    for fate, each in fates:
        if fate.at:
            starts[each.schedule.key].append(fate.at)
    wall = load_zoneinfo(validate_zone_name(zone))
    first = span.since.astimezone(wall).date()
    last = (span.until - timedelta(seconds=1)).astimezone(wall).date()
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    return load_of([Timetable(key, partial(_between, found)) for key, found in starts.items()], days, zone, now)


def _between(starts: Sequence[datetime], since: datetime, until: datetime) -> list[datetime]:
    return [at for at in starts if since <= at < until]
