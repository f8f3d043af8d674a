"""Watches that are open and read, and whose content nobody looks at: the bare loops have those of the controller."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial

from bench import MeasurementError
from foresail.kube.client import Client
from foresail.kube.failures import Cause, Failure
from foresail.kube.loop import Watched
from foresail.kube.server import Stream
from foresail.plan import Kind


@asynccontextmanager
async def drained(client: Client, watched: Iterable[Watched], version: str = "") -> AsyncIterator[None]:
    """Hold the watches of a controller open until the block ends; without a version, from any point on."""
    from_then = {"resourceVersion": version} if version else {}
    opening = [
        partial(opened, client, one.kind, one.namespace, one.selectors | from_then, metadata_only=one.metadata_only)
        for one in (each.interest for each in watched)
    ]
    draining = [asyncio.create_task(_drain(await each(), each)) for each in opening]
    try:
        yield
        for task in draining:
            if task.done():
                task.result()
    finally:
        for task in draining:
            task.cancel()
        await asyncio.gather(*draining, return_exceptions=True)


async def opened(
    client: Client, kind: Kind, namespace: str, wanted: Mapping[str, str], *, metadata_only: bool = False
) -> Stream:
    """Open a watch; an API server that has just started may ask to wait for it."""
    while True:
        parameters = {"watch": "true", **wanted}
        stream = await client.stream(kind, namespace, parameters, metadata_only=metadata_only)
        if not isinstance(stream, Failure):
            return stream
        if stream.cause is not Cause.TOO_MANY:
            raise MeasurementError(f"the watch of {kind.name} was refused: {stream}")
        await asyncio.sleep(0.2)


async def _drain(stream: Stream, again: Callable[[], Awaitable[Stream]]) -> None:
    """Read for ever; a watch that the API server ends, because it was read too slowly, is opened again."""
    while True:
        async with stream:
            while await stream.read():
                pass
        stream = await again()
