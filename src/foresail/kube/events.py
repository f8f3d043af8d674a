"""Says in Events what users should know; never waits, never fails, and says a thing once.

A repeated Event could be counted in a series, but each repetition would be a write, and an object that is refused
every minute would cost as much as one that changes every minute. So what was said within the last ten minutes is
not said again, and after them it is a new Event: Events live for an hour, so it stays to be seen as long as it
holds. The name of an Event is derived from what it says, so a restarted or second replica does not repeat it either.

What users asked for goes first: while there is work, Events wait for it, each for twenty seconds at most and only as
long as there is room for more to wait. An Event bears the instant at which it was emitted.
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
_WAITING = 10_000
_REMEMBERED = 10_000
_AT_ONCE = 4
_LONGEST_BEHIND_WORK = 20.0
_LOOK_AGAIN = 0.25
_PAUSES = (1.0, 5.0, 15.0)  # before each further attempt at one Event
_PASSING = (Cause.UNREACHABLE, Cause.SERVER, Cause.TOO_MANY)
_LONGEST_MESSAGE = 1024  # bytes, and the next two as well: what the API server accepts
_LONGEST_WORD = 128
_LONGEST_NAME = 253


class Events:
    """Takes Notes from anywhere in the process, and writes them, a few at once, as long as `run` runs."""

    def __init__(
        self,
        client: Server,
        reporter: str,
        instance: str,
        now: Callable[[], datetime],
        *,
        is_busy: Callable[[], bool] = lambda: False,
        window: float = _WINDOW,
        waiting: int = _WAITING,
    ) -> None:
        self.outcomes: Counter[str] = Counter()
        self._client = client
        self._reporter = reporter
        self._instance = instance
        self._now = now
        self._is_busy = is_busy
        self._ends = False
        self._window = window
        self._said: OrderedDict[str, float] = OrderedDict()
        self._waiting: asyncio.Queue[tuple[Note, datetime, float]] = asyncio.Queue(waiting)

    def emit(self, note: Note) -> None:
        """Take a Note to be said soon, unless it was said already; if too many wait, it is dropped and counted."""
        if self._is_repeated(note):
            self.outcomes["repeated"] += 1
            return
        try:
            self._waiting.put_nowait((note, self._now(), asyncio.get_running_loop().time()))
        except asyncio.QueueFull:
            del self._said[_identity(note)]
            self.outcomes["dropped"] += 1

    async def run(self) -> None:
        """Write what was emitted, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            note, at, since = await self._waiting.get()
            try:
                while self._is_early(since):  # noqa: ASYNC110 - work is asked about, it does not tell
                    await asyncio.sleep(_LOOK_AGAIN)
                await self._write(note, at)
            except Exception:  # noqa: BLE001 - no Event is worth the process
                self.outcomes["dropped"] += 1
                _log.exception("no Event says %s of %s %s", note.reason, note.kind.name, note.key)
            finally:
                self._waiting.task_done()

    async def flushed(self) -> None:
        """Return when everything that was emitted has been written or given up; for the end of the process."""
        self._ends = True
        await self._waiting.join()

    def _is_early(self, since: float) -> bool:
        waited = asyncio.get_running_loop().time() - since
        has_room = self._waiting.qsize() * 2 < self._waiting.maxsize
        return has_room and not self._ends and waited < _LONGEST_BEHIND_WORK and self._is_busy()

    def _is_repeated(self, note: Note) -> bool:
        now = steady()
        while self._said and (now - next(iter(self._said.values())) >= self._window or len(self._said) > _REMEMBERED):
            self._said.popitem(last=False)
        identity = _identity(note)
        if identity in self._said:
            return True
        self._said[identity] = now
        return False

    async def _write(self, note: Note, at: datetime) -> None:
        body = event(note, at, self._reporter, self._instance, self._window)
        answer = await self._create(note, body)
        for pause in _PAUSES:
            if not (isinstance(answer, Failure) and answer.cause in _PASSING):
                break
            await asyncio.sleep(pause)
            answer = await self._create(note, body)
        if not isinstance(answer, Failure):
            self.outcomes["written"] += 1
        elif answer.cause is Cause.ALREADY_EXISTS:
            self.outcomes["repeated"] += 1  # said before a restart, by another replica, or by an attempt of ours
        else:
            self.outcomes["dropped"] += 1
            _log.warning("no Event says %s of %s %s: %s", note.reason, note.kind.name, note.key, answer)

    async def _create(self, note: Note, body: Body) -> msgspec.Raw | Failure:
        return await self._client.create(EVENT, Key(_home(note), ""), body, msgspec.Raw)


def event(note: Note, at: datetime, reporter: str, instance: str, window: float = _WINDOW) -> Body:
    """Return the Event that says a Note; within a window the same Note gives the same name."""
    regarding = {"apiVersion": note.kind.api_version, "kind": note.kind.name, "name": note.key.name}
    if note.key.namespace:
        regarding["namespace"] = note.key.namespace
    if note.uid:
        regarding["uid"] = note.uid
    return {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.name,
        "metadata": {"name": _name(note, int(at.timestamp() // window)), "namespace": _home(note)},
        "eventTime": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": reporter,
        "reportingInstance": instance[:_LONGEST_WORD],
        "action": note.reason[:_LONGEST_WORD],
        "reason": note.reason[:_LONGEST_WORD],
        "type": note.level.value,
        "note": note.message.encode()[:_LONGEST_MESSAGE].decode(errors="ignore"),
        "regarding": regarding,
    }


def _home(note: Note) -> str:
    return note.key.namespace or "default"  # where the API server wants Events about things without a namespace


def _identity(note: Note) -> str:
    """Return what two Notes have in common if one repeats the other."""
    about = note.kind.api_version, note.kind.name, str(note.key), note.uid
    return "\0".join((*about, note.reason, note.level.value, note.pattern or note.message))


def _name(note: Note, slot: int) -> str:
    mark = hashlib.sha256(f"{_identity(note)}\0{slot}".encode()).hexdigest()[:16]
    return f"{note.key.name[: _LONGEST_NAME - 17].rstrip('-.')}.{mark}"
