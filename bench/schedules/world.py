"""A cluster full of Schedules, and a stopwatch at its Backups."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self

import msgspec

from bench import MeasurementError
from foresail.api import velero
from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.kube.connect import connect
from foresail.kube.failures import Cause, Failure
from foresail.kube.lines import Lines
from foresail.kube.server import Stream
from foresail.plan import Key
from testbed import Cluster, Options
from tests.cluster import operators

NAMESPACE = "velero"
ACCOUNT = "foresail"
BACKUP_CONTROLLERS = (
    "backup-queue",
    "backup",
    "backup-operations",
    "backup-deletion",
    "backup-finalizer",
    "backup-sync",
    "gc",
)
AT_ONCE = 64


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

    async def create(client: Client, key: Key) -> Failure | None:
        made = await client.create(velero.SCHEDULE, key, schedule(key.name, text), msgspec.Raw)
        return made if isinstance(made, Failure) else None

    _for_each(cluster, _names(count), create)


def reword_schedules(cluster: Cluster, count: int, text: str) -> None:
    """Give so many Schedules another expression."""

    async def reword(client: Client, key: Key) -> Failure | None:
        made = await client.merge(velero.SCHEDULE, key, {"spec": {"schedule": text}}, msgspec.Raw)
        return made if isinstance(made, Failure) else None

    _for_each(cluster, _names(count), reword)


def delete_backups(cluster: Cluster) -> None:
    """Delete all Backups, as nobody would on a real cluster: nothing is stored of them."""

    async def delete(client: Client, key: Key) -> Failure | None:
        return await client.delete(velero.BACKUP, key, found[key])

    while found := {
        Key(NAMESPACE, each["name"]): each["uid"]
        for each in (item["metadata"] for item in cluster.get("backups.velero.io", f"--namespace={NAMESPACE}")["items"])
    }:
        _for_each(cluster, list(found), delete)


def _names(count: int) -> list[Key]:
    return [Key(NAMESPACE, f"s-{number:05}") for number in range(count)]


def _for_each(cluster: Cluster, keys: list[Key], do: Callable[[Client, Key], Awaitable[Failure | None]]) -> None:
    """Send a request about each of many objects, many at once."""

    async def run() -> None:
        async with Client(await connect(str(cluster.kubeconfig)), at_once=AT_ONCE) as client:

            async def one(key: Key) -> None:
                failure = await do(client, key)
                if failure is not None and failure.cause is not Cause.CONFLICT:
                    raise MeasurementError(f"{key}: {failure}")

            await asyncio.gather(*(one(key) for key in keys))

    asyncio.run(run())


def next_tick(minutes: int) -> datetime:
    """Return the next instant at which `*/minutes * * * *` fires."""
    tick = now().replace(second=0, microsecond=0) + timedelta(minutes=1)
    return tick + timedelta(minutes=-tick.minute % minutes)


class _Metadata(msgspec.Struct):
    name: str


class _Object(msgspec.Struct):
    metadata: _Metadata


class _Event(msgspec.Struct):
    type: str
    object: _Object


@dataclass
class Arrivals:
    """Watches Backups and notes when each was there, until the block ends; in a thread of its own."""

    cluster: Cluster
    seen: dict[str, datetime] = field(default_factory=dict)
    _open: threading.Event = field(default_factory=threading.Event)
    _end: asyncio.Event | None = None
    _loop: asyncio.AbstractEventLoop | None = None
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._thread.start()
        if not self._open.wait(30):
            raise MeasurementError("the watch of Backups does not begin")
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._end is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join()

    def wait(self, count: int, seconds: float) -> None:
        """Return when so many have come."""
        deadline = now() + timedelta(seconds=seconds)
        while len(self.seen) < count:
            if now() > deadline:
                raise MeasurementError(f"only {len(self.seen)} of {count} Backups came within {seconds:g} s")
            threading.Event().wait(0.2)

    def lags(self, tick: datetime) -> list[float]:
        """Return how many seconds after a tick each was there, in order."""
        return sorted((at - tick).total_seconds() for at in self.seen.values())

    async def _run(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        async with Client(await connect(str(self.cluster.kubeconfig))) as client:
            stream = await client.stream(velero.BACKUP, NAMESPACE, {"watch": "true"})
            if isinstance(stream, Failure):
                raise MeasurementError(f"the watch of Backups: {stream}")
            self._open.set()
            async with stream:
                reading = asyncio.create_task(self._read(stream))
                await self._end.wait()
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)

    async def _read(self, stream: Stream) -> None:
        decoder, lines = msgspec.json.Decoder(_Event), Lines()
        while chunk := await stream.read():
            at = now()
            for line in lines.feed(chunk):
                event = decoder.decode(line)
                if event.type == "ADDED":
                    self.seen.setdefault(event.object.metadata.name, at)
