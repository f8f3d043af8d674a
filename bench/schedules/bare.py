"""The bare limit: a Backup and a patch for each Schedule in a plain loop, with the controller's watches drained.

python -m bench.schedules.bare KUBECONFIG prints the instant at which the first write was sent.
"""

import asyncio
import sys
from collections.abc import Iterator
from datetime import datetime

import msgspec

from bench import MeasurementError
from bench.schedules.world import NAMESPACE
from foresail.api import velero
from foresail.api.instants import stamp, whole
from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.kube.connect import connect
from foresail.kube.failures import Failure
from foresail.kube.loop import WORKERS
from foresail.kube.server import Stream
from foresail.plan import Body, Create, Kind
from foresail.schedules.build import create_backup
from foresail.schedules.controller import Schedules
from foresail.schedules.observe import ScheduleRow, Settings, schedule_row


class _List(msgspec.Struct):
    items: list[velero.Schedule]


def _bodies(row: ScheduleRow, slot: datetime) -> tuple[Create, Body, Body]:
    create = create_backup(row, slot, Settings())
    metadata = create.body["metadata"]
    assert isinstance(metadata, dict)  # noqa: S101 - for the type checker
    named = {**metadata, "name": create.key.name, "namespace": NAMESPACE, "annotations": dict(create.mark)}
    body = {**create.body, "apiVersion": velero.BACKUP.api_version, "kind": velero.BACKUP.name, "metadata": named}
    patch = {"status": {"lastBackup": stamp(slot)}, "metadata": {"resourceVersion": row.version}}
    return create, body, patch


async def _write(client: Client, left: Iterator[tuple[ScheduleRow, Create, Body, Body]]) -> None:
    for row, create, body, patch in left:
        answers = (
            await client.create(velero.BACKUP, create.key, body, msgspec.Raw),
            await client.merge(velero.SCHEDULE, row.key, patch, msgspec.Raw),
        )
        for answer in answers:
            if isinstance(answer, Failure):
                raise MeasurementError(f"a write of the bare loop was refused: {answer}")


async def _opened(client: Client, kind: Kind, labels: str) -> Stream:
    chosen = {"labelSelector": labels} if labels else {}
    stream = await client.stream(kind, NAMESPACE, {"watch": "true", **chosen})
    if isinstance(stream, Failure):
        raise MeasurementError(f"the watch of {kind.name} was refused: {stream}")
    return stream


async def _drain(stream: Stream) -> None:
    async with stream:
        while await stream.read():
            pass


async def main(kubeconfig: str) -> None:
    """Write as the controller does, in the same order, with as many workers."""
    async with Client(await connect(kubeconfig)) as client:
        found = await client.page(velero.SCHEDULE, NAMESPACE, {}, _List)
        if isinstance(found, Failure):
            raise MeasurementError(f"the Schedules: {found}")
        slot = whole(now())
        rows = [schedule_row(item) for item in found.items]
        left = iter([(row, *_bodies(row, slot)) for row in rows])
        interests = [each.interest for each in Schedules(NAMESPACE, Settings()).watched]
        streams = [await _opened(client, each.kind, each.labels) for each in interests]
        draining = [asyncio.create_task(_drain(stream)) for stream in streams]
        print(now().isoformat(), flush=True)
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(_write(client, left))
        for task in draining:
            task.cancel()
        await asyncio.gather(*draining, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
