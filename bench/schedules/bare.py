"""The bare limit: a Backup and a patch for each Schedule in a plain loop, with the controller's watches drained.

python -m bench.schedules.bare KUBECONFIG prints the instant at which the first write was sent.
"""

import asyncio
import sys
from collections.abc import Iterator
from datetime import datetime

import msgspec

from bench import MeasurementError
from bench.draining import drained
from bench.operator import NAMESPACE
from foresail.api import velero
from foresail.api.instants import stamp, whole
from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.kube.connect import connect
from foresail.kube.failures import Failure
from foresail.kube.loop import WORKERS
from foresail.plan import Body, Create
from foresail.schedules.build import create_backup
from foresail.schedules.controller import Schedules
from foresail.schedules.observe import ScheduleRow, schedule_row
from foresail.schedules.settings import Settings


class _Version(msgspec.Struct, rename="camel"):
    resource_version: str


class _List(msgspec.Struct):
    items: list[velero.Schedule]
    metadata: _Version


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


async def main(kubeconfig: str) -> None:
    """Write as the controller does, in the same order, with as many workers."""
    async with Client(await connect(kubeconfig)) as client:
        found = await client.page(velero.SCHEDULE, NAMESPACE, {}, _List)
        if isinstance(found, Failure):
            raise MeasurementError(f"the Schedules: {found}")
        slot = whole(now())
        rows = [schedule_row(item) for item in found.items]
        left = iter([(row, *_bodies(row, slot)) for row in rows])
        async with drained(client, Schedules(NAMESPACE, Settings()).informers, found.metadata.resource_version):
            print(now().isoformat(), flush=True)
            async with asyncio.TaskGroup() as group:
                for _ in range(WORKERS):
                    group.create_task(_write(client, left))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
