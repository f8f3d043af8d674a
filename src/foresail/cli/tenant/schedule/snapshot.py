"""A NonAdminSchedule as its tenant sees it, and the ones that a command selects."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from foresail.api.instants import instant
from foresail.api.nonadmin import NON_ADMIN_SCHEDULE, Condition, Schedule
from foresail.cli.access.cluster import Cluster, on_namespace
from foresail.cli.access.refused_writes import RefusedWrite
from foresail.cli.errors import CommandError
from foresail.cli.output.messages import hint
from foresail.cli.tenant.stalled import NOTHING_STALLED, Stalled, read_stalled_in
from foresail.cron.zone_names import is_zone
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.proof.reasons import Reason as Gap
from foresail.proof.runs import overdue_text
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.requests.status import ACCEPTED, FALSE
from foresail.selfservice.rows.schedules import ScheduleRow, schedule_row
from foresail.selfservice.schedules.rules import ZONE
from foresail.selfservice.schedules.status import READY

T = TypeVar("T")

SCHEDULES = msgspec.structs.replace(BACKUPS, kind=NON_ADMIN_SCHEDULE, word="backup schedule")
"""What advice about a schedule names."""

_any = msgspec.json.Decoder(dict[str, Any])
_schedule = msgspec.json.Decoder(Schedule)


@dataclass(frozen=True, slots=True)
class TenantSchedule:
    """One NonAdminSchedule: the raw object, and its row."""

    content: dict[str, Any]
    row: ScheduleRow
    refused: RefusedWrite | None = None  # only `explain` reads it
    stalled: Stalled = NOTHING_STALLED  # why nothing starts, as the operator publishes it

    @property
    def key(self) -> Key:
        """Its namespace and name."""
        return self.row.key

    @property
    def next_run(self) -> datetime | None:
        """When it runs next, as the operator reports it."""
        return instant(self.row.status.next_run) if self.row.status.next_run else None

    @property
    def location(self) -> str:
        """The storage location that its template names; empty for the default one."""
        template = (self.content.get("spec") or {}).get("template") or {}
        return str((template.get("backupSpec") or {}).get("storageLocation") or "")

    @property
    def zone(self) -> str:
        """The zone of an expression that names none, as the operator last recorded it."""
        observed = self.row.status.observed
        return observed.zone if observed is not None and is_zone(observed.zone) else ZONE

    @property
    def blocking(self) -> Condition | None:
        """The condition that explains why it does not run; None if there is none."""
        conditions = (self.row.status.condition(kind) for kind in (ACCEPTED, READY))
        return next(
            (condition for condition in conditions if condition is not None and condition.status == FALSE), None
        )


async def selected_schedules(cluster: Cluster, args: argparse.Namespace) -> list[TenantSchedule]:
    """Read the schedules that names or a selector match, or all; print a message if there are none."""
    if args.names and (args.selector or getattr(args, "all", False) or not args.namespace):
        problem = f"{NON_ADMIN_SCHEDULE.name} {args.names[0]}: names cannot be combined with -l, -A or --all"
        raise CommandError(problem, "specify either names or a selection")
    if args.names:
        keys = [Key(args.namespace, name) for name in args.names]
        return [decode(await cluster.read(NON_ADMIN_SCHEDULE, key, msgspec.Raw)) for key in keys]
    listed = await cluster.listed(NON_ADMIN_SCHEDULE, args.namespace, args.selector or "")
    schedules = sorted(map(decode, listed), key=lambda schedule: schedule.key)
    if not schedules:
        where = f"namespace {args.namespace}" if args.namespace else "any namespace"
        print(f"No schedules found in {where}", file=sys.stderr)
    return schedules


def read_selected(args: argparse.Namespace) -> list[TenantSchedule]:
    """Connect and read the selected schedules."""
    return on_namespace(args, lambda cluster: selected_schedules(cluster, args))


async def with_stalled(cluster: Cluster, args: argparse.Namespace) -> list[TenantSchedule]:
    """Read the selected schedules with what keeps all of them from running."""
    schedules = await selected_schedules(cluster, args)
    stalled = await read_stalled_in(cluster, args.namespace, now()) if schedules else NOTHING_STALLED
    return [replace(schedule, stalled=stalled) for schedule in schedules]


def stopped_by(schedule: TenantSchedule, at: datetime) -> tuple[Gap, str] | None:
    """Return why nothing runs a schedule of which the operator reports nothing wrong: a word and a sentence."""
    if schedule.blocking is not None or schedule.row.paused:
        return None
    stalled = schedule.stalled
    causes = (
        (Gap.NOBODY_RUNS, stalled.nobody_runs or overdue_text(schedule.next_run, at)),
        (Gap.VELERO_NOT_READY, stalled.velero),
        (Gap.LOCATION_UNAVAILABLE, stalled.locations.get(schedule.location, "")),
    )
    return next(((reason, text) for reason, text in causes if text), None)


def decode(raw: msgspec.Raw) -> TenantSchedule:
    """Return a NonAdminSchedule as it came, and its row."""
    try:
        return TenantSchedule(_any.decode(raw), schedule_row(_schedule.decode(raw)))
    except (msgspec.DecodeError, ValueError) as error:
        name = (_any.decode(raw).get("metadata") or {}).get("name", "")
        raise CommandError(f"{NON_ADMIN_SCHEDULE.name} {name} cannot be read: {error}", "correct the object") from None


def decode_each(raws: Iterable[msgspec.Raw]) -> Iterator[TenantSchedule]:
    """Yield the NonAdminSchedules of many tenants; one that cannot be decoded hides no other."""
    for raw in raws:
        try:
            yield decode(raw)
        except CommandError as error:
            hint(f"not considered: {error.problem}")
