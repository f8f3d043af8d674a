"""`foresail backup schedule pause`, `unpause` and `delete`: small changes of schedules that exist."""

import argparse
import sys
from typing import Any

import msgspec

from foresail.api.nonadmin import NON_ADMIN_SCHEDULE
from foresail.cli.access.cluster import Cluster, on_namespace, settle_namespace
from foresail.cli.access.self_service import require
from foresail.cli.cron.words import explain_hint, pointed_out
from foresail.cli.errors import CommandError
from foresail.cli.options.values import metadata_of
from foresail.cli.output.objects import Request
from foresail.cli.output.words import moment
from foresail.cli.schedule.change import pause_body
from foresail.cli.tenant.advice import advice_for, next_step
from foresail.cli.tenant.new_request import check_kinds, check_name, stamped
from foresail.cli.tenant.schedule.snapshot import SCHEDULES, TenantSchedule, decode, selected_schedules
from foresail.cli.tenant.spec import backup_spec
from foresail.cli.verbs import (
    answer,
    are_shown,
    check_selected,
    confirm,
    create_object,
    is_printed,
    outcome,
    print_object,
    report,
)
from foresail.cron import CronError, Schedule, parse
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.requests.status import ACCEPTED, FALSE
from foresail.selfservice.schedules.rules import DIALECT, ZONE

_KIND = NON_ADMIN_SCHEDULE


def pause(args: argparse.Namespace) -> int:
    """Pause the selected schedules."""
    return on_namespace(args, lambda cluster: _set_paused(cluster, args, paused=True))


def unpause(args: argparse.Namespace) -> int:
    """Unpause the selected schedules; what spec.skipImmediately says stays unless the option says otherwise."""
    return on_namespace(args, lambda cluster: _set_paused(cluster, args, paused=False))


def delete(args: argparse.Namespace) -> int:
    """Delete the selected schedules, after asking."""
    return on_namespace(args, lambda cluster: _delete(cluster, args))


async def _set_paused(cluster: Cluster, args: argparse.Namespace, *, paused: bool) -> int:
    schedules = await _selected(cluster, args)
    word = "paused" if paused else "unpaused"
    changed = [schedule for schedule in schedules if schedule.row.paused is not paused]
    for schedule in schedules:
        if schedule.row.paused is paused:
            print(f"{_KIND.name} {schedule.key} is already {word}, skip", file=sys.stderr)
    requests = [Request("PATCH", _KIND, schedule.key, _body(schedule, args, paused=paused)) for schedule in changed]
    if are_shown(args, requests):
        return 0
    done = outcome(args, word)
    for request in requests:
        body = await stamped(cluster, request.body or {})
        made = await cluster.merge(request.kind, request.key, body, dry_run=bool(args.dry_run))
        report(args, made, f"{_KIND.name} {request.key} {done}")
    return 0


def _body(schedule: TenantSchedule, args: argparse.Namespace, *, paused: bool) -> dict[str, Any]:
    return {"metadata": {"uid": schedule.row.uid}, **pause_body(paused=paused, skip=args.skip_immediately)}


async def _delete(cluster: Cluster, args: argparse.Namespace) -> int:
    schedules = await _selected(cluster, args)
    if are_shown(args, [Request("DELETE", _KIND, schedule.key) for schedule in schedules]):
        return 0
    confirm(args, (f"{_KIND.name} {schedule.key}" for schedule in schedules))
    done = outcome(args, "deleted", "deleted; its backups stay until they expire")
    for schedule in schedules:
        await cluster.delete(_KIND, schedule.key, schedule.row.uid, dry_run=bool(args.dry_run))
        report(args, schedule.content, f"{_KIND.name} {schedule.key} {done}")
    return 0


async def _selected(cluster: Cluster, args: argparse.Namespace) -> list[TenantSchedule]:
    check_selected(args, _KIND.name)
    return await selected_schedules(cluster, args)


def create(args: argparse.Namespace) -> int:
    """Create a NonAdminSchedule, or print the manifest, which needs no cluster."""
    check_name(NON_ADMIN_SCHEDULE, args.name)
    checked(args.schedule)
    if is_printed(args):
        try:
            settle_namespace(args)
        except CommandError:
            args.namespace = None  # a manifest without one goes where it is applied
        print_object(args, schedule_object(args))
        return 0
    return on_namespace(args, lambda cluster: _create(cluster, args))


def checked(text: str) -> Schedule:
    """Return the schedule that an expression means, or say why it must not be sent."""
    try:
        cron = parse(text, DIALECT, ZONE)
    except CronError as error:
        raise CommandError(f"--schedule: {pointed_out(error)}", f"allowed: {error.allowed}") from None
    if cron.never_fires:
        raise CommandError(f"--schedule: {text!r} never fires: {cron.never_fires}", explain_hint(text))
    if cron.next(now()) is None:
        raise CommandError(f"--schedule: {text!r} has no fire in the next five years", explain_hint(text))
    return cron


def schedule_object(args: argparse.Namespace) -> dict[str, Any]:
    """Return the NonAdminSchedule that the options describe."""
    spec: dict[str, Any] = {"schedule": args.schedule, "template": {"backupSpec": backup_spec(args)}}
    if args.paused:
        spec["paused"] = True
    if args.skip_immediately is not None:
        spec["skipImmediately"] = args.skip_immediately
    kind = {"apiVersion": NON_ADMIN_SCHEDULE.api_version, "kind": NON_ADMIN_SCHEDULE.name}
    return {**kind, "metadata": metadata_of(args), "spec": spec}


async def _create(cluster: Cluster, args: argparse.Namespace) -> int:
    await require(cluster, NON_ADMIN_SCHEDULE, args.namespace)
    body = schedule_object(args)
    await check_kinds(cluster, BACKUPS, {"spec": body["spec"]["template"]})
    key = Key(args.namespace, args.name)
    made = await create_object(cluster, args, NON_ADMIN_SCHEDULE, await stamped(cluster, body))
    if args.dry_run:
        print_object(args, made)
        return 0
    print(f"{NON_ADMIN_SCHEDULE.name} {key} created.{await _answer(cluster, key)}", file=sys.stderr)
    return 0


async def _answer(cluster: Cluster, key: Key) -> str:
    """Return what the operator answers to a new schedule; raise its refusal."""

    async def ask() -> str:
        schedule = decode(await cluster.read(NON_ADMIN_SCHEDULE, key, msgspec.Raw))
        accepted = schedule.row.status.condition(ACCEPTED)
        if accepted is not None and accepted.status == FALSE:
            problem = f"{NON_ADMIN_SCHEDULE.name} {key} was created, but does not run: {accepted.message}"
            raise CommandError(problem, next_step(advice_for(accepted.reason), SCHEDULES, key))
        if schedule.row.paused:
            return " It is paused."
        return f" It runs first at {moment(schedule.next_run, now())}." if schedule.next_run is not None else ""

    command = f"foresail backup schedule explain {key.name} -n {key.namespace}"
    return await answer(ask, f" The operator has not answered yet. See when it runs with {command}")
