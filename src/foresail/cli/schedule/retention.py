"""`foresail schedule retention`: which Backups the rules keep, which go, when and why; and approval of a list."""

import argparse
import sys
from datetime import datetime
from typing import Any

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.marks import KEPT, RETENTION_APPROVED
from foresail.cli.access.cluster import Cluster, on_cluster
from foresail.cli.errors import CommandError
from foresail.cli.output.messages import hint
from foresail.cli.output.objects import Request, document
from foresail.cli.output.table import table
from foresail.cli.schedule.snapshot import EvaluatedSchedule, read_selected
from foresail.cli.verbs import are_shown, outcome
from foresail.deletion import MOST_APPROVED, approval
from foresail.reporting import Because
from foresail.retention import Rule
from foresail.schedules.observe import BackupRow
from foresail.schedules.retention import Retained, asked_for, lifetime, why_not_counted


def retention(args: argparse.Namespace) -> int:
    """Print what becomes of each Backup; with --approve, let a list go; with --undo, take back what is marked."""
    evaluated, instant = read_selected(args)
    if args.extend:
        return on_cluster(args, lambda cluster: _extend(cluster, args, evaluated))
    if args.approve:
        return on_cluster(args, lambda cluster: _approve(cluster, args, evaluated))
    if args.undo:
        return on_cluster(args, lambda cluster: _undo(cluster, args, evaluated))
    if args.output != "table":
        print(document([as_data(schedule) for schedule in evaluated], args.output))
    elif evaluated:
        print("\n\n".join(listed(schedule, instant) for schedule in evaluated))
    return 0


def listed(schedule: EvaluatedSchedule, instant: datetime) -> str:
    """Return what becomes of the Backups of a Schedule, the newest first."""
    retained = schedule.verdict.retained
    name = schedule.schedule.key
    if retained is None:
        return f"Schedule {name}: no SchedulePolicy with retention applies; Backups stay until their ttl ends."
    rows = [
        (row.key.name, _started(row), row.phase or "New", _fate(schedule, row, retained, instant))
        for row in _newest_first(schedule)
    ]
    lines = [f"Schedule {name}: {_summary(schedule, retained)}"]
    if rows:
        lines.append(table(("BACKUP", "STARTED", "PHASE", "RETENTION"), rows))
    problems = (retained.blocked_by, retained.failed)
    lines += [f"{problem.reason}: {problem.message}" for problem in problems if problem is not None]
    if retained.list_digest:
        lines.append(f"To approve this list: foresail schedule retention {name.name} --approve {retained.list_digest}")
    early = [row for row in _newest_first(schedule) if _extended(schedule, row, retained) is not None]
    if early:
        text = f"Velero deletes {len(early)} by their ttl while a rule would keep them. To let the rules decide:"
        lines.append(f"{text} foresail schedule retention {name.name} -n {name.namespace} --extend")
    return "\n".join(lines)


def as_data(schedule: EvaluatedSchedule) -> dict[str, Any]:
    """Return the same for programs."""
    retained = schedule.verdict.retained
    item: dict[str, Any] = {"namespace": schedule.schedule.key.namespace, "name": schedule.schedule.key.name}
    if retained is None:
        return {**item, "policy": None, "backups": []}
    return {
        **item,
        "policy": schedule.view.policy.name if schedule.view.policy else None,
        "approved": not retained.decision.asks,
        "list": retained.list_digest or None,
        "blockedBy": _as_data(retained.blocked_by),
        "failed": _as_data(retained.failed),
        "backups": [
            {
                "name": row.key.name,
                "started": _started(row),
                "phase": row.phase or "New",
                "keptBy": [rule.value for rule in retained.kept.get(row.key.name, ())],
                "deletedBecause": retained.deletes.get(row.key.name),
                "deleteAfter": stamp(row.delete_after) if row.delete_after is not None else None,
                "counts": row.key.name in retained.kept,
                "expires": stamp(row.expires) if row.expires is not None else None,
                "expiresBeforeRules": _extended(schedule, row, retained) is not None,
            }
            for row in _newest_first(schedule)
        ],
    }


def _summary(schedule: EvaluatedSchedule, retained: Retained) -> str:
    policy = schedule.view.policy.name if schedule.view.policy else ""
    kept = len(retained.kept) - len(retained.goes)
    return f"SchedulePolicy {policy} keeps {kept} and deletes {len(retained.deletes)} Backups"


def _as_data(because: Because | None) -> dict[str, str] | None:
    return {"reason": because.reason.value, "message": because.message} if because is not None else None


def _newest_first(schedule: EvaluatedSchedule) -> list[BackupRow]:
    return sorted(schedule.view.backups, key=lambda row: (row.slot or row.created, row.key), reverse=True)


def _started(row: BackupRow) -> str:
    return stamp(row.slot or row.created)


def _extended(schedule: EvaluatedSchedule, row: BackupRow, retained: Retained) -> datetime | None:
    """Return the expiration that a Backup which a rule keeps would get today; None if its own is late enough."""
    slot = row.slot or row.created
    upcoming = schedule.verdict.upcoming
    name = row.key.name
    if row.expires is None or not row.is_terminal or name not in retained.kept or name in retained.deletes:
        return None
    given = lifetime(schedule.view, slot, upcoming if upcoming is not None else slot)
    # The ttl of a new Backup is twice the longest time that the rules keep it.
    return slot + given if given is not None and row.expires < slot + given / 2 else None


