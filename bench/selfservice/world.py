"""A cluster on which tenants ask for backups, and where nobody makes them: Velero is down, and its words are ours."""

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from bench import MeasurementError
from bench.operator import NAMESPACE
from bench.reading import everything
from bench.writing import create_all
from foresail.api import velero
from foresail.api.core import NAMESPACE as NAMESPACES
from foresail.api.nonadmin import NON_ADMIN_BACKUP
from foresail.api.policy import OPT_IN_LABEL, OPT_IN_VALUE, SELF_SERVICE_POLICY
from foresail.kube.client import Client
from foresail.kube.connect import connect
from foresail.kube.failures import Failure
from foresail.plan import Body, Key
from foresail.selfservice.families import BACKUPS
from testbed import Cluster, Options
from testbed.control_plane import CONTROLLER_MANAGER
from testbed.velero import VELERO
from tests.cluster import tenants

FLAGS = ("--schedules=false", "--self-service", "--self-service-window=0", "--self-service-restore-window=0")
"""With the queue before Velero off: these measure the operator alone."""

TENANTS = 100


@contextmanager
def world(*, audit: bool = False, saves_memory: bool = False) -> Iterator[Cluster]:
    """Bring up a cluster with both charts, a policy without quotas, and no Velero that would take part."""
    name = f"bench-selfservice-{os.getpid()}"
    options = Options(velero="velero", audit=audit, saves_memory=saves_memory)
    with Cluster.create(name, options, owned=True) as cluster:
        cluster.fault.kill(VELERO)
        tenants.install(cluster)
        install_policy(cluster)
        # Nothing here needs it any more, and its garbage collector would read along on the same two cores.
        cluster.fault.kill(CONTROLLER_MANAGER)
        yield cluster


def install_policy(
    cluster: Cluster, name: str = "measured", labels: Mapping[str, str] | None = None, **spec: object
) -> None:
    """Create a policy without quotas, for every namespace that may back up or for those with these labels."""
    selector = {"matchLabels": labels or {OPT_IN_LABEL: OPT_IN_VALUE}}
    body = {"namespaceSelector": selector, **spec}
    cluster.apply(_object(SELF_SERVICE_POLICY.api_version, SELF_SERVICE_POLICY.name, Key("", name), body))


def create_namespaces(cluster: Cluster, names: Iterable[str]) -> None:
    """Create namespaces whose tenants may back up."""
    labels = {OPT_IN_LABEL: OPT_IN_VALUE}
    bodies = (
        (Key("", name), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        for name in names
    )
    create_all(cluster, NAMESPACES, bodies)


def tenant(number: int) -> str:
    """Return the namespace of the request with that number."""
    return f"tenant-{number % TENANTS:03}"


def request(namespace: str, name: str) -> tuple[Key, Body]:
    """Return a NonAdminBackup that asks for the whole namespace."""
    key = Key(namespace, name)
    return key, _object(NON_ADMIN_BACKUP.api_version, NON_ADMIN_BACKUP.name, key, {"backupSpec": {}})


def requests(count: int) -> list[tuple[Key, Body]]:
    """Return so many of them, spread over all tenants."""
    return [request(tenant(number), f"nab-{number:05}") for number in range(count)]


class _Metadata(msgspec.Struct):
    name: str
    annotations: dict[str, str] = {}


class _QueueInfo(msgspec.Struct, rename="camel"):
    estimated_queue_position: int = 0


class _Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    queue_info: _QueueInfo = msgspec.field(default_factory=_QueueInfo)


class _Found(msgspec.Struct):
    metadata: _Metadata
    status: _Status = msgspec.field(default_factory=_Status)


async def in_line(client: Client) -> list[tuple[str, str]]:
    """Return each request that waits, and its Velero Backup, in the order of the positions that tenants are shown."""
    found, _ = await everything(client, NON_ADMIN_BACKUP, _Found)
    backups, _ = await everything(client, velero.BACKUP, _Found, namespace=NAMESPACE)
    made = {each.metadata.annotations[BACKUPS.origin_name]: each.metadata.name for each in backups}
    waiting = sorted((each.status.queue_info.estimated_queue_position, each.metadata.name) for each in found)
    return [(name, made[name]) for position, name in waiting if position]


async def velero_says(client: Client, backup: str, status: Mapping[str, Any]) -> None:
    """Write into the status of a Velero Backup, as Velero would."""
    answer = await client.merge(velero.BACKUP, Key(NAMESPACE, backup), {"status": status}, msgspec.Raw)
    if isinstance(answer, Failure):
        raise MeasurementError(f"Backup {backup}: {answer}")


@contextmanager
def administrator(cluster: Cluster) -> Iterator[tuple[asyncio.Runner, Client]]:
    """Give the administrator's client, and the event loop that it lives in."""

    async def made() -> Client:
        return Client(await connect(str(cluster.kubeconfig)))

    with asyncio.Runner() as runner:
        client = runner.run(made())
        try:
            yield runner, client
        finally:
            runner.run(client.close())


def _object(api_version: str, kind: str, key: Key, spec: Body) -> dict[str, Any]:
    place = {"namespace": key.namespace} if key.namespace else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": key.name, **place}, "spec": spec}
