"""Writes down what happens, from watches that go on after each fault; in a thread of its own."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Self, TypeVar

import msgspec

from bench import MeasurementError
from bench.operator import NAMESPACE
from bench.soak.seen import Held, Made, Said, Seen
from foresail.api import pods, velero
from foresail.api.marks import FIRE, PRIMER_LABEL, REQUEST_UID, SCHEDULE_UID, SELF_SERVICE_LEASE, SLOT, TARGET_UID
from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.kube.connect import connect
from foresail.kube.events import EVENT
from foresail.kube.failures import Cause, Failure
from foresail.kube.json_stream import LineSplitter
from foresail.kube.lease import LEASE
from foresail.plan import Kind
from testbed import Cluster

T = TypeVar("T")
_PAUSE = 0.5
_OURS = "foresail"


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    annotations: dict[str, str] = {}


class _Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    start_timestamp: datetime | None = None


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None


class _Regarding(msgspec.Struct):
    kind: str = ""
    name: str = ""
    namespace: str = ""


class _Object(msgspec.Struct, rename="camel"):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)
    regarding: _Regarding = msgspec.field(default_factory=_Regarding)
    reporting_controller: str = ""
    reason: str = ""
    note: str = ""
    event_time: datetime | None = None


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


_line = msgspec.json.Decoder(_Line)
_object = msgspec.json.Decoder(_Object)


@dataclass(frozen=True, slots=True)
class _Source:
    kind: Kind
    namespace: str
    selectors: Mapping[str, str]
    note: Callable[[Seen, _Object, bool], None]


def _note_backup(seen: Seen, one: _Object, is_gone: bool) -> None:  # noqa: FBT001 - what a watch says of it
    marks, meta, at = one.metadata.annotations, one.metadata, now()
    found = seen.made.get(meta.uid)
    if found is None:
        slot, schedule = marks.get(SLOT, ""), marks.get(SCHEDULE_UID, "")
        created = meta.creation_timestamp or at
        found = seen.made[meta.uid] = Made(meta.name, schedule, slot, marks.get(REQUEST_UID, ""), created)
    found.started = one.status.start_timestamp or found.started
    if is_gone:
        found.gone = at
    elif not found.phases or found.phases[-1][1] != one.status.phase:
        found.phases.append((at, one.status.phase))


def _note_placeholder(seen: Seen, one: _Object, is_gone: bool) -> None:  # noqa: FBT001
    marks, meta, at = one.metadata.annotations, one.metadata, now()
    created = meta.creation_timestamp or at
    found = seen.held.setdefault(meta.uid, Held(meta.name, marks.get(TARGET_UID, ""), marks.get(FIRE, ""), created))
    if is_gone:
        found.gone = at


def _note_event(seen: Seen, one: _Object, is_gone: bool) -> None:  # noqa: FBT001
    about = one.regarding
    if is_gone or not one.reporting_controller.startswith(_OURS):
        return
    said = Said(one.event_time or now(), about.kind, about.name, about.namespace, one.reason, one.note)
    if said.kind in ("Schedule", "Primer"):  # those of requests are many, and nothing is judged by them
        seen.said.append(said)


def _note_location(seen: Seen, one: _Object, is_gone: bool) -> None:  # noqa: FBT001
    phase = "" if is_gone else one.status.phase
    if not seen.locations or seen.locations[-1][1] != phase:
        seen.locations.append((now(), phase))


def _note_lease(seen: Seen, one: _Object, is_gone: bool) -> None:  # noqa: FBT001
    holder = "" if is_gone else one.spec.holder_identity or ""
    if not seen.leaders or seen.leaders[-1][1] != holder:
        seen.leaders.append((now(), holder))


_SOURCES = (
    _Source(velero.BACKUP, NAMESPACE, {}, _note_backup),
    _Source(pods.POD, "", {"labelSelector": f"{PRIMER_LABEL},!batch.kubernetes.io/job-name"}, _note_placeholder),
    _Source(EVENT, "", {}, _note_event),
    _Source(velero.LOCATION, NAMESPACE, {}, _note_location),
    _Source(LEASE, NAMESPACE, {"fieldSelector": f"metadata.name={SELF_SERVICE_LEASE}"}, _note_lease),
)


class Record:
    """Writes into what was seen, until the block ends; its thread also does what else is to happen in the background.

    Whatever changes what was seen is done in that thread, so that a copy of it is of one moment.
    """

    def __init__(self, cluster: Cluster, seen: Seen) -> None:
        self._cluster, self._seen = cluster, seen
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._tasks: list[asyncio.Task[None]] = []
        self.client: Client | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self.call(self._begin)
        return self

    def __exit__(self, *_: object) -> None:
        self.call(self._end)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something in the thread, and return what comes of it."""

        async def do() -> T:
            return await work()

        return asyncio.run_coroutine_threadsafe(do(), self._loop).result()

    def copy(self) -> Seen:
        """Return a copy of what was seen so far."""

        async def encode() -> bytes:
            return msgspec.json.encode(self._seen)

        return msgspec.json.decode(self.call(encode), type=Seen)

    def begin(self, work: Callable[[Client, Seen], Awaitable[None]]) -> asyncio.Task[None]:
        """Begin with something in the background."""

        async def do(client: Client) -> None:
            await work(client, self._seen)

        async def begin() -> asyncio.Task[None]:
            if self.client is None:
                raise MeasurementError("the record has not begun")
            task = asyncio.create_task(do(self.client))
            self._tasks.append(task)
            return task

        return self.call(begin)

    async def _begin(self) -> None:
        self.client = Client(await connect(str(self._cluster.kubeconfig)))
        self._tasks += [asyncio.create_task(self._follow(self.client, each)) for each in _SOURCES]

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.client is not None:
            await self.client.close()

    async def _follow(self, client: Client, source: _Source) -> None:
        """Read a watch for ever; after a fault it goes on where it was, or begins anew with all that is there."""
        version = ""
        while True:
            wanted = {"watch": "true", "allowWatchBookmarks": "true", **source.selectors}
            if version:
                wanted["resourceVersion"] = version
            stream = await client.stream(source.kind, source.namespace, wanted)
            if isinstance(stream, Failure):
                if stream.cause is Cause.EXPIRED:
                    version = self._start_over()
                await asyncio.sleep(_PAUSE)
                continue
            with suppress(OSError):
                async with stream:
                    lines, is_good = LineSplitter(), True
                    while is_good and (chunk := await stream.read()):
                        for line in lines.feed(chunk):
                            event = _line.decode(line)
                            if event.type == "ERROR":
                                version, is_good = self._start_over(), False
                                break
                            one = _object.decode(event.object)
                            version = one.metadata.resource_version
                            if event.type != "BOOKMARK":
                                source.note(self._seen, one, event.type == "DELETED")
            await asyncio.sleep(_PAUSE)

    def _start_over(self) -> str:
        self._seen.gaps += 1
        return ""
