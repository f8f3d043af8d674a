"""The bare limit: the writes of the example in a plain loop, with both watches open and drained, and no controller.

python -m bench.runtime.bare KUBECONFIG PORT; the port is not used.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from time import process_time

import msgspec
from one_child_each import CHILD, OWNER, PARENT

from bench import MeasurementError
from bench.runtime.reading import everything
from bench.runtime.stopwatch import Stopwatch
from foresail.kube.client import Client
from foresail.kube.connect import connect
from foresail.kube.failures import Cause, Failure
from foresail.kube.loop import WORKERS
from foresail.kube.server import Stream
from foresail.plan import Body, Key, Kind


def child(key: Key, uid: str) -> Body:
    """Return the child of a Parent, as the example's controller writes it."""
    mark = {OWNER: uid}
    owner = {"apiVersion": PARENT.api_version, "kind": PARENT.name, "name": key.name, "uid": uid}
    who = {"name": key.name, "namespace": key.namespace}
    metadata = {"labels": mark, "ownerReferences": [owner], **who, "annotations": mark}
    return {"apiVersion": CHILD.api_version, "kind": CHILD.name, "metadata": metadata}


def status(key: Key, version: str) -> Body:
    """Return the status of a Parent, as the example's controller writes it."""
    return {"status": {"child": key.name}, "metadata": {"resourceVersion": version}}


async def write(client: Client, left: Iterator[tuple[Key, Body, Body]], stopwatch: Stopwatch) -> None:
    """Write the child and then the status of one Parent after the other."""
    for key, made, said in left:
        stopwatch()
        _must_succeed(await client.create(CHILD, key, made, msgspec.Raw))
        stopwatch()
        _must_succeed(await client.merge(PARENT, key, said, msgspec.Raw, "status"))


async def opened(client: Client, kind: Kind, labels: str, version: str) -> Stream:
    """Open a watch; an API server that has just started may ask to wait for it."""
    chosen = {"labelSelector": labels} if labels else {}
    stream = await client.stream(kind, "", {"watch": "true", "resourceVersion": version, **chosen})
    while isinstance(stream, Failure):
        if stream.cause is not Cause.TOO_MANY:
            raise MeasurementError(f"the watch of {kind.name} was refused: {stream}")
        await asyncio.sleep(0.2)
        stream = await client.stream(kind, "", {"watch": "true", "resourceVersion": version, **chosen})
    return stream


async def drain(stream: Stream) -> None:
    """Read a watch and throw away what it says."""
    async with stream:
        while await stream.read():
            pass
    raise MeasurementError("a watch of the bare loop has ended")


async def main(kubeconfig: str) -> None:
    """Make a child and a status for each Parent, and print how long that took."""
    stopwatch = Stopwatch()
    async with Client(await connect(kubeconfig)) as client:
        found, version = await everything(client, PARENT)
        keyed = ((Key(each.metadata.namespace, each.metadata.name), each.metadata) for each in found)
        left = iter([(key, child(key, each.uid), status(key, each.version)) for key, each in keyed])
        streams = [await opened(client, PARENT, "", version), await opened(client, CHILD, OWNER, version)]
        draining = [asyncio.create_task(drain(stream)) for stream in streams]
        before = process_time()
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(write(client, left, stopwatch))
        used = process_time() - before
        for task in draining:
            if task.done():
                task.result()
            task.cancel()
        await asyncio.gather(*draining, return_exceptions=True)
    print(json.dumps(stopwatch.facts | {"cpu_s": used}))


def _must_succeed(answer: object) -> None:
    if isinstance(answer, Failure):
        raise MeasurementError(f"a write of the bare loop was refused: {answer}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
