"""`foresail backup schedule retention`: which runs go, when and why; and approval of the list that was seen."""

import argparse
import sys
from datetime import datetime
from typing import Any

from foresail.api.instants import stamp
from foresail.api.marks import RETENTION_APPROVED
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_SCHEDULE
from foresail.backups import Quality
from foresail.cli.access.cluster import Cluster, on_namespace
from foresail.cli.errors import CommandError
from foresail.cli.output.objects import Request, document
from foresail.cli.output.table import table
from foresail.cli.tenant.schedule.snapshot import TenantSchedule, selected_schedules
from foresail.cli.tenant.tenant_request import TenantRequest, decode_request
from foresail.cli.verbs import are_shown, outcome
from foresail.deletion import MOST_APPROVED, Stored, approval, list_digest
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.schedules.status import RETAINING


def retention(args: argparse.Namespace) -> int:
    """Print what becomes of each run of the selected schedules; with --approve, let a list go."""
    return on_namespace(args, lambda cluster: _retention(cluster, args))


async def _retention(cluster: Cluster, args: argparse.Namespace) -> int:
    schedules = await selected_schedules(cluster, args)
    runs = [await runs_of(cluster, schedule) for schedule in schedules]
    if args.approve:
        for schedule, backups in zip(schedules, runs, strict=True):
            await _approve(cluster, args, schedule, backups)
    elif args.output != "table":
        pairs = zip(schedules, runs, strict=True)
        print(document([as_data(schedule, backups) for schedule, backups in pairs], args.output))
    elif schedules:
        print("\n\n".join(listed(schedule, backups) for schedule, backups in zip(schedules, runs, strict=True)))
    return 0


async def runs_of(cluster: Cluster, schedule: TenantSchedule) -> list[TenantRequest]:
    """Read the runs of a schedule, the newest first."""
    every = await cluster.listed(NON_ADMIN_BACKUP, schedule.key.namespace)
    backups = [decode_request(BACKUPS, raw) for raw in every]
    runs = [backup for backup in backups if backup.mark.schedule_uid == schedule.row.uid]
    return sorted(runs, key=lambda run: (run.mark.slot, run.key.name), reverse=True)


def listed(schedule: TenantSchedule, runs: list[TenantRequest]) -> str:
    """Return what becomes of the runs of a schedule."""
    rows = [(run.key.name, run.velero.phase or run.phase or "New", fate(run)) for run in runs]
    going = sum(run.mark.is_marked for run in runs)
    lines = [f"NonAdminSchedule {schedule.key}: keeps {len(runs) - going} and deletes {going} backups"]
    if rows:
        lines.append(table(("BACKUP", "PHASE", "RETENTION"), rows))
    condition = schedule.row.status.condition(RETAINING)
    if condition is not None and condition.status == "False":
        lines.append(f"{condition.reason}: {condition.message}")
    asked = asked_for(runs)
    if asked:
        name = schedule.key.name
        lines.append(f"To approve this list: foresail backup schedule retention {name} --approve {list_digest(asked)}")
    if any(run.mark.is_marked for run in runs):
        lines.append("To keep one: foresail backup keep NAME")
    return "\n".join(lines)


def fate(run: TenantRequest) -> str:
    """Return what becomes of a backup, and why."""
    mark = run.mark
    if run.is_terminating:
        return "being deleted"
    if mark.delete_after is not None:
        return f"deleted after {stamp(mark.delete_after)}: {mark.why}"
    if mark.why:
        return f"waits for approval: {mark.why}"
    return "kept: foresail backup keep" if mark.is_kept else "kept"


def as_data(schedule: TenantSchedule, runs: list[TenantRequest]) -> dict[str, Any]:
    """Return the same for programs."""
    asked = asked_for(runs)
    return {
        "namespace": schedule.key.namespace,
        "name": schedule.key.name,
        "list": list_digest(asked) if asked else None,
        "backups": [
            {
                "name": run.key.name,
                "phase": run.velero.phase or run.phase or "New",
                "deleteAfter": stamp(run.mark.delete_after) if run.mark.delete_after is not None else None,
                "deletedBecause": run.mark.why or None,
                "waitsForApproval": bool(run.mark.why) and run.mark.delete_after is None,
                "kept": run.mark.is_kept,
            }
            for run in runs
        ],
    }


def asked_for(runs: list[TenantRequest]) -> list[Stored]:
    """Return the runs that wait for an approval, as the operator names them in it."""
    return [
        Stored(run.key.name, run.request.metadata.uid, _created(run), Quality.UNFINISHED)
        for run in runs
        if run.mark.why and run.mark.delete_after is None and not run.is_terminating
    ]


def _created(run: TenantRequest) -> datetime:
    created = run.request.metadata.creation_timestamp
    if created is None:
        raise CommandError(f"NonAdminBackup {run.key} has no creationTimestamp", "read it again")
    return created


def approving(schedule: TenantSchedule, asked: list[Stored], digest: str) -> dict[str, Any]:
    """Return the change that approves the list with that digest; raise that it is not the one that waits."""
    key = schedule.key
    if list_digest(asked) != digest:
        problem = f"NonAdminSchedule {key.name}: the list {digest} is not the one that waits for approval now"
        raise CommandError(problem, f"look at the new one: foresail backup schedule retention {key.name}")
    observed = schedule.row.status.observed
    if observed is None or not observed.asks:
        raise CommandError(f"NonAdminSchedule {key.name} does not wait for an approval now", "look at it again")
    annotations = {RETENTION_APPROVED: approval(asked, observed.asks)}
    return {"metadata": {"uid": schedule.row.uid, "annotations": annotations}}


async def _approve(
    cluster: Cluster, args: argparse.Namespace, schedule: TenantSchedule, runs: list[TenantRequest]
) -> None:
    asked = asked_for(runs)
    key = schedule.key
    if not asked:
        print(f"NonAdminSchedule {key.name}: nothing to approve", file=sys.stderr)
        return
    body = approving(schedule, asked, args.approve)
    if are_shown(args, [Request("PATCH", NON_ADMIN_SCHEDULE, key, body)]):
        return
    await cluster.merge(NON_ADMIN_SCHEDULE, key, body, dry_run=bool(args.dry_run))
    done = outcome(args, "approved")
    count = min(len(asked), MOST_APPROVED)
    print(f"NonAdminSchedule {key.name}: deletion of {count} backups {done}", file=sys.stderr)
