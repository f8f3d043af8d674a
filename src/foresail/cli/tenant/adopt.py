"""`foresail backup adopt`: an administrator gives Velero Backups back to the namespaces that they are of."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.marks import ADOPT
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.options.booleans import CLIENT
from foresail.cli.options.output import is_table
from foresail.cli.options.values import deadline
from foresail.cli.output.messages import hint, interruptible
from foresail.cli.output.objects import document
from foresail.cli.output.table import table
from foresail.cli.tenant.adoptable import Adoptable, Scope, read_adoptable
from foresail.cli.tenant.selection import in_namespace
from foresail.kube.clock import now
from foresail.selfservice.adoption.rules import approval

_AT_ONCE = 16
_PAUSE = 2.0
_HEADER = ("NAMESPACE", "NAME", "RECORD", "MADE FOR", "STATE", "STARTED", "VELERO BACKUP")


def adopt(args: argparse.Namespace) -> int:
    """List what can be adopted, and approve what is selected."""
    return interruptible(lambda: in_namespace(args, lambda cluster, _: _adopt(cluster, args)))


async def _adopt(cluster: Cluster, args: argparse.Namespace) -> int:
    if args.names and (args.all or args.all_namespaces):
        raise CommandError(f"{args.names[0]}: names cannot be combined with --all or -A", "specify one of them")
    until = deadline(args.timeout)
    scope = Scope(args.velero_namespace, args.operator_namespace, args.namespace)
    found = await read_adoptable(cluster, scope, now())
    _print(found, args)
    if not found:
        print("No backups to adopt found", file=sys.stderr)
    if not (args.names or args.all):
        if found:
            hint("to adopt them, name them, or add --all")
        return 0
    selected = select(found, args.names, include_unverified=args.include_unverified)
    if args.dry_run != CLIENT:
        await _approve(cluster, selected, dry_run=bool(args.dry_run))
    said = f" ({args.dry_run} dry run)" if args.dry_run else "; the operator adopts them"
    print(f"{len(selected)} of {len(found)} backups approved{said}", file=sys.stderr)
    left = len(found) - len(selected)
    if left and args.all:
        hint(f"{left} were left out: their names are taken, or their records are unverified (--include-unverified)")
    if args.wait and not args.dry_run:
        await _wait(cluster, scope, selected, until)
    return 0


def select(found: Sequence[Adoptable], names: Sequence[str], *, include_unverified: bool) -> list[Adoptable]:
    """Return the named ones; without names all that are verified, or all."""
    free = [each for each in found if not each.offer.is_name_taken]
    if not names:
        return [each for each in free if each.offer.is_verified or include_unverified]
    selected = [each for each in free if each.view.owner.name in names]
    missing = [name for name in names if name not in {each.view.owner.name for each in selected}]
    if missing:
        raise CommandError(
            f"no backup {missing[0]} can be adopted", "list what can: foresail backup adopt -n NAMESPACE"
        )
    twice = [name for name in names if sum(each.view.owner.name == name for each in selected) > 1]
    if twice:
        problem = f"{twice[0]}: several Velero Backups have this name"
        raise CommandError(problem, "delete those that are not wanted with velero backup delete")
    return selected


async def _approve(cluster: Cluster, selected: Sequence[Adoptable], *, dry_run: bool) -> None:
    turns = asyncio.Semaphore(_AT_ONCE)

    async def send(each: Adoptable) -> None:
        async with turns:
            await cluster.merge(velero.BACKUP, each.view.backup.key, approving(each), dry_run=dry_run)

    await asyncio.gather(*(send(each) for each in selected))


@dataclass(frozen=True, slots=True)
class SeenAdoption:
    """What an administrator has seen of a backup to adopt, and approves."""

    uid: str  # of the Velero Backup
    namespace_uid: str
    record: str


async def approve_one(cluster: Cluster, scope: Scope, name: str, seen: SeenAdoption, at: datetime) -> Adoptable:
    """Approve the adoption of the Velero Backup with that name, if it is still what was seen."""
    chosen = select_one(await read_adoptable(cluster, scope, at), name, seen)
    await _approve(cluster, [chosen], dry_run=False)
    return chosen


def select_one(found: Sequence[Adoptable], name: str, seen: SeenAdoption) -> Adoptable:
    """Return the one of this very Velero Backup, in this very namespace and with this record."""
    for each in found:
        if (each.view.backup.key.name, each.view.backup.uid) != (name, seen.uid) or each.offer.is_name_taken:
            continue
        if each.namespace.uid != seen.namespace_uid:
            problem = f"namespace {each.view.owner.namespace} is another one than you have seen"
            raise CommandError(f"Velero Backup {name}: {problem}", "check who owns it now, then approve again")
        if each.record != seen.record:
            problem = f"its record is {each.record} now, and was not when you saw it"
            raise CommandError(f"Velero Backup {name}: {problem}", "check it with foresail backup adopt -A")
        return each
    raise CommandError(f"Velero Backup {name} cannot be adopted", "list what can: foresail backup adopt -A")


def approving(each: Adoptable) -> dict[str, Any]:
    """Return the write that approves one adoption, of this very object."""
    uid = each.view.backup.uid
    return {"metadata": {"uid": uid, "annotations": {ADOPT: approval(uid, each.namespace.uid)}}}


async def _wait(cluster: Cluster, scope: Scope, selected: Sequence[Adoptable], until: datetime | None) -> None:
    names = {each.view.backup.key for each in selected}
    while True:
        left = names & {each.view.backup.key for each in await read_adoptable(cluster, scope, now())}
        if not left:
            print(f"{len(names)} backups adopted", file=sys.stderr)
            return
        if until is not None and now() >= until:
            problem = f"{len(left)} of {len(names)} backups are not adopted yet"
            raise CommandError(problem, "see why: foresail doctor; kubectl get events -A")
        await asyncio.sleep(_PAUSE)


def _print(found: Sequence[Adoptable], args: argparse.Namespace) -> None:
    if not is_table(args.output):
        print(document([as_data(each) for each in found], args.output))
    elif found:
        print(table(_HEADER, [row(each) for each in found]))


def row(each: Adoptable) -> tuple[str, ...]:
    """Return what the table shows of one."""
    owner, started = each.view.owner, each.started
    when = stamp(started) if started is not None else "n/a"
    return (owner.namespace, owner.name, each.record, each.made_for, each.state, when, each.view.backup.key.name)


def as_data(each: Adoptable) -> dict[str, str]:
    """Return one for programs to read."""
    names = ("namespace", "name", "record", "madeFor", "state", "started", "veleroBackup")
    return dict(zip(names, row(each), strict=True))
