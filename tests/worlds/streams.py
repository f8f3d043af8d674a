"""Watches of a world: what each sends, in which order and, as the weather is, how late or how often."""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import msgspec

from foresail.plan import Kind
from tests.worlds.documents import Choice, Document, metadata_of, selection
from tests.worlds.history import Happening
from tests.worlds.world import World

_encode = msgspec.json.encode


@dataclass(slots=True)
class Weather:
    """What goes wrong between a world and those who watch it, until it is taken back."""

    lag: float = 0.0  # seconds that an event is on its way
    lags: dict[Kind, float] = field(default_factory=dict)  # of kinds whose events take longer than those of others
    held_back: int = 0  # how many events each stream keeps to itself: its reader is that many behind
    losing: int = 0  # how many of the next events never arrive
    repeating: int = 0  # how many of the last events come again after each new one
    silent: bool = False  # streams are open, and nothing comes
    bookmark_every: float = 60.0
    frozen: "Frozen | None" = None  # the watch cache of the API server stands still
    forgotten: int = 0  # a watch from before this revision is refused: it must read the present

    def frozen_for(self, kind: Kind) -> "Frozen | None":
        """Return the cache of a kind, if it stands still."""
        return self.frozen if self.frozen is not None and self.frozen.holds(kind) else None


@dataclass(frozen=True, slots=True)
class Frozen:
    """A watch cache that stands still: it shows the world of a revision, and nothing later, until it is released.

    As in a real API server, a reader who names no resourceVersion gets the present: a page comes from etcd, and a watch
    that begins with the present says that it is whole only when the cache has caught up. Whoever asks for
    resourceVersion 0 gets what the cache has.
    """

    revision: int
    kind: Kind | None = None  # the only one that stands still; None: all
    refuses: bool = False  # whether a watch that begins with the present is refused: its reader lists

    def holds(self, kind: Kind) -> bool:
        """Whether the cache of this kind stands still."""
        return self.kind in (None, kind)


@dataclass(slots=True)
class _Sent:
    due: float
    revision: int
    line: bytes
    prompt: bool  # the answer to a request; only what happens later can be held back


