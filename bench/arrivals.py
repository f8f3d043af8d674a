"""A stopwatch at a watch: notes when what is waited for was first seen."""

import asyncio
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Self

import msgspec

from bench import MeasurementError
from bench.draining import Tail, opened
from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.kube.connect import connect
from foresail.kube.json_stream import LineSplitter
from foresail.plan import Kind
from testbed import Cluster


class Metadata(msgspec.Struct):
    """Who an object is, and what is noted on it."""

    name: str = ""
    annotations: dict[str, str] = {}


class Object(msgspec.Struct):
    """An object, its status not read yet."""

    metadata: Metadata
    status: msgspec.Raw = msgspec.Raw(b"{}")


class Event(msgspec.Struct):
    """One line of a watch."""

    type: str
    object: Object


def each_new(event: Event) -> str | None:
    """Note each object by its name when it is there."""
    return event.object.metadata.name if event.type == "ADDED" else None


@dataclass
class Arrivals:
    """Watches a kind, and notes when each thing that `note` makes of an event was first seen, until the block ends.

    It has a thread of its own, and sees what happens from its begin on.
    """

    cluster: Cluster
    kind: Kind
    namespace: str = ""
    note: Callable[[Event], Hashable | None] = each_new
    seen: dict[Hashable, datetime] = field(default_factory=dict)
    _open: threading.Event = field(default_factory=threading.Event)
    _end: asyncio.Event | None = None
    _loop: asyncio.AbstractEventLoop | None = None
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._thread.start()
        if not self._open.wait(30):
            raise MeasurementError(f"the watch of {self.kind.name} does not begin")
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
                raise MeasurementError(f"only {len(self.seen)} of {count} came at {self.kind.name}s in {seconds:g} s")
            threading.Event().wait(0.2)

    def lags(self, since: datetime) -> list[float]:
        """Return how many seconds after an instant each was there, in order."""
        return sorted((at - since).total_seconds() for at in self.seen.copy().values())

    async def _run(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        async with Client(await connect(str(self.cluster.kubeconfig))) as client:
            reading = asyncio.create_task(self._read(client))
            await self._end.wait()
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read(self, client: Client) -> None:
        """Read for ever; a watch that the API server ends, because it was read too slowly, is opened where it was."""
        decoder, tail = msgspec.json.Decoder(Event), Tail()
        while True:
            lines = LineSplitter()
            async with await opened(client, self.kind, self.namespace, tail.onward()) as stream:
                self._open.set()
                while chunk := await stream.read():
                    at = now()
                    tail.add(chunk)
                    for line in lines.feed(chunk):
                        event = decoder.decode(line)
                        if event.type == "ERROR":
                            tail.start_over()  # what it should have gone on from is no longer kept
                            break
                        noted = self.note(event)
                        if noted is not None:
                            self.seen.setdefault(noted, at)
