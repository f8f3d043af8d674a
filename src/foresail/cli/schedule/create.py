"""`foresail schedule create`: a Schedule that is known to be valid and to fire before it is sent."""

import argparse
import sys
from datetime import datetime
from typing import Any

import msgspec

from foresail.api import velero
from foresail.cli.access.cluster import Cluster, on_cluster
from foresail.cli.cron.words import explain_hint, pointed_out
from foresail.cli.errors import CommandError
from foresail.cli.options.selectors import read_selector
from foresail.cli.options.values import metadata_of, read_list, read_ordered, spelled
from foresail.cli.output.messages import hint
from foresail.cli.output.words import go_duration, moment
from foresail.cli.schedule.arguments import DURATIONS, LISTS, SWITCHES
from foresail.cli.schedule.hints import who_fires
from foresail.cli.schedule.snapshot import (
    EvaluatedSchedule,
    NamespaceSnapshot,
    evaluate,
    read_namespace,
    read_policies,
    row_of,
    settings_of,
)
from foresail.cli.verbs import is_printed, print_name, print_object
from foresail.cron import CronError, Dialect, Schedule, parse
from foresail.cron.duration import nanoseconds
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.schedules.expression import diff_dialects
from foresail.schedules.observe import VeleroServer, location_of
from foresail.schedules.rules import LONGEST_NAME

_OLD = ("include_resources", "exclude_resources", "include_cluster_resources")
_NEW = (
    "include_cluster_scoped_resources",
    "exclude_cluster_scoped_resources",
    "include_namespace_scoped_resources",
    "exclude_namespace_scoped_resources",
)


def schedule_object(args: argparse.Namespace) -> dict[str, Any]:
    """Return the Schedule that the options describe."""
    if len(args.name) > LONGEST_NAME:
        problem = f"Schedule {args.name}: the name has {len(args.name)} characters, and its Backups carry it in a label"
        raise CommandError(problem, f"choose a name with at most {LONGEST_NAME} characters")
    spec: dict[str, Any] = {"schedule": args.schedule, "template": template_of(args)}
    spec["useOwnerReferencesInBackup"] = args.use_owner_references_in_backup
    if args.paused:
        spec["paused"] = True
    if args.skip_immediately is not None:
        spec["skipImmediately"] = args.skip_immediately
    return {
        "apiVersion": velero.SCHEDULE.api_version,
        "kind": velero.SCHEDULE.name,
        "metadata": metadata_of(args),
        "spec": spec,
    }


def template_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the template of Backups; fields that Velero's command line always writes are written here too."""
    _refuse_contradictions(args)
    policy = args.resource_policies_configmap
    files = args.parallel_files_upload
    others = (args.or_selector or "").split(" or ")
    given = {
        **{field: read_list(getattr(args, option)) for option, field in LISTS.items()},
        "labelSelector": read_selector(args.selector or ""),
        "orLabelSelectors": [read_selector(selector) for selector in others if selector],
        "orderedResources": read_ordered(args.ordered_resources or ""),
        "resourcePolicy": {"kind": "configmap", "name": policy} if policy else None,
        "uploaderConfig": {"parallelFilesUpload": files} if files > 0 else None,
        "storageLocation": args.storage_location,
        "datamover": args.data_mover,
    }
    switches = {field: getattr(args, option) for option, field in SWITCHES.items()}
    return {
        "hooks": {},
        "metadata": {},
        "includedNamespaces": ["*"],
        **{field: value for field, value in given.items() if value},
        **{field: value for field, value in switches.items() if value is not None},
        **{field: _duration(getattr(args, option), option) for option, field in DURATIONS.items()},
    }


def _refuse_contradictions(args: argparse.Namespace) -> None:
    if args.selector and args.or_selector:
        raise CommandError("--selector and --or-selector cannot be combined", "specify one of them")
    old = [option for option in _OLD if getattr(args, option) is not None]
    new = [option for option in _NEW if getattr(args, option) is not None]
    if old and new:
        first, second = (spelled(options[0]) for options in (old, new))
        hint = "use the four options for cluster-scoped and namespace-scoped resources, or the three others"
        raise CommandError(f"{first} and {second} cannot be combined", hint)
    both = set(read_list(args.include_namespaces)) & set(read_list(args.exclude_namespaces))
    if both:
        raise CommandError(f"namespaces both included and excluded: {', '.join(sorted(both))}", "list each once")


