"""Watches that are open and read, and whose content nobody looks at: the bare loops have those of the controller."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from bench import MeasurementError
from foresail.kube.client import Client
from foresail.kube.controller import Informer
from foresail.kube.failures import Cause, Failure
from foresail.kube.reflector import WatchSpec
from foresail.kube.server import Stream
from foresail.plan import Kind

_VERSION = re.compile(rb'"resourceVersion":"(\d+)"')
_TAIL = 65_536


class Tail:
    """The end of what a watch has sent, from which it goes on if the API server ends it for being read too slowly.

    Begun anew, it would send everything that is there, again and again, and be too slow the more.
    """

    def __init__(self, version: str = "") -> None:
        self._version = version
        self._bytes = b""

    def add(self, chunk: bytes) -> None:
        """Take in what has come."""
        self._bytes = (self._bytes + chunk)[-_TAIL:]

    def start_over(self) -> None:
        """Forget where it was."""
        self._version, self._bytes = "", b""

    def onward(self) -> dict[str, str]:
        """Return the parameter of a watch that goes on after the last whole event, if there was any."""
        whole = self._bytes.rpartition(b"\n")[0]
        found = _VERSION.findall(whole)
        if found:
            self._version = found[-1].decode()
        self._bytes = b""
        return {"resourceVersion": self._version} if self._version else {}


@asynccontextmanager
async def drained(client: Client, informers: Iterable[Informer], version: str = "") -> AsyncIterator[None]:
    """Hold the watches of a controller open until the block ends; without a version, from any point on."""
    specs = [each.spec for each in informers]
    tails = [Tail(version) for _ in specs]
    streams = [await _opened(client, one, tail) for one, tail in zip(specs, tails, strict=True)]
    draining = [asyncio.create_task(_drain(client, *each)) for each in zip(specs, tails, streams, strict=True)]
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


async def _opened(client: Client, one: WatchSpec[Any, Any], tail: Tail) -> Stream:
    wanted = one.selectors | tail.onward()
    return await opened(client, one.kind, one.namespace, wanted, metadata_only=one.metadata_only)


async def _drain(client: Client, one: WatchSpec[Any, Any], tail: Tail, stream: Stream) -> None:
    """Read for ever; a watch that the API server ends is opened again where it was."""
    while True:
        async with stream:
            while chunk := await stream.read():
                tail.add(chunk)
        stream = await _opened(client, one, tail)
