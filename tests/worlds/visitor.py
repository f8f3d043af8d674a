"""Somebody at a simulated API server, through the same interface that a client of a real one has."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from foresail.kube.client import decoder
from foresail.kube.failures import Cause, Failure
from foresail.kube.server import MOST_BYTES
from foresail.plan import Body, Key, Kind
from tests.worlds.documents import Document
from tests.worlds.roles import Role
from tests.worlds.streams import Weather, WorldStream
from tests.worlds.world import Answer, World

T = TypeVar("T")
_SHORTEST, _LONGEST = 0.0005, 0.004  # seconds each way
RETRY_AFTER = 5.0
_TOO_MANY = Failure(Cause.TOO_MANY, "too many requests", 429, "TooManyRequests", RETRY_AFTER)


@dataclass(frozen=True, slots=True)
class Write:
    """A write that was asked for, and whether it was refused."""

    verb: str
    kind: Kind
    key: Key
    refused: Cause | None


@dataclass(slots=True)
class Visitor:
    """One identity in one world; each of its requests takes a while each way, drawn from its own dice."""

    world: World
    manager: str = "foresail"
    weather: Weather = field(default_factory=Weather)
    dice: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311 - to spread, not to hide
    writes: list[Write] = field(default_factory=list)
    streams: list[WorldStream] = field(default_factory=list)
    dead: bool = False  # whether nothing that it still has under way will ever be done
    unsent_writes: int = 0  # how many of the next writes never arrive
    one_too_many: int = 0  # how many of the next writes are refused with 429, to be tried again after RETRY_AFTER
    lost_answers: int = 0  # how many of the next writes are done without the writer hearing of it
    opened: int = 0  # how many watches it was given
    short_watches: bool = False  # whether each watch ends as soon as it is open
    expired_watches: int = 0  # how many of the next watches are refused with 410 before they begin
    unanswered_watches: int = 0  # how many of the next watches are asked for in vain: nobody ever answers
    role: Role | None = None  # what it may do; None: everything

    async def get(self, kind: Kind, key: Key, of: type[T]) -> T | Failure:
        refusal = self._refusal("get", kind, key.namespace)
        return await self._ask(lambda: refusal or self.world.get(kind, key), of)

    async def page(
        self,
        kind: Kind,
        namespace: str,
        parameters: Mapping[str, str],
        of: type[T],
        *,
        metadata_only: bool = False,
        most_bytes: int | None = None,
    ) -> T | Failure:
        refusal = self._refusal("list", kind, namespace)
        return await self._ask(
            lambda: (
                refusal
                or self.world.page(
                    kind, namespace, parameters, metadata_only=metadata_only, as_of=self._shown(kind, parameters)
                )
            ),
            of,
            most_bytes or MOST_BYTES,
        )

    async def create(self, kind: Kind, key: Key, body: Body, of: type[T]) -> T | Failure:
        sent = _sent(body)
        return await self._write("create", kind, key, lambda: self._create(kind, key, sent), of)

    async def merge(self, kind: Kind, key: Key, body: Body, of: type[T], subresource: str = "") -> T | Failure:
        sent = _sent(body)
        verb = f"merge {subresource}".strip()
        return await self._write(
            verb, kind, key, lambda: self.world.merge(kind, key, sent, self.manager, subresource), of
        )

    async def json_patch(self, kind: Kind, key: Key, operations: Sequence[Body], of: type[T]) -> T | Failure:
        sent = [_sent(each) for each in operations]
        return await self._write("patch", kind, key, lambda: self.world.json_patch(kind, key, sent, self.manager), of)

    async def apply(self, kind: Kind, key: Key, body: Body, of: type[T], subresource: str = "") -> T | Failure:
        sent = _sent(body)
        verb = f"apply {subresource}".strip()
        return await self._write(
            verb, kind, key, lambda: self.world.apply(kind, key, sent, self.manager, subresource), of
        )

    async def delete(self, kind: Kind, key: Key, uid: str, resource_version: str = "") -> Failure | None:
        answer = await self._write(
            "delete", kind, key, lambda: self.world.delete(kind, key, uid, resource_version), msgspec.Raw
        )
        return answer if isinstance(answer, Failure) and answer.cause is not Cause.NOT_FOUND else None

    async def delete_labelled(self, kind: Kind, namespace: str, selector: str) -> Failure | None:
        answer = await self._write(
            "deletecollection",
            kind,
            Key(namespace, ""),
            lambda: self.world.delete_labelled(kind, namespace, selector),
            msgspec.Raw,
        )
        return answer if isinstance(answer, Failure) else None

    async def stream(
        self, kind: Kind, namespace: str, parameters: Mapping[str, str], *, metadata_only: bool = False
    ) -> WorldStream | Failure:
        await self._travel()
        if self.unanswered_watches:
            self.unanswered_watches -= 1
            await asyncio.Event().wait()
        refusal = self._refusal("watch", kind, namespace)
        if refusal is not None:
            return refusal
        if kind not in self.world.kinds:
            return Failure(Cause.NOT_FOUND, "the server could not find the requested resource", 404, "NotFound")
        if self.role is not None and self.role.meets_an_old_server and "sendInitialEvents" in parameters:
            return Failure(Cause.INVALID, "sendInitialEvents is forbidden for watch", 422, "Invalid")
        if self.expired_watches:
            self.expired_watches -= 1
            return Failure(Cause.EXPIRED, "too old resource version", 410, "Expired")
        frozen = self.weather.frozen_for(kind)
        if frozen is not None and frozen.refuses and "sendInitialEvents" in parameters:
            return Failure(Cause.SERVER, "the watch cache has not caught up", 504, "Timeout")
        stream = WorldStream(self.world, self.weather, kind, namespace, dict(parameters), metadata_only)
        self.streams = [one for one in self.streams if one.is_open]
        self.streams.append(stream)
        self.opened += 1
        if self.short_watches:
            stream.end()
        return stream

    def look(self) -> None:
        """Let every open stream notice that the weather has changed."""
        for stream in self.streams:
            stream.look()

    def _shown(self, kind: Kind, parameters: Mapping[str, str]) -> int | None:
        """Return the revision that a page shows; None for the present."""
        frozen = self.weather.frozen_for(kind)
        return frozen.revision if frozen is not None and parameters.get("resourceVersion") == "0" else None

    def _refusal(self, verb: str, kind: Kind, namespace: str) -> Failure | None:
        """Return why a request is refused; the verb may have a subresource behind it."""
        if self.role is None:
            return None
        word, _, subresource = verb.partition(" ")
        word = {"merge": "patch", "apply": "patch"}.get(word, word)
        return self.role.refusal(word, kind, namespace, subresource)

    def _create(self, kind: Kind, key: Key, body: Document) -> Answer:
        return self.world.create(kind, body, self.manager, key.namespace)

    async def _write(self, verb: str, kind: Kind, key: Key, do: Callable[[], Answer], of: type[T]) -> T | Failure:
        def done() -> Answer:
            if self.unsent_writes:
                self.unsent_writes -= 1
                return Failure(Cause.UNREACHABLE, "the connection broke before the request was sent")
            answer = (self._refusal(verb, kind, key.namespace) or do()) if not self.one_too_many else _TOO_MANY
            self.one_too_many = max(self.one_too_many - 1, 0)
            refused = answer.cause if isinstance(answer, Failure) else None
            self.writes.append(Write(verb, kind, key, refused))
            if self.lost_answers:
                self.lost_answers -= 1
                return Failure(Cause.UNREACHABLE, "the connection broke before the answer came")
            return answer

        return await self._ask(done, of)

    async def _ask(self, do: Callable[[], Answer], of: type[T], most_bytes: int = MOST_BYTES) -> T | Failure:
        await self._travel()
        answer = do()
        sent = None if isinstance(answer, Failure) else msgspec.json.encode(answer)
        await self._travel()
        if sent is None:
            assert isinstance(answer, Failure)
            return answer
        if len(sent) > most_bytes:
            return Failure(Cause.TOO_LARGE, f"the answer has more than {most_bytes} bytes", 200)
        try:
            return decoder(of).decode(sent)
        except msgspec.DecodeError as problem:
            return Failure(Cause.UNREADABLE, str(problem), 200)

    async def _travel(self) -> None:
        await asyncio.sleep(self.dice.uniform(_SHORTEST, _LONGEST))
        if self.dead:
            await asyncio.Event().wait()


def _sent(body: Body) -> Document:
    """Return what arrives of a body: JSON, and nothing that its sender still holds."""
    document: Document = msgspec.json.decode(msgspec.json.encode(body))
    return document