def _duration(text: str, option: str) -> str:
    length = nanoseconds(text)
    if length is None:
        raise CommandError(f"{spelled(option)}: {text!r} is not a duration", "write 72h, 90m or 1h30m")
    return go_duration(length)


def create(args: argparse.Namespace) -> int:
    """Create a Schedule, or print the manifest, which needs no cluster."""
    body = schedule_object(args)
    if is_printed(args):
        _check_offline(args)
        print_object(args, body)
        return 0
    return on_cluster(args, lambda cluster: _create(cluster, args, body))


def _check_offline(args: argparse.Namespace) -> None:
    """Check the expression without a cluster; where the two dialects differ, print a hint."""
    zone = settings_of(args).zone
    instant = now()
    dialect = Dialect(args.velero_dialect) if args.velero_dialect else None
    if dialect is None and diff_dialects(args.schedule, zone, instant) is not None:
        hint(f"{_two_meanings(args.schedule)}: check it with foresail cron diff-dialects, or use --velero-dialect")
        return
    checked(args.schedule, VeleroServer(dialect), zone, instant)


async def _create(cluster: Cluster, args: argparse.Namespace, body: dict[str, Any]) -> int:
    instant = now()
    policies = await read_policies(cluster)
    known = await read_namespace(cluster, args.namespace, args, instant, policies)
    checked(args.schedule, known.server, settings_of(args).zone, instant)
    await _check_locations(cluster, args, known)
    key = Key(args.namespace, args.name)
    made = await cluster.create(velero.SCHEDULE, key, body, dry_run=bool(args.dry_run))
    if args.dry_run:
        print_object(args, made)
        print(f'Schedule "{args.name}" would be created (server dry run).', file=sys.stderr)
        return 0
    print_name(args, made)
    evaluated = evaluate(row_of(made), msgspec.json.decode(made, type=dict[str, Any]), known, instant)
    print(f'Schedule "{args.name}" created successfully.{first_run(evaluated, instant)}', file=sys.stderr)
    text = who_fires(
        args.namespace, has_schedule_controller=known.server.has_schedule_controller, operator=known.operator
    )
    if text:
        hint(text)
    return 0


def first_run(evaluated: EvaluatedSchedule, instant: datetime) -> str:
    """Return when a new Schedule runs first, with the zone, spread and windows of its policy, or why it does not."""
    because = evaluated.blocked_by
    first = evaluated.verdict.starts
    if because is not None:
        return f" It does not run: {because.message}"
    policy = f", by SchedulePolicy {evaluated.view.policy.name}" if evaluated.view.policy else ""
    return f" It runs first at {moment(first, instant)}{policy}." if first else ""


def checked(text: str, server: VeleroServer, zone: str, instant: datetime) -> Schedule:
    """Return the schedule that the cluster's Velero will read, or say why it must not be sent."""
    if server.dialect is None:
        difference = diff_dialects(text, zone, instant)
        if difference is not None:
            problem = f"{_two_meanings(text)} ({difference.change.value}), and the version of this Velero is unknown"
            raise CommandError(problem, "specify --velero-dialect")
    try:
        cron = parse(text, server.dialect or Dialect.ROBFIG, zone)
    except CronError as error:
        raise CommandError(f"--schedule: {pointed_out(error)}", f"allowed: {error.allowed}") from None
    if cron.never_fires:
        raise CommandError(f"--schedule: {text!r} never fires: {cron.never_fires}", explain_hint(text))
    if cron.next(instant) is None:
        problem = f"--schedule: {text!r} has no fire in the next five years, the limit of Velero's search"
        raise CommandError(problem, explain_hint(text))
    return cron


def _two_meanings(text: str) -> str:
    return f"{text!r} has different meanings for Velero up to 1.18.2 and from 1.18.3 on"


async def _check_locations(cluster: Cluster, args: argparse.Namespace, known: NamespaceSnapshot) -> None:
    name = args.storage_location
    if name and location_of(name, known.locations) is None:
        there = ", ".join(sorted(location.key.name for location in known.locations)) or "none"
        raise CommandError(f"BackupStorageLocation {args.namespace}/{name} does not exist", f"existing: {there}")
    for location in read_list(args.volume_snapshot_locations):
        await cluster.read(velero.VOLUME_SNAPSHOT_LOCATION, Key(args.namespace, location), msgspec.Raw)
