"""A cluster full of Schedules, and a stopwatch at its Backups."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from bench.arrivals import Arrivals, Event
from bench.operator import NAMESPACE
from bench.writing import create_all, write_all
from foresail.api import velero
from foresail.api.instants import stamp
from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.plan import Key
from testbed import Cluster, Options
from tests.cluster import operators

BACKUP_CONTROLLERS = (
    "backup-queue",
    "backup",
    "backup-operations",
    "backup-deletion",
    "backup-finalizer",
    "backup-sync",
    "gc",
)


@contextmanager
def world(*, audit: bool = False) -> Iterator[Cluster]:
    """Bring up a cluster with Velero, all of whose controllers around Backups are off, and our chart's permissions."""
    name = f"bench-schedules-{os.getpid()}"
    with Cluster.create(name, Options(velero="velero", audit=audit), owned=True) as cluster:
        cluster.restart_velero("schedule", *BACKUP_CONTROLLERS)
        operators.install(cluster)
        yield cluster


def schedule(name: str, text: str) -> dict[str, Any]:
    """Return a Schedule as `velero schedule create` would make it."""
    return {
        "apiVersion": velero.SCHEDULE.api_version,
        "kind": velero.SCHEDULE.name,
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"team": "measured"}},
        "spec": {
            "schedule": text,
            "useOwnerReferencesInBackup": False,
            "template": {
                "includedNamespaces": ["default"],
                "ttl": "720h0m0s",
                "csiSnapshotTimeout": "0s",
                "itemOperationTimeout": "0s",
                "hooks": {},
                "metadata": {},
            },
        },
    }


def create_schedules(cluster: Cluster, count: int, text: str) -> None:
    """Create so many Schedules with the same expression."""
    create_all(cluster, velero.SCHEDULE, ((key, schedule(key.name, text)) for key in _names(count)))


def reword_schedules(cluster: Cluster, count: int, text: str) -> None:
    """Give so many Schedules another expression."""
    body = {"spec": {"schedule": text}}
    write_all(
        cluster,
        (partial(Client.merge, kind=velero.SCHEDULE, key=key, body=body, of=msgspec.Raw) for key in _names(count)),
    )


def delete_backups(cluster: Cluster) -> None:
    """Delete all Backups, as nobody would on a real cluster: nothing is stored of them."""
    while found := cluster.get("backups.velero.io", f"--namespace={NAMESPACE}")["items"]:
        metas = [each["metadata"] for each in found]
        write_all(
            cluster,
            (
                partial(Client.delete, kind=velero.BACKUP, key=Key(NAMESPACE, each["name"]), uid=each["uid"])
                for each in metas
            ),
        )


def _names(count: int) -> list[Key]:
    return [Key(NAMESPACE, f"s-{number:05}") for number in range(count)]


def next_tick(minutes: int) -> datetime:
    """Return the next instant at which `*/minutes * * * *` fires."""
    tick = now().replace(second=0, microsecond=0) + timedelta(minutes=1)
    return tick + timedelta(minutes=-tick.minute % minutes)


def arrivals_of_backups(cluster: Cluster) -> Arrivals:
    """Return a stopwatch at Backups."""
    return Arrivals(cluster, velero.BACKUP, NAMESPACE)


class _Status(msgspec.Struct, rename="camel"):
    last_backup: str = ""


def arrivals_of_last_backups(cluster: Cluster, since: datetime) -> Arrivals:
    """Return a stopwatch at Schedules that say they ran, for a slot that is not older than this."""
    decoder, oldest = msgspec.json.Decoder(_Status), stamp(since)

    def said(event: Event) -> str | None:
        return event.object.metadata.name if decoder.decode(event.object.status).last_backup >= oldest else None

    return Arrivals(cluster, velero.SCHEDULE, NAMESPACE, note=said)
