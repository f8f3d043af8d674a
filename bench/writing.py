"""Writes many objects at once, as the administrator."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

import msgspec

from bench import MeasurementError
from foresail.kube.client import Client
from foresail.kube.connect import connect
from foresail.kube.failures import Failure
from foresail.plan import Body, Key, Kind
from testbed import Cluster

AT_ONCE = 64
_TRIES = 10
_UNAVAILABLE = 503
Write = Callable[[Client], Awaitable[object]]


def create_all(cluster: Cluster, kind: Kind, objects: Iterable[tuple[Key, Body]]) -> None:
    """Create all of these objects."""
    write_all(cluster, (partial(Client.create, kind=kind, key=key, body=body, of=msgspec.Raw) for key, body in objects))


def write_all(cluster: Cluster, writes: Iterable[Write]) -> None:
    """Do all of these writes, many at a time and in their order."""

    async def work(client: Client, left: Iterable[Write]) -> None:
        for write in left:
            answer = await write(client)
            for _ in range(_TRIES):
                if not (isinstance(answer, Failure) and answer.code == _UNAVAILABLE):
                    break
                await asyncio.sleep(1)  # the admission policies do not know a kind yet that was just created
                answer = await write(client)
            if isinstance(answer, Failure):
                raise MeasurementError(f"a write was refused: {answer}")

    async def run() -> None:
        left = iter(writes)
        connection = await connect(str(cluster.kubeconfig))
        async with Client(connection, max_in_flight=AT_ONCE) as client, asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(work(client, left))

    asyncio.run(run())
