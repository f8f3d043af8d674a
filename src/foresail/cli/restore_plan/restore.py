"""`foresail plan --restore`: create the Restore that was planned, and report what it did."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from foresail.api import velero
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.options.booleans import CLIENT
from foresail.cli.options.output import is_table
from foresail.cli.output.messages import confirmed, hint
from foresail.cli.output.objects import as_text
from foresail.cli.output.progress import Bar
from foresail.cli.output.words import counted
from foresail.cli.restore_plan.planning import RestorePlan, report, together
from foresail.cli.restore_plan.velero_files import read_velero_file
from foresail.cli.tenant.files import access_of
from foresail.cli.tenant.names import check_name, restore_name
from foresail.cli.tenant.restored import left_text, restored_text
from foresail.cli.tenant.tenant_request import decode_velero
from foresail.cli.tenant.wait import progress_in_velero
from foresail.plan import Key
from foresail.selfservice.families import RESTORES
from foresail.selfservice.requests.outcome import outcome
from foresail.selfservice.requests.status import TRUE, UNKNOWN, NewCondition
from foresail.selfservice.results.restored import CHANGE_BACK, restored_everywhere

CONTINUES = "Stopped. A Restore that was created continues in the cluster."
"""What Ctrl-C does to a restore."""

_ONLY_WITH_RESTORE = {"--name": "name", "--yes": "confirm", "--dry-run": "dry_run", "--wait": "wait"}
_HAVE_FILES = (velero.COMPLETED, velero.PARTIALLY_FAILED)
_NOTHING = "nothing was restored"
_PAUSE = 0.5


class _Restore(msgspec.Struct):
    status: msgspec.Raw = msgspec.Raw(b"{}")


def check_options(args: argparse.Namespace) -> None:
    """Refuse options that do not go together, and a restore that nobody can confirm."""
    if not args.restore:
        for option, field in _ONLY_WITH_RESTORE.items():
            if getattr(args, field):
                raise UsageError(f"{option} needs --restore", f"add --restore, or leave out {option}")
        return
    if args.as_user:
        problem = "--as cannot be combined with --restore: Velero restores with its own rights"
        raise UsageError(problem, "plan with --as first, then restore without it")
    if args.name:
        check_name(velero.RESTORE, args.name)
    if not (args.confirm or args.dry_run or sys.stdin.isatty()):
        problem = f"refusing to restore without confirmation (no terminal): Backup {args.namespace}/{args.backup}"
        raise UsageError(problem, "add --yes")


def restore_object(args: argparse.Namespace, spec: Mapping[str, Any], instant: datetime) -> dict[str, Any]:
    """Return the Restore that the options describe, named after its backup and the time if no name is given."""
    return {
        "apiVersion": velero.RESTORE.api_version,
        "kind": velero.RESTORE.name,
        "metadata": {"name": args.name or restore_name(args.backup, instant), "namespace": args.namespace},
        "spec": dict(spec),
    }


async def restore(
    cluster: Cluster, args: argparse.Namespace, body: Mapping[str, Any], planned: Callable[[], Awaitable[RestorePlan]]
) -> int:
    """Show the plan, ask, and create the Restore; with --wait, report what it did."""
    key = Key(args.namespace, str(body["metadata"]["name"]))
    form = "yaml" if is_table(args.output) else args.output
    if args.dry_run == CLIENT:
        print(as_text([dict(body)], form))
        return 0
    # Before the plan, which takes minutes: whether the caller may create it, and whether the name is free.
    checked = await cluster.create(velero.RESTORE, key, body, dry_run=True)
    if args.dry_run:
        print(as_text([msgspec.json.decode(checked, type=dict[str, Any])], form), flush=True)
        print(f"Restore {key} would be created (server dry run).", file=sys.stderr)
        return 0
    plan = await planned()
    if report(args, plan):
        raise CommandError(f"{_NOTHING}: --fail-on {args.fail_on}", "correct what the plan lists, or leave it out")
    if not args.confirm:
        _ask(args, key, len(plan.verdicts))
    await cluster.create(velero.RESTORE, key, body)
    print(f"Restore {key} created.", file=sys.stderr)
    if args.wait:
        return await _wait(cluster, args, key)
    print(f"Follow it with velero restore describe {key.name} -n {key.namespace}", file=sys.stderr)
    return 0


def _ask(args: argparse.Namespace, key: Key, items: int) -> None:
    sys.stdout.flush()
    question = f"Restore {counted(items, 'item')} of Backup {args.namespace}/{args.backup} as Restore {key}? [y/N] "
    if not confirmed(question, _NOTHING):
        raise CommandError(_NOTHING)


async def _wait(cluster: Cluster, args: argparse.Namespace, key: Key) -> int:
    """Show the progress until the Restore has ended; return 0 if it has completed, raise its problem if not."""
    ended, phase = await _ended(cluster, key)
    is_complete = ended.status == TRUE
    if is_complete:
        print(f"Restore {key}: {ended.message}", file=sys.stderr)
    if phase in _HAVE_FILES:
        await _tell_what_it_did(cluster, args, key)
    if not is_complete:
        read = f"see velero restore {'logs' if phase in _HAVE_FILES else 'describe'} {key.name} -n {key.namespace}"
        raise CommandError(f"Restore {key}: {ended.message}", read)
    return 0


async def _ended(cluster: Cluster, key: Key) -> tuple[NewCondition, str]:
    """Return how a Restore has ended, and in which phase."""
    progress = Bar()
    try:
        while True:
            status = (await cluster.read(velero.RESTORE, key, _Restore)).status
            reported = decode_velero(status)
            progress.show(progress_in_velero(reported))
            ended = outcome(RESTORES, bytes(status).decode())
            if ended is not None and ended.status != UNKNOWN:
                return ended, reported.phase
            await asyncio.sleep(_PAUSE)
    finally:
        progress.close()


async def _tell_what_it_did(cluster: Cluster, args: argparse.Namespace, key: Key) -> None:
    """Print what a Restore did to each object, and what would change more."""
    access = access_of(args)
    try:
        listed, results = await together(
            read_velero_file(cluster, key, "RestoreResourceList", access),
            read_velero_file(cluster, key, "RestoreResults", access),
        )
    except CommandError as error:
        hint(f"what it did to each object cannot be read: {error.problem}")
        return
    items = restored_everywhere(listed or b"", results or b"{}")
    if items is None:
        hint("what it did to each object cannot be read: Velero's list of restored objects is missing or too large")
        return
    print(restored_text(items), file=sys.stderr)
    if items.left.count and args.existing_resource_policy != "update":
        hint(left_text(items.left.count, f"the same command with {CHANGE_BACK}"))
