"""The bare limit: the writes of the example in a plain loop, with both watches open and drained, and no controller.

python -m bench.runtime.bare KUBECONFIG PORT; the port is not used.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from time import process_time

import msgspec
from one_child_each import CHILD, OWNER, PARENT, OneChildEach

from bench import MeasurementError
from bench.draining import drained
from bench.reading import everything
from bench.runtime.reading import Found
from bench.runtime.stopwatch import Stopwatch
from foresail.kube.client import Client
from foresail.kube.connect import connect
from foresail.kube.failures import Failure
from foresail.kube.loop import WORKERS
from foresail.plan import Body, Key


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


async def main(kubeconfig: str) -> None:
    """Make a child and a status for each Parent, and print how long that took."""
    stopwatch = Stopwatch()
    async with Client(await connect(kubeconfig)) as client:
        found, version = await everything(client, PARENT, Found)
        keyed = ((Key(each.metadata.namespace, each.metadata.name), each.metadata) for each in found)
        left = iter([(key, child(key, each.uid), status(key, each.version)) for key, each in keyed])
        async with drained(client, OneChildEach().informers, version):
            before = process_time()
            async with asyncio.TaskGroup() as group:
                for _ in range(WORKERS):
                    group.create_task(write(client, left, stopwatch))
            used = process_time() - before
    print(json.dumps(stopwatch.facts | {"cpu_s": used}))


def _must_succeed(answer: object) -> None:
    if isinstance(answer, Failure):
        raise MeasurementError(f"a write of the bare loop was refused: {answer}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
