"""What every API server does, simulated or real: the stage for the cases that both must pass.

A case is a function of a Stage: a server, and a namespace of its own. It asserts what comes back; it knows nothing
of what stands behind the server.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from foresail.kube.failures import Cause, Failure
from foresail.kube.json_stream import LineSplitter
from foresail.kube.server import Server, Stream
from foresail.plan import Key, Kind
from tests.cluster.things import THING

CONFIG = Kind("", "v1", "configmaps", "ConfigMap")
SECONDS = 30.0


class Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    uid: str = ""
    version: str = msgspec.field(name="resourceVersion", default="")
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    going: str = msgspec.field(name="deletionTimestamp", default="")


class Seen(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}
    data: dict[str, str] = {}


class Event(msgspec.Struct, frozen=True):
    type: str
    object: Any

    @property
    def seen(self) -> Seen:
        return msgspec.convert(self.object, Seen)

    @property
    def shown(self) -> tuple[str, str]:
        return self.type, self.seen.metadata.name


class Reader:
    """An open watch, event by event, without the bookmarks that come in between."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._lines = LineSplitter()
        self._events: list[Event] = []

    async def next(self, *, bookmarks: bool = False) -> Event | None:
        """Return the next event; None if the stream has ended."""
        while True:
            while not self._events:
                chunk = await asyncio.wait_for(self._stream.read(), SECONDS)
                if not chunk:
                    return None
                self._events += [msgspec.json.decode(line, type=Event) for line in self._lines.feed(chunk)]
            event = self._events.pop(0)
            if bookmarks or event.type != "BOOKMARK":
                return event

    async def some(self, count: int) -> list[Event]:
        found = [await self.next() for _ in range(count)]
        return [event for event in found if event is not None]


@dataclass(frozen=True, slots=True)
class Stage:
    """A server, and a namespace of its own in it."""

    server: Server
    namespace: str
    forget: Callable[[], Awaitable[None]]  # lets the server forget its past

    def key(self, name: str) -> Key:
        return Key(self.namespace, name)

    def body(self, name: str, kind: Kind = THING, **parts: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        metadata = {"name": name, "namespace": self.namespace, **parts.pop("metadata", {})}
        return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, **parts}

    async def made(self, name: str, kind: Kind = THING, **parts: Any) -> Seen:  # noqa: ANN401 - JSON
        return seen(await self.server.create(kind, self.key(name), self.body(name, kind, **parts), Seen))

    async def gone(self, name: str, kind: Kind = THING) -> None:
        async with asyncio.timeout(SECONDS):
            while True:
                found = await self.server.get(kind, self.key(name), Seen)
                if isinstance(found, Failure):
                    assert found.cause is Cause.NOT_FOUND
                    return
                await asyncio.sleep(0.05)

    @asynccontextmanager
    async def watching(
        self, kind: Kind = THING, *, metadata_only: bool = False, **parameters: str
    ) -> AsyncIterator[Reader]:
        if "resourceVersion" not in parameters:
            parameters |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        asked = {"watch": "true", "allowWatchBookmarks": "true", **parameters}
        stream = await self.server.stream(kind, self.namespace, asked, metadata_only=metadata_only)
        assert not isinstance(stream, Failure), stream
        async with stream:
            yield Reader(stream)


Case = Callable[[Stage], Awaitable[None]]


class Cases(list[Case]):
    """A list that a decorator fills."""

    def __call__(self, function: Case) -> Case:
        self.append(function)
        return function


def seen(answer: Seen | Failure) -> Seen:
    assert isinstance(answer, Seen), answer
    return answer


def cause(answer: object) -> tuple[Cause, int]:
    assert isinstance(answer, Failure), answer
    return answer.cause, answer.code


CONFLICT = Cause.CONFLICT, 409
