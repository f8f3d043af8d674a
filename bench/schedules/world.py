"""A cluster full of Schedules, and a stopwatch at its Backups."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

from bench.arrivals import Arrivals
from bench.operator import NAMESPACE
from bench.writing import create_all
from foresail.api import velero
from foresail.kube.client import address
from foresail.kube.clock import now
from foresail.plan import Key
from testbed import Cluster, Options, TestbedError
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
    keys = (Key(NAMESPACE, f"s-{number:05}") for number in range(count))
    create_all(cluster, velero.SCHEDULE, ((key, schedule(key.name, text)) for key in keys))


def delete_backups(cluster: Cluster) -> None:
    """Delete all Backups, as nobody would on a real cluster: nothing is stored of them.

    Ten thousand at once take the API server longer than a request may take, so it is asked until none is left.
    """
    path = address(velero.BACKUP, NAMESPACE)
    while json.loads(cluster.kubectl("get", "--raw", f"{path}?limit=1"))["items"]:
        with suppress(TestbedError):
            cluster.kubectl("delete", "--raw", path)


def next_tick(minutes: int) -> datetime:
    """Return the next instant at which `*/minutes * * * *` fires."""
    tick = now().replace(second=0, microsecond=0) + timedelta(minutes=1)
    return tick + timedelta(minutes=-tick.minute % minutes)


def arrivals_of_backups(cluster: Cluster) -> Arrivals:
    """Return a stopwatch at Backups."""
    return Arrivals(cluster, velero.BACKUP, NAMESPACE)
