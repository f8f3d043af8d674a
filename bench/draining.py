"""Watches that are open and read, and whose content nobody looks at: the bare loops have those of the controller."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from bench import MeasurementError
from foresail.kube.client import Client
from foresail.kube.failures import Cause, Failure
from foresail.kube.loop import Watched
from foresail.kube.reflector import Interest
from foresail.kube.server import Stream


@asynccontextmanager
async def drained(client: Client, watched: Iterable[Watched], version: str = "") -> AsyncIterator[None]:
    """Hold the watches of a controller open until the block ends; without a version, from any point on."""
    streams = [await _opened(client, each.interest, version) for each in watched]
    draining = [asyncio.create_task(_drain(stream)) for stream in streams]
    try:
        yield
        for task in draining:
            if task.done():
                task.result()
    finally:
        for task in draining:
            task.cancel()
        await asyncio.gather(*draining, return_exceptions=True)


async def _opened(client: Client, interest: Interest[Any, Any], version: str) -> Stream:
    """Open a watch; an API server that has just started may ask to wait for it."""
    wanted = {"watch": "true", **interest.selectors} | ({"resourceVersion": version} if version else {})
    while True:
        stream = await client.stream(interest.kind, interest.namespace, wanted, metadata_only=interest.metadata_only)
        if not isinstance(stream, Failure):
            return stream
        if stream.cause is not Cause.TOO_MANY:
            raise MeasurementError(f"the watch of {interest.kind.name} was refused: {stream}")
        await asyncio.sleep(0.2)


async def _drain(stream: Stream) -> None:
    async with stream:
        while await stream.read():
            pass
    raise MeasurementError("a watch of the bare loop has ended")
