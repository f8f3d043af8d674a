"""`foresail backup schedule pause`, `unpause` and `delete`: small changes of schedules that exist."""

import argparse
import sys
from typing import Any

import msgspec

from foresail.api.requests import NON_ADMIN_SCHEDULE
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.options.booleans import CLIENT
from foresail.cli.options.output import is_table
from foresail.cli.output.messages import confirm_deletion
from foresail.cli.output.objects import as_text
from foresail.cli.output.requests import Request, shown
from foresail.cli.schedule.change import pause_body
from foresail.cli.tenant.requester import stamped
from foresail.cli.tenant.schedule.snapshot import TenantSchedule, in_namespace, selected_schedules

_KIND = NON_ADMIN_SCHEDULE


def pause(args: argparse.Namespace) -> int:
    """Pause the selected schedules."""
    return in_namespace(args, lambda cluster: _set_paused(cluster, args, paused=True))


def unpause(args: argparse.Namespace) -> int:
    """Unpause the selected schedules; what spec.skipImmediately says stays unless the option says otherwise."""
    return in_namespace(args, lambda cluster: _set_paused(cluster, args, paused=False))


def delete(args: argparse.Namespace) -> int:
    """Delete the selected schedules, after asking."""
    return in_namespace(args, lambda cluster: _delete(cluster, args))


async def _set_paused(cluster: Cluster, args: argparse.Namespace, *, paused: bool) -> int:
    schedules = await _selected(cluster, args)
    word = "paused" if paused else "unpaused"
    changed = [schedule for schedule in schedules if schedule.row.paused is not paused]
    for schedule in schedules:
        if schedule.row.paused is paused:
            print(f"{_KIND.name} {schedule.key} is already {word}, skip", file=sys.stderr)
    requests = [Request("PATCH", _KIND, schedule.key, _body(schedule, args, paused=paused)) for schedule in changed]
    if args.dry_run == CLIENT:
        print(shown(requests, args.output))
        return 0
    done = f"would be {word} (server dry run)" if args.dry_run else word
    for request in requests:
        body = await stamped(cluster, request.body or {})
        made = await cluster.merge(request.kind, request.key, body, dry_run=bool(args.dry_run))
        _report(args, msgspec.json.decode(made, type=dict[str, Any]), f"{_KIND.name} {request.key} {done}")
    return 0


def _body(schedule: TenantSchedule, args: argparse.Namespace, *, paused: bool) -> dict[str, Any]:
    return {"metadata": {"uid": schedule.row.uid}, **pause_body(paused=paused, skip=args.skip_immediately)}


async def _delete(cluster: Cluster, args: argparse.Namespace) -> int:
    schedules = await _selected(cluster, args)
    if args.dry_run == CLIENT:
        print(shown([Request("DELETE", _KIND, schedule.key) for schedule in schedules], args.output))
        return 0
    if schedules and not (args.confirm or args.dry_run):
        confirm_deletion(f"{_KIND.name} {schedule.key}" for schedule in schedules)
    for schedule in schedules:
        await cluster.delete(_KIND, schedule.key, schedule.row.uid, dry_run=bool(args.dry_run))
        done = "would be deleted (server dry run)" if args.dry_run else "deleted; its backups stay until they expire"
        _report(args, schedule.content, f"{_KIND.name} {schedule.key} {done}")
    return 0


async def _selected(cluster: Cluster, args: argparse.Namespace) -> list[TenantSchedule]:
    if not (args.names or args.selector or args.all):
        raise CommandError(f"no {_KIND.name} is specified", "specify names, -l SELECTOR or --all")
    return await selected_schedules(cluster, args)


def _report(args: argparse.Namespace, content: dict[str, Any], text: str) -> None:
    if is_table(args.output):
        print(text, file=sys.stderr)
    else:
        print(as_text([content], args.output))