def _fate(schedule: EvaluatedSchedule, row: BackupRow, retained: Retained, instant: datetime) -> str:
    name = row.key.name
    deletes = retained.deletes
    if name in retained.decision.asks:
        return f"waits for approval: {deletes[name]}"
    if name in deletes and row.delete_after is not None and row.delete_after > instant:
        return f"deleted after {stamp(row.delete_after)}: {deletes[name]}"
    if name in deletes:
        return f"deleted: {deletes[name]}"
    if name in retained.deleting:
        return "not counted: Velero has begun to delete it"
    if name not in retained.kept:
        return f"not counted: {why_not_counted(row, schedule.view, instant)}"
    kept = f"kept: {', '.join(rule.value for rule in retained.kept[name] if rule is not Rule.NO_RULE)}"
    expires = row.expires if _extended(schedule, row, retained) is not None else None
    return f"{kept}; but Velero deletes it on {stamp(expires)}" if expires is not None else kept


async def _extend(cluster: Cluster, args: argparse.Namespace, evaluated: list[EvaluatedSchedule]) -> int:
    """Give the Backups that rules keep the expiration that new ones get; Velero reads it from the object."""
    for schedule in evaluated:
        retained = schedule.verdict.retained
        rows = _newest_first(schedule) if retained is not None else []
        late = [(row, until) for row in rows if retained and (until := _extended(schedule, row, retained)) is not None]
        requests = [
            Request("PATCH", velero.BACKUP, row.key, {"status": {"expiration": stamp(until)}}) for row, until in late
        ]
        if are_shown(args, requests):
            continue
        for request in requests:
            await cluster.merge(request.kind, request.key, request.body or {}, dry_run=bool(args.dry_run))
        done = outcome(args, "extended")
        print(f"Schedule {schedule.schedule.key.name}: expiration of {len(late)} Backups {done}", file=sys.stderr)
    return 0


def waiting_of(schedule: EvaluatedSchedule) -> list[str]:
    """Return the names of the Backups whose deletion waits for an approval."""
    retained = schedule.verdict.retained
    return [] if retained is None else [backup.name for backup in asked_for(schedule.view.backups, retained)]


def approving(schedule: EvaluatedSchedule, digest: str) -> dict[str, Any]:
    """Return the change that approves the list with that digest; raise that it is not the one that waits."""
    retained = schedule.verdict.retained
    key = schedule.schedule.key
    if retained is None or retained.list_digest != digest:
        problem = f"Schedule {key.name}: the list {digest} is not the one that waits for approval now"
        raise CommandError(problem, f"look at the new one: foresail schedule retention {key.name}")
    listed = asked_for(schedule.view.backups, retained)
    return {"metadata": {"annotations": {RETENTION_APPROVED: approval(listed, retained.digest)}}}


async def _approve(cluster: Cluster, args: argparse.Namespace, evaluated: list[EvaluatedSchedule]) -> int:
    for schedule in evaluated:
        key = schedule.schedule.key
        if not waiting_of(schedule):
            print(f"Schedule {key.name}: nothing to approve", file=sys.stderr)
            continue
        body = approving(schedule, args.approve)
        if are_shown(args, [Request("PATCH", velero.SCHEDULE, key, body)]):
            continue
        await cluster.merge(velero.SCHEDULE, key, body, dry_run=bool(args.dry_run))
        done = outcome(args, "approved")
        count = min(len(waiting_of(schedule)), MOST_APPROVED)
        print(f"Schedule {key.name}: deletion of {count} Backups {done}", file=sys.stderr)
        if not schedule.operator and not args.dry_run:
            hint("Foresail's operator does not run, so nothing is deleted")
    return 0


async def _undo(cluster: Cluster, args: argparse.Namespace, evaluated: list[EvaluatedSchedule]) -> int:
    requests = undoing(evaluated)
    if are_shown(args, requests):
        return 0
    for request in requests:
        await cluster.merge(request.kind, request.key, request.body or {}, dry_run=bool(args.dry_run))
        done = "pinned" if request.kind == velero.BACKUP else "freed of its approval"
        print(f"{request.kind.name} {request.key.name} {'would be ' if args.dry_run else ''}{done}", file=sys.stderr)
    if not any(request.kind == velero.BACKUP for request in requests):
        print("No Backup is marked for deletion", file=sys.stderr)
    return 0


def undoing(evaluated: list[EvaluatedSchedule]) -> list[Request]:
    """Return the removal of approvals, and the pins of marked Backups: without them, rules would mark them again."""
    approved = {"metadata": {"annotations": {RETENTION_APPROVED: None}}}
    requests = [
        Request("PATCH", velero.SCHEDULE, schedule.schedule.key, approved)
        for schedule in evaluated
        if RETENTION_APPROVED in schedule.schedule.annotations
    ]
    requests += [
        Request("PATCH", velero.BACKUP, row.key, {"metadata": {"annotations": KEPT}})
        for schedule in evaluated
        for row in schedule.view.backups
        if row.delete_after is not None and row.phase != velero.DELETING
    ]
    return requests
