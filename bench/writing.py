"""Creates many objects at once, as the administrator."""

import asyncio
from collections.abc import Iterable

import msgspec

from bench import MeasurementError
from foresail.kube.client import Client
from foresail.kube.connect import connect
from foresail.kube.failures import Failure
from foresail.plan import Body, Key, Kind
from testbed import Cluster

AT_ONCE = 64


def create_all(cluster: Cluster, kind: Kind, objects: Iterable[tuple[Key, Body]]) -> None:
    """Create all of these objects, many at a time and in their order."""

    async def create(client: Client, left: Iterable[tuple[Key, Body]]) -> None:
        for key, body in left:
            made = await client.create(kind, key, body, msgspec.Raw)
            if isinstance(made, Failure):
                raise MeasurementError(f"{kind.name} {key}: {made}")

    async def run() -> None:
        left = iter(objects)
        connection = await connect(str(cluster.kubeconfig))
        async with Client(connection, at_once=AT_ONCE) as client, asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(create(client, left))

    asyncio.run(run())
