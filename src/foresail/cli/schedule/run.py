"""`foresail schedule run`: a Backup from a Schedule now, as `velero backup create --from-schedule` makes it."""

import argparse
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from foresail.api import mirrored, velero
from foresail.api.core import NAMESPACE
from foresail.api.metadata import Named
from foresail.cli.access.cluster import Cluster, on_cluster
from foresail.cli.errors import CommandError
from foresail.cli.options.shared import is_table
from foresail.cli.options.values import read_pairs
from foresail.cli.output.messages import hint, interruptible
from foresail.cli.output.objects import Request, as_text
from foresail.cli.output.progress import Bar, Status, ended
from foresail.cli.output.words import Transfer, transfer_of
from foresail.cli.schedule.snapshot import row_of
from foresail.cli.verbs import are_shown, print_object
from foresail.kube.clock import now
from foresail.plan import Key, Kind
from foresail.schedules.build import backup_body
from foresail.schedules.observe import ScheduleRow, backup_row, is_unfinished
from foresail.schedules.settings import Settings
from foresail.schedules.slots import backup_name
from foresail.selfservice.rows.velero import movement_row, movements

_EVERY = timedelta(seconds=5)
_KINDS = (velero.DATA_UPLOAD, velero.POD_VOLUME_BACKUP)


class VolumeData:
    """Reads how far the data of one Backup is, seldom enough to follow it for hours."""

    def __init__(self, cluster: Cluster, backup: Key) -> None:
        self._cluster = cluster
        self._backup = backup
        self._kinds = list(_KINDS)
        self._known: Transfer | None = None
        self._read_again: datetime | None = None

    async def transfer(self, phase: str, now: datetime) -> Transfer | None:
        """Return how far the data is; None while nothing is moved, and if the caller may not know."""
        if phase in velero.WAITING or phase in velero.TERMINAL:
            return None
        if self._read_again is None or now >= self._read_again:
            self._read_again = now + _EVERY
            self._known = transfer_of(*[await self._counts(kind) for kind in list(self._kinds)])
        return self._known

    async def _counts(self, kind: Kind) -> dict[str, int]:
        label = velero.BACKUP_NAME_LABEL
        name = velero.label_of(self._backup.name)
        try:
            raws = await self._cluster.listed(kind, self._backup.namespace, f"{label}={name}")
        except CommandError:  # the wait goes on without bytes; what is wrong with the cluster, the next read says
            self._kinds.remove(kind)
            return {}
        rows = [movement_row(msgspec.json.decode(raw, type=mirrored.Movement), label) for raw in raws]
        return dict(movements(rows, with_bytes=True))


def run(args: argparse.Namespace) -> int:
    """Create the Backup and, with --wait, wait until it has ended."""
    text = "Stopped waiting. A Backup that was created continues in the cluster."
    return interruptible(lambda: on_cluster(args, lambda cluster: _run(cluster, args)), text)


def backup_object(
    schedule: ScheduleRow, args: argparse.Namespace, instant: datetime, namespaces: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the Backup: by the rules for scheduled ones, but without a slot."""
    body = backup_body(schedule, Settings(), None, namespaces)
    metadata = body["metadata"]
    assert isinstance(metadata, dict)  # noqa: S101 - as it was built
    name = args.backup_name or name_of(schedule, instant)
    labels = {**metadata["labels"], **read_pairs(args.labels, "--labels")}
    labels[velero.SCHEDULE_LABEL] = schedule.key.name  # this label makes the Schedule busy
    annotations = {**metadata.get("annotations", {}), **read_pairs(args.annotations, "--annotations")}
    noted = {"annotations": annotations} if annotations else {}
    return {
        "apiVersion": velero.BACKUP.api_version,
        "kind": velero.BACKUP.name,
        "metadata": {**metadata, "name": name, "namespace": schedule.key.namespace, "labels": labels, **noted},
        "spec": body["spec"],
    }


def name_of(schedule: ScheduleRow, instant: datetime) -> str:
    """Return a name that is never a slot's, and unlike that of another cluster with the same bucket."""
    return f"{backup_name(schedule, instant)}-run"


async def _run(cluster: Cluster, args: argparse.Namespace) -> int:
    key = Key(args.namespace, args.name)
    schedule = row_of(await cluster.read(velero.SCHEDULE, key, msgspec.Raw))
    instant = now()
    body = backup_object(schedule, args, instant, await namespaces_of(cluster, schedule))
    backup = Key(args.namespace, body["metadata"]["name"])
    if are_shown(args, [Request("POST", velero.BACKUP, backup, body)]):
        return 0
    await _hint_if_busy(cluster, schedule, instant)
    made = await cluster.create(velero.BACKUP, backup, body, dry_run=bool(args.dry_run))
    if args.dry_run:
        print_object(args, made)
        print(f"Backup {backup} would be created (server dry run).", file=sys.stderr)
        return 0
    print(f'Backup request "{backup.name}" submitted successfully.', file=sys.stderr)
    if not is_table(args.output):
        print(as_text([msgspec.json.decode(made, type=dict[str, Any])], args.output), flush=True)
    if not args.wait:
        return 0
    print("Waiting for it to finish; Ctrl-C stops waiting, not the Backup.", file=sys.stderr)
    progress = Bar()
    data = VolumeData(cluster, backup)

    async def show(status: Status) -> None:
        progress.show(status, await data.transfer(status.phase, now()))

    try:
        status = await ended(cluster, backup, show)
    finally:
        progress.close()
    return report_result(backup, status)


async def namespaces_of(cluster: Cluster, schedule: ScheduleRow) -> dict[str, str] | None:
    """Return the UIDs of the namespaces of a ProtectionClass, without which its Backup does not count for them."""
    if not schedule.protection_class:
        return None
    keys = [Key("", name) for name in schedule.included]
    namespaces = [(key.name, await cluster.if_there(NAMESPACE, key, Named)) for key in keys]
    return {name: row.metadata.uid for name, row in namespaces if row is not None}


def report_result(backup: Key, status: Status) -> int:
    """Return 0 if a Backup has completed; otherwise say what became of it."""
    if status.phase == velero.COMPLETED:
        warned = f" with {status.warnings} warnings" if status.warnings else ""
        print(f"Backup {backup} has completed{warned}.", file=sys.stderr)
        return 0
    causes = [*(status.validation_errors or ()), *([status.failure_reason] if status.failure_reason else [])]
    cause = f": {'; '.join(causes)}" if causes else f" with {status.errors} errors"
    raise CommandError(f"Backup {backup} is {status.phase}{cause}", f"see velero backup logs {backup.name}")


async def _hint_if_busy(cluster: Cluster, schedule: ScheduleRow, instant: datetime) -> None:
    label = f"{velero.SCHEDULE_LABEL}={schedule.key.name}"
    for raw in await cluster.listed(velero.BACKUP, schedule.key.namespace, label):
        row = backup_row(msgspec.json.decode(raw, type=velero.Backup))
        if is_unfinished(row, schedule, instant):
            hint(f"Backup {row.key} of this Schedule is {row.phase or 'New'}: Velero may queue the new one")
            return