@dataclass(slots=True, eq=False)
class WorldStream:
    """One open watch."""

    world: World
    weather: Weather
    kind: Kind
    namespace: str
    parameters: Mapping[str, str]
    metadata_only: bool = False
    _chosen: Choice = field(init=False)
    _pending: deque[_Sent] = field(default_factory=deque)
    _last: deque[_Sent] = field(default_factory=lambda: deque(maxlen=5))
    _delivered: int = 0
    _next_bookmark: float = 0.0
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _broken: bool = False
    _torn: bool = False
    _ended: bool = False

    def __post_init__(self) -> None:
        labels, fields = self.parameters.get("labelSelector", ""), self.parameters.get("fieldSelector", "")
        self._chosen = selection(labels, fields)
        self._next_bookmark = _now() + self.weather.bookmark_every
        if self.parameters.get("sendInitialEvents") == "true":
            self._send_the_present()
        else:
            self._delivered = int(self.parameters["resourceVersion"])
            oldest = max(self.world.history.compacted, self.weather.forgotten)
            if self._delivered < oldest:
                message = f"too old resource version: {self._delivered} ({oldest})"
                status = {"kind": "Status", "code": 410, "reason": "Expired", "message": message}
                self._send("ERROR", status, self._delivered)
                self._ended = True
                return
            self._replay(self._delivered)
        self.world.history.listeners.append(self._heard)

    # What those who watch see

    async def read(self) -> bytes:
        """Wait for the next events, or for a bookmark."""
        while True:
            self._news.clear()
            if self._broken:
                raise ConnectionResetError("the stream was cut")
            chunk = self._deliver()
            if chunk:
                return chunk
            if self._ended and not self._pending:
                return b""
            await self._wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.forget()

    # What a test does to it

    @property
    def is_open(self) -> bool:
        """Whether it still hears of the world."""
        return self._heard in self.world.history.listeners

    def look(self) -> None:
        """Notice that the weather has changed."""
        self._news.set()

    def cut(self) -> None:
        """Break off; what is pending is lost on the way."""
        self._broken = True
        self.forget()

    def tear(self) -> None:
        """Break off in the middle of the next line."""
        self._torn = True
        self.look()

    def end(self) -> None:
        """End as servers do after a while: everything that was to come comes first."""
        self._ended = True
        self.forget()

    def forget(self) -> None:
        """Hear no more of the world."""
        if self.is_open:
            self.world.history.listeners.remove(self._heard)
        self._news.set()

    # Inside

    def _heard(self, happening: Happening) -> None:
        if happening.kind == self.kind and self._send_happening(happening):
            self._news.set()

    def _send_the_present(self) -> None:
        history, frozen = self.world.history, self._frozen
        revision = history.revision if frozen is None else frozen.revision
        for key, document in sorted(history.at(self.kind, revision).items()):
            if self.namespace in ("", key.namespace) and self._chosen(document):
                self._send("ADDED", document, 0)
        takes_any = self.parameters.get("resourceVersion") == "0"
        if not takes_any:
            self._replay(revision)
        whole = revision if takes_any else history.revision
        self._send("BOOKMARK", self._bookmark(whole, {"k8s.io/initial-events-end": "true"}), whole)
        if takes_any:
            self._replay(revision)
        self._delivered = revision

    def _replay(self, revision: int) -> None:
        for happening in self.world.history.since(self.kind, revision):
            self._send_happening(happening)

    @property
    def _frozen(self) -> Frozen | None:
        return self.weather.frozen_for(self.kind)

    def _send_happening(self, happening: Happening) -> bool:
        """Send a happening as it looks through the selectors of this watch; tell whether it does at all."""
        if self.namespace not in ("", happening.key.namespace):
            return False
        before = happening.before is not None and self._chosen(happening.before)
        if happening.after is not None and self._chosen(happening.after):
            event, document = ("MODIFIED" if before else "ADDED"), happening.after
        elif before:
            event, document = "DELETED", happening.gone
        else:
            return False
        if self.weather.losing:
            self.weather.losing -= 1
            return True
        self._send(event, document, happening.revision, self.weather.lags.get(self.kind, self.weather.lag))
        again = list(self._last)[-self.weather.repeating :] if self.weather.repeating else []
        self._pending.extend(_Sent(self._pending[-1].due, one.revision, one.line, prompt=False) for one in again)
        return True

    def _send(self, event: str, document: Document, revision: int, lag: float | None = None) -> None:
        # What was sent first arrives first, also when the lag becomes shorter.
        due = max(_now() + (lag or 0.0), self._pending[-1].due if self._pending else 0.0)
        shown = metadata_of(document) if self.metadata_only and event != "ERROR" else document
        sent = _Sent(due, revision, _encode({"type": event, "object": shown}) + b"\n", prompt=lag is None)
        self._pending.append(sent)
        self._last.append(sent)

    def _deliver(self) -> bytes:
        if self.weather.silent:
            return b""
        ready = []
        while self._goes_out() and self._pending[0].due <= _now():
            sent = self._pending.popleft()
            self._delivered = max(self._delivered, sent.revision)
            ready.append(sent.line)
        if not ready and _now() >= self._next_bookmark and not self._ended:
            # A bookmark must not run ahead of an event that is still on its way: it would never be asked for again.
            shown = self.world.history.revision if self._frozen is None else self._frozen.revision
            revision = self._delivered if self._pending else max(self._delivered, shown)
            ready.append(_encode({"type": "BOOKMARK", "object": self._bookmark(revision)}) + b"\n")
        if ready:
            self._next_bookmark = _now() + self.weather.bookmark_every
        if ready and self._torn:
            self._broken = True
            self.forget()
            return ready[0][: len(ready[0]) // 2]
        return b"".join(ready)

    def _goes_out(self) -> bool:
        """Tell whether the next event is on its way, and not held back."""
        if not self._pending:
            return False
        if self._frozen is not None and self._pending[0].revision > self._frozen.revision:
            return False
        return self._ended or self._pending[0].prompt or len(self._pending) > self.weather.held_back

    async def _wait(self) -> None:
        when = self._next_bookmark
        if self._goes_out():
            when = min(when, self._pending[0].due)
        alarm = asyncio.get_running_loop().call_at(when, self._news.set) if not self.weather.silent else None
        try:
            await self._news.wait()
        finally:
            if alarm is not None:
                alarm.cancel()

    def _bookmark(self, revision: int, annotations: Mapping[str, str] | None = None) -> Document:
        noted = {"annotations": annotations} if annotations else {}
        metadata = {"resourceVersion": str(revision), "creationTimestamp": None, **noted}
        return {"apiVersion": self.kind.api_version, "kind": self.kind.name, "metadata": metadata}


def _now() -> float:
    return asyncio.get_running_loop().time()
