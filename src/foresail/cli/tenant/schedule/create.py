"""`foresail backup schedule create`: a schedule that is known to be valid and to fire before it is sent."""

import argparse
import asyncio
import sys
from datetime import timedelta
from typing import Any

import msgspec

from foresail.api.requests import NON_ADMIN_SCHEDULE
from foresail.cli.access.cluster import Cluster, settle_namespace
from foresail.cli.access.self_service import require
from foresail.cli.cron.words import explain_hint, pointed_out
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.options.booleans import CLIENT
from foresail.cli.options.output import is_table
from foresail.cli.options.values import read_pairs
from foresail.cli.output.objects import as_text
from foresail.cli.output.times import moment
from foresail.cli.tenant.advice import advice_for, next_step
from foresail.cli.tenant.kinds import check_kinds
from foresail.cli.tenant.names import advice_for_name, problem_with_name
from foresail.cli.tenant.requester import stamped
from foresail.cli.tenant.schedule.snapshot import SCHEDULES, decode, in_namespace
from foresail.cli.tenant.spec import backup_spec
from foresail.cron import CronError, Schedule, parse
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.requests.status import ACCEPTED, FALSE
from foresail.selfservice.schedules.rules import DIALECT, ZONE

_PATIENCE, _PAUSE = timedelta(seconds=5), 0.25


def create(args: argparse.Namespace) -> int:
    """Create a NonAdminSchedule, or print the manifest, which needs no cluster."""
    problem = problem_with_name(args.name)
    if problem is not None:
        raise UsageError(f"{NON_ADMIN_SCHEDULE.name} {args.name}: {problem}", advice_for_name(args.name))
    checked(args.schedule)
    if args.dry_run == CLIENT or (not args.dry_run and not (is_table(args.output) or args.output == "name")):
        try:
            settle_namespace(args)
        except CommandError:
            args.namespace = None  # a manifest without one goes where it is applied
        print(as_text([schedule_object(args)], "yaml" if is_table(args.output) else args.output))
        return 0
    return in_namespace(args, lambda cluster: _create(cluster, args))


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
    metadata: dict[str, Any] = {"name": args.name}
    if args.namespace is not None:
        metadata["namespace"] = args.namespace
    for field in ("labels", "annotations"):
        pairs = read_pairs(getattr(args, field), f"--{field}")
        if pairs:
            metadata[field] = pairs
    spec: dict[str, Any] = {"schedule": args.schedule, "template": {"backupSpec": backup_spec(args)}}
    if args.paused:
        spec["paused"] = True
    if args.skip_immediately is not None:
        spec["skipImmediately"] = args.skip_immediately
    kind = {"apiVersion": NON_ADMIN_SCHEDULE.api_version, "kind": NON_ADMIN_SCHEDULE.name}
    return {**kind, "metadata": metadata, "spec": spec}


async def _create(cluster: Cluster, args: argparse.Namespace) -> int:
    await require(cluster, NON_ADMIN_SCHEDULE, args.namespace)
    body = schedule_object(args)
    await check_kinds(cluster, BACKUPS, {"spec": body["spec"]["template"]})
    key = Key(args.namespace, args.name)
    made = await cluster.create(NON_ADMIN_SCHEDULE, key, await stamped(cluster, body), dry_run=bool(args.dry_run))
    content = msgspec.json.decode(made, type=dict[str, Any])
    if args.dry_run:
        print(as_text([content], "yaml" if is_table(args.output) else args.output), flush=True)
        print(f"{NON_ADMIN_SCHEDULE.name} {key} would be created (server dry run).", file=sys.stderr)
        return 0
    if args.output == "name":
        print(as_text([content], "name"), flush=True)
    print(f"{NON_ADMIN_SCHEDULE.name} {key} created.{await _answer(cluster, key)}", file=sys.stderr)
    return 0


async def _answer(cluster: Cluster, key: Key) -> str:
    """Return what the operator answers to a new schedule; raise its refusal."""
    until = now() + _PATIENCE
    while now() < until:
        schedule = decode(await cluster.read(NON_ADMIN_SCHEDULE, key, msgspec.Raw))
        accepted = schedule.row.status.condition(ACCEPTED)
        if accepted is not None and accepted.status == FALSE:
            problem = f"{NON_ADMIN_SCHEDULE.name} {key} was created, but does not run: {accepted.message}"
            raise CommandError(problem, next_step(advice_for(accepted.reason), SCHEDULES, key))
        if schedule.row.paused:
            return " It is paused."
        if schedule.next_run is not None:
            return f" It runs first at {moment(schedule.next_run, now())}."
        await asyncio.sleep(_PAUSE)
    command = f"foresail backup schedule explain {key.name} -n {key.namespace}"
    return f" The operator has not answered yet. See when it runs with {command}"
