"""`foresail backup adopt`: an administrator gives Velero Backups back to the namespaces that they are of."""

import argparse
import asyncio
import hashlib
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
from foresail.cli.options.parser import CLIENT
from foresail.cli.options.shared import is_table
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
_DIGEST = 10
_HEADER = ("NAMESPACE", "NAME", "RECORD", "MADE FOR", "STATE", "STARTED", "VELERO BACKUP")


def adopt(args: argparse.Namespace) -> int:
    """List what can be adopted, and approve what is selected."""
    return interruptible(lambda: in_namespace(args, lambda cluster, _: _adopt(cluster, args)))


async def _adopt(cluster: Cluster, args: argparse.Namespace) -> int:
    if args.names and (args.approve or args.all_namespaces):
        raise CommandError(f"{args.names[0]}: names cannot be combined with --approve or -A", "specify one of them")
    until = deadline(args.timeout)
    scope = Scope(args.velero_namespace, args.operator_namespace, args.namespace)
    listed = await read_adoptable(cluster, scope, now())
    _print(listed, args)
    if not listed:
        print("No backups to adopt found", file=sys.stderr)
    if not (args.names or args.approve):
        _propose(listed, args)
        return 0
    selected = named(listed, args.names) if args.names else seen(listed, args.approve)
    if args.dry_run != CLIENT:
        await _approve(cluster, selected, dry_run=bool(args.dry_run))
    said = f" ({args.dry_run} dry run)" if args.dry_run else "; the operator adopts them"
    print(f"{len(selected)} of {len(listed)} backups approved{said}", file=sys.stderr)
    if args.wait and not args.dry_run:
        await _wait(cluster, scope, selected, until)
    return 0


def _propose(listed: Sequence[Adoptable], args: argparse.Namespace) -> None:
    """Print the command that adopts what was listed, and nothing that comes later."""
    selected = adoptable(listed, include_unverified=args.include_unverified)
    sys.stdout.flush()  # the list comes first, also in a file that takes both
    if selected:
        where = "-A" if args.all_namespaces else f"-n {args.namespace}"
        command = f"foresail backup adopt {where} --approve {list_digest(selected)}"
        hint(f"to adopt {len(selected)} of {len(listed)}: {command}")
    left = len(listed) - len(selected)
    if left:
        hint(f"not offered, because the name is taken or the record unverified (--include-unverified): {left}")


def adoptable(listed: Sequence[Adoptable], *, include_unverified: bool) -> list[Adoptable]:
    """Return those whose name is free and whose record is verified, or any if asked for."""
    return [one for one in listed if not one.offer.is_name_taken and (one.offer.is_verified or include_unverified)]


def list_digest(selected: Sequence[Adoptable]) -> str:
    """Return the digest of a list, by which a person approves what they saw: these backups for these namespaces."""
    lines = sorted(f"{one.view.backup.uid} {one.namespace.uid} {one.record}" for one in selected)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:_DIGEST]


def seen(listed: Sequence[Adoptable], digest: str) -> list[Adoptable]:
    """Return the list with that digest, if it is still the one that would be adopted."""
    for include_unverified in (False, True):
        selected = adoptable(listed, include_unverified=include_unverified)
        if list_digest(selected) == digest:
            return selected
    raise CommandError(
        f"the list {digest} is not what can be adopted now", "list again, and approve the digest that is printed"
    )


def named(listed: Sequence[Adoptable], names: Sequence[str]) -> list[Adoptable]:
    """Return the backups with these names, verified or not."""
    selected = [one for one in listed if not one.offer.is_name_taken and one.view.owner.name in names]
    missing = [name for name in names if name not in {one.view.owner.name for one in selected}]
    if missing:
        raise CommandError(
            f"no backup {missing[0]} can be adopted", "list what can: foresail backup adopt -n NAMESPACE"
        )
    twice = [name for name in names if sum(one.view.owner.name == name for one in selected) > 1]
    if twice:
        problem = f"{twice[0]}: several Velero Backups have this name"
        raise CommandError(problem, "delete those that are not wanted with velero backup delete")
    return selected


async def _approve(cluster: Cluster, selected: Sequence[Adoptable], *, dry_run: bool) -> None:
    turns = asyncio.Semaphore(_AT_ONCE)

    async def send(adoptable: Adoptable) -> None:
        async with turns:
            await cluster.merge(velero.BACKUP, adoptable.view.backup.key, approving(adoptable), dry_run=dry_run)

    await asyncio.gather(*(send(adoptable) for adoptable in selected))


@dataclass(frozen=True, slots=True)
class SeenAdoption:
    """What an administrator has seen of a backup to adopt, and approves."""

    uid: str  # of the Velero Backup
    namespace_uid: str
    record: str


def select_one(adoptables: Sequence[Adoptable], name: str, seen: SeenAdoption) -> Adoptable:
    """Return the one of this very Velero Backup, in this very namespace and with this record."""
    for adoptable in adoptables:
        backup = adoptable.view.backup
        if backup.key.name != name or backup.uid != seen.uid or adoptable.offer.is_name_taken:
            continue
        if adoptable.namespace.uid != seen.namespace_uid:
            problem = f"namespace {adoptable.view.owner.namespace} is another one than you have seen"
            raise CommandError(f"Velero Backup {name}: {problem}", "check who owns it now, then approve again")
        if adoptable.record != seen.record:
            problem = f"its record is {adoptable.record} now, and was not when you saw it"
            raise CommandError(f"Velero Backup {name}: {problem}", "check it with foresail backup adopt -A")
        return adoptable
    raise CommandError(f"Velero Backup {name} cannot be adopted", "list what can: foresail backup adopt -A")


def approving(adoptable: Adoptable) -> dict[str, Any]:
    """Return the write that approves one adoption, of this very object."""
    uid = adoptable.view.backup.uid
    return {"metadata": {"uid": uid, "annotations": {ADOPT: approval(uid, adoptable.namespace.uid)}}}


async def _wait(cluster: Cluster, scope: Scope, selected: Sequence[Adoptable], until: datetime | None) -> None:
    names = {adoptable.view.backup.key for adoptable in selected}
    while True:
        left = names & {adoptable.view.backup.key for adoptable in await read_adoptable(cluster, scope, now())}
        if not left:
            print(f"{len(names)} backups adopted", file=sys.stderr)
            return
        if until is not None and now() >= until:
            problem = f"{len(left)} of {len(names)} backups are not adopted yet"
            raise CommandError(problem, "see why: foresail doctor; kubectl get events -A")
        await asyncio.sleep(_PAUSE)


def _print(adoptables: Sequence[Adoptable], args: argparse.Namespace) -> None:
    if not is_table(args.output):
        print(document([as_data(adoptable) for adoptable in adoptables], args.output))
    elif adoptables:
        print(table(_HEADER, [row(adoptable) for adoptable in adoptables]))


def row(adoptable: Adoptable) -> tuple[str, ...]:
    """Return what the table shows of one."""
    owner = adoptable.view.owner
    started = adoptable.started
    when = stamp(started) if started is not None else "n/a"
    return (
        owner.namespace,
        owner.name,
        adoptable.record,
        adoptable.made_for,
        adoptable.state,
        when,
        adoptable.view.backup.key.name,
    )


def as_data(adoptable: Adoptable) -> dict[str, str]:
    """Return one for programs to read."""
    names = ("namespace", "name", "record", "madeFor", "state", "started", "veleroBackup")
    return dict(zip(names, row(adoptable), strict=True))
