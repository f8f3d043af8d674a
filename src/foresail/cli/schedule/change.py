"""`foresail schedule pause`, `unpause` and `delete`: small changes of Schedules that exist."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from foresail.api import velero
from foresail.cli.access.cluster import Cluster, on_cluster
from foresail.cli.errors import CommandError
from foresail.cli.output.messages import hint
from foresail.cli.output.objects import Request
from foresail.cli.schedule.hints import hint_who_manages, who_fires
from foresail.cli.schedule.snapshot import read_controllers, row_of, selected_schedules
from foresail.cli.verbs import are_shown, check_selected, confirm, outcome, report
from foresail.kube.clock import now
from foresail.schedules.observe import ScheduleRow
from foresail.schedules.status import pause_annotation


def pause(args: argparse.Namespace) -> int:
    """Pause the selected Schedules."""
    return on_cluster(args, lambda cluster: _set_paused(cluster, args, paused=True))


def unpause(args: argparse.Namespace) -> int:
    """Unpause the selected Schedules; spec.skipImmediately does not change unless the option is set."""
    return on_cluster(args, lambda cluster: _set_paused(cluster, args, paused=False))


def delete(args: argparse.Namespace) -> int:
    """Delete the selected Schedules, after asking."""
    return on_cluster(args, lambda cluster: _delete(cluster, args))


def pause_body(*, paused: bool, skip: bool | None) -> dict[str, Any]:
    """Return the merge patch that pauses or unpauses; without a value for it, the stored skipImmediately stays."""
    spec: dict[str, Any] = {"paused": paused}
    if skip is not None:
        spec["skipImmediately"] = skip
    return {"spec": spec}


async def _set_paused(cluster: Cluster, args: argparse.Namespace, *, paused: bool) -> int:
    schedules = await _selected_rows(cluster, args)
    word = "paused" if paused else "unpaused"
    changed = [schedule for schedule in schedules if schedule.paused is not paused]
    for schedule in schedules:
        if schedule.paused is paused:
            kept = "" if args.skip_immediately is None else "; spec.skipImmediately is unchanged"
            print(f"Schedule {schedule.key.name} is already {word}, skip{kept}", file=sys.stderr)
    requests = [pause_request(row, paused=paused, skip=args.skip_immediately) for row in changed]
    hint_who_manages(changed)
    if are_shown(args, requests):
        return 0
    done = outcome(args, word, f"{word} successfully")
    for request in requests:
        made = await cluster.merge(request.kind, request.key, request.body or {}, dry_run=bool(args.dry_run))
        report(args, made, f"Schedule {request.key.name} {done}")
    if not paused and not args.dry_run:
        await _hint_who_fires(cluster, args, changed)
    return 0


def pause_request(schedule: ScheduleRow, *, paused: bool, skip: bool | None) -> Request:
    """Return the write that pauses or unpauses a Schedule."""
    body = pause_body(paused=paused, skip=skip)
    noted = {} if paused else pause_annotation(schedule, now())
    if noted:
        body["metadata"] = {"annotations": noted}
    return Request("PATCH", velero.SCHEDULE, schedule.key, body)


async def _hint_who_fires(cluster: Cluster, args: argparse.Namespace, schedules: Sequence[ScheduleRow]) -> None:
    for namespace in sorted({schedule.key.namespace for schedule in schedules}):
        try:
            run_by = await read_controllers(cluster, namespace, args, now())
        except CommandError as error:  # the change is done, whichever controller fires
            hint(f"cannot find out what fires Schedules in {namespace}: {error.problem}")
            continue
        is_on = run_by.server.has_schedule_controller
        text = who_fires(namespace, has_schedule_controller=is_on, operator=run_by.operator)
        if text:
            hint(text)


async def _delete(cluster: Cluster, args: argparse.Namespace) -> int:
    schedules = await _selected_rows(cluster, args)
    hint_who_manages(schedules)
    if are_shown(args, [Request("DELETE", velero.SCHEDULE, schedule.key) for schedule in schedules]):
        return 0
    confirm(args, (f"Schedule {schedule.key}" for schedule in schedules))
    for schedule in schedules:
        await cluster.delete(velero.SCHEDULE, schedule.key, schedule.uid, dry_run=bool(args.dry_run))
        kind = {"apiVersion": velero.SCHEDULE.api_version, "kind": velero.SCHEDULE.name}
        gone = {**kind, "metadata": {"name": schedule.key.name, "namespace": schedule.key.namespace}}
        tried = f"Schedule {schedule.key.name} would be deleted (server dry run)"
        report(args, gone, tried if args.dry_run else f"Schedule deleted: {schedule.key.name}")
        if schedule.owns_backups and not args.dry_run:
            hint(f"useOwnerReferencesInBackup: the Backups of {schedule.key.name} are deleted with it")
    return 0


async def _selected_rows(cluster: Cluster, args: argparse.Namespace) -> list[ScheduleRow]:
    check_selected(args, "Schedule")
    schedules = [row_of(schedule) for schedule in await selected_schedules(cluster, args)]
    if not schedules:
        print("No schedules found", file=sys.stderr)
    return schedules
