"""Writes Events without blocking or failing, and without repetition.

A series would count repetitions, but each one would be a write. So an Event is not repeated within ten minutes; after
that a new one is created, because Events expire after an hour. The name is derived from the content, so that a
restarted or second replica does not repeat an Event either.

Reconciles go first: while keys are queued, an Event waits for at most twenty seconds, and only while the queue of
Events has room. Its eventTime is the instant at which it was emitted.
"""

import asyncio
import hashlib
import logging
from collections import Counter, OrderedDict
from collections.abc import Callable
from datetime import datetime

import msgspec

from foresail.kube.clock import steady
from foresail.kube.failures import Cause, Failure
from foresail.kube.server import Server
from foresail.plan import Body, Key, Kind, Note

EVENT = Kind("events.k8s.io", "v1", "events", "Event")
_log = logging.getLogger(__name__)
_WINDOW = 600.0
_QUEUE_SIZE = 10_000
_MAX_REMEMBERED = 10_000
_WRITERS = 4
_MAX_DELAY = 20.0
_BUSY_CHECK = 0.25
_PAUSES = (1.0, 5.0, 15.0)  # before each further attempt at one Event
_TRANSIENT = (Cause.UNREACHABLE, Cause.SERVER, Cause.TOO_MANY)
_MAX_MESSAGE = 1024  # bytes, limits of the API server like the next two
_MAX_WORD = 128
_MAX_NAME = 253


class Events:
    """Queues Notes from anywhere in the process and writes them as Events while `run` runs."""

    def __init__(
        self,
        client: Server,
        reporter: str,
        instance: str,
        now: Callable[[], datetime],
        *,
        is_busy: Callable[[], bool] = lambda: False,
        window: float = _WINDOW,
        queue_size: int = _QUEUE_SIZE,
    ) -> None:
        self.outcomes: Counter[str] = Counter()
        self._client = client
        self._reporter = reporter
        self._instance = instance
        self._now = now
        self._is_busy = is_busy
        self._is_flushing = False
        self._window = window
        self._emitted: OrderedDict[str, float] = OrderedDict()
        self._queue: asyncio.Queue[tuple[Note, datetime, float]] = asyncio.Queue(queue_size)

    def emit(self, note: Note) -> None:
        """Queue a Note unless it repeats another; drop and count it if the queue is full."""
        if self._is_repeated(note):
            self.outcomes["repeated"] += 1
            return
        try:
            self._queue.put_nowait((note, self._now(), asyncio.get_running_loop().time()))
        except asyncio.QueueFull:
            del self._emitted[_identity(note)]
            self.outcomes["dropped"] += 1

    async def run(self) -> None:
        """Write the queued Events until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_WRITERS):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            note, at, since = await self._queue.get()
            try:
                while self._should_wait(since):  # noqa: ASYNC110 - the work queue cannot notify us
                    await asyncio.sleep(_BUSY_CHECK)
                await self._write(note, at)
            except Exception:  # noqa: BLE001 - a failed Event must not end the process
                self.outcomes["dropped"] += 1
                _log.exception("dropped Event %s for %s %s", note.reason, note.kind.name, note.key)
            finally:
                self._queue.task_done()

    async def flushed(self) -> None:
        """Return when all queued Events were written or dropped; for the end of the process."""
        self._is_flushing = True
        await self._queue.join()

    def _should_wait(self, since: float) -> bool:
        waited = asyncio.get_running_loop().time() - since
        has_room = self._queue.qsize() * 2 < self._queue.maxsize
        return has_room and not self._is_flushing and waited < _MAX_DELAY and self._is_busy()

    def _is_repeated(self, note: Note) -> bool:
        now = steady()
        while self._emitted and (
            now - next(iter(self._emitted.values())) >= self._window or len(self._emitted) > _MAX_REMEMBERED
        ):
            self._emitted.popitem(last=False)
        identity = _identity(note)
        if identity in self._emitted:
            return True
        self._emitted[identity] = now
        return False

    async def _write(self, note: Note, at: datetime) -> None:
        body = event(note, at, self._reporter, self._instance, self._window)
        answer = await self._create(note, body)
        for pause in _PAUSES:
            if not (isinstance(answer, Failure) and answer.cause in _TRANSIENT):
                break
            await asyncio.sleep(pause)
            answer = await self._create(note, body)
        if not isinstance(answer, Failure):
            self.outcomes["written"] += 1
        elif answer.cause is Cause.ALREADY_EXISTS:
            self.outcomes["repeated"] += 1  # before a restart, by another replica, or by an earlier attempt
        else:
            self.outcomes["dropped"] += 1
            _log.warning("dropped Event %s for %s %s: %s", note.reason, note.kind.name, note.key, answer)

    async def _create(self, note: Note, body: Body) -> msgspec.Raw | Failure:
        return await self._client.create(EVENT, Key(_event_namespace(note), ""), body, msgspec.Raw)


def event(note: Note, at: datetime, reporter: str, instance: str, window: float = _WINDOW) -> Body:
    """Return the Event for a Note; within a window the same Note gives the same name."""
    regarding = {"apiVersion": note.kind.api_version, "kind": note.kind.name, "name": note.key.name}
    if note.key.namespace:
        regarding["namespace"] = note.key.namespace
    if note.uid:
        regarding["uid"] = note.uid
    return {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.name,
        "metadata": {"name": _name(note, int(at.timestamp() // window)), "namespace": _event_namespace(note)},
        "eventTime": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": reporter,
        "reportingInstance": instance[:_MAX_WORD],
        "action": note.reason[:_MAX_WORD],
        "reason": note.reason[:_MAX_WORD],
        "type": note.level.value,
        "note": note.message.encode()[:_MAX_MESSAGE].decode(errors="ignore"),
        "regarding": regarding,
    }


def _event_namespace(note: Note) -> str:
    return note.key.namespace or "default"  # where Events about cluster-scoped objects belong


def _identity(note: Note) -> str:
    """Return a string that is equal for two Notes if one repeats the other."""
    about = note.kind.api_version, note.kind.name, str(note.key), note.uid
    return "\0".join((*about, note.reason, note.level.value, note.pattern or note.message))


def _name(note: Note, slot: int) -> str:
    mark = hashlib.sha256(f"{_identity(note)}\0{slot}".encode()).hexdigest()[:16]
    return f"{note.key.name[: _MAX_NAME - 17].rstrip('-.')}.{mark}"
