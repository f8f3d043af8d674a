"""The watch at servers that no API server can be made to be: each refuses the same thing for ever."""

import asyncio
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import pytest

from foresail.kube.failures import Cause, Failure, failure
from foresail.kube.reflector import Phase, Reflector, WatchSpec
from foresail.kube.store import STALE_SECONDS, Store
from foresail.kube.watch import UNSERVED_SECONDS, Watch
from foresail.plan import Kind
from tests.unit.kube.nowhere import nowhere
from tests.worlds import virtual_time

THING = Kind("example.dev", "v1", "things", "Thing")
_GONE = failure(410, "Expired", "too old resource version")
_BOOKMARK = {"metadata": {"resourceVersion": "5", "annotations": {"k8s.io/initial-events-end": "true"}}}


class Wire(msgspec.Struct):
    pass


class Said:
    """A stream of some lines, which then ends."""

    def __init__(self, *lines: dict[str, Any]) -> None:
        self._left = [json.dumps(line).encode() + b"\n" for line in lines]

    async def read(self) -> bytes:
        return self._left.pop(0) if self._left else b""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        pass


class Forgetful:
    """Lists whenever asked, as a stream or in pages, and has forgotten that place when asked to go on from it."""

    def __init__(self, *, streams: bool) -> None:
        self.lists = 0
        self._streams = streams

    async def stream(self, _: Kind, __: str, parameters: Mapping[str, str], **___: object) -> Said | Failure:
        if "sendInitialEvents" not in parameters:
            return _GONE
        if not self._streams:
            return failure(500, "InternalError", "no streams today")
        self.lists += 1
        gone = {"code": 410, "reason": "Expired", "message": "too old"}
        return Said({"type": "BOOKMARK", "object": _BOOKMARK}, {"type": "ERROR", "object": gone})

    async def page(self, _: Kind, __: str, ___: Mapping[str, str], of: type[Any], **____: object) -> object:
        self.lists += 1
        return msgspec.json.decode(b'{"metadata": {"resourceVersion": "5"}, "items": []}', type=of)


class Forbidding:
    """Lists once, refuses everything until `forbids` ends, and then sends a bookmark each minute."""

    def __init__(self) -> None:
        self.forbids = False
        self.words = "things is forbidden"
        self.version = 5

    async def stream(self, _: Kind, __: str, ___: Mapping[str, str], **____: object) -> "Bookmarks | Failure":
        return failure(403, "Forbidden", self.words) if self.forbids else Bookmarks(self)


class Bookmarks(Said):
    """A stream that ends when the server forbids it."""

    def __init__(self, server: Forbidding) -> None:
        super().__init__()
        self._server = server
        self._first = True

    async def read(self) -> bytes:
        if not self._first:
            await asyncio.sleep(60)
        self._first = False
        self._server.version += 1
        metadata = {**_BOOKMARK["metadata"], "resourceVersion": str(self._server.version)}
        line = json.dumps({"type": "BOOKMARK", "object": {"metadata": metadata}}).encode() + b"\n"
        return b"" if self._server.forbids else line


def test_a_watch_that_fails_for_ever_is_logged_rarely_counted_by_cause_and_makes_its_store_old(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    server = Forbidding()

    async def run() -> None:
        clock = asyncio.get_running_loop().time
        reflector = Reflector(WatchSpec(THING, Wire, lambda _: 0), Store[int](), lambda _: None, lambda _: None)
        watch = Watch(server, reflector, clock=clock)  # type: ignore[arg-type]
        running = asyncio.create_task(watch.run())
        assert watch.bookmark_age() is None
        await asyncio.sleep(3_000)
        assert watch.age() <= 61
        assert watch.bookmark_age() == watch.age(), "nothing but bookmarks came"
        assert (watch.failures, caplog.messages) == ({}, [])
        server.forbids = True
        await asyncio.sleep(1_500)
        assert watch.age() > 1_400 > STALE_SECONDS
        assert watch.failures.keys() == {Cause.FORBIDDEN}
        assert watch.failures[Cause.FORBIDDEN] > 100
        refused = "retrying: Forbidden: things is forbidden (403)"
        assert [text.endswith(refused) for text in caplog.messages] == [True] * 3, "at first, and each ten minutes"
        server.forbids = False
        await asyncio.sleep(120)
        assert watch.age() <= 61
        assert caplog.messages[3:] == ["watching Thing again after Forbidden"]
        running.cancel()

    virtual_time.run(run())


def test_a_watch_that_fails_for_another_reason_is_logged_again_though_its_cause_is_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Forbidding()
    server.forbids = True

    async def run() -> None:
        clock = asyncio.get_running_loop().time
        reflector = Reflector(WatchSpec(THING, Wire, lambda _: 0), Store[int](), lambda _: None, lambda _: None)
        running = asyncio.create_task(Watch(server, reflector, clock=clock).run())  # type: ignore[arg-type]
        for words in ("things is forbidden, request 1", "things is forbidden, request 2", "no such user"):
            server.words = words
            await asyncio.sleep(120)
        said = [text.partition("Forbidden: ")[2] for text in caplog.messages]
        assert said == ["things is forbidden, request 1 (403)", "no such user (403)"]
        running.cancel()

    virtual_time.run(run())


class Serving:
    """Serves a kind with one object until it does not any more, and counts the requests."""

    def __init__(self) -> None:
        self.unserved = asyncio.Event()
        self.unserved.set()
        self.asked = 0

    async def stream(self, _: Kind, __: str, ___: Mapping[str, str], **____: object) -> "Said | Failure":
        self.asked += 1
        if self.unserved.is_set():
            return failure(404, "NotFound", "the server could not find the requested resource")
        one = {"metadata": {"name": "one", "namespace": "here", "resourceVersion": "4"}}
        return Lasting(self, {"type": "ADDED", "object": one}, {"type": "BOOKMARK", "object": _BOOKMARK})


class Lasting(Said):
    """A stream that ends once its kind is not served."""

    def __init__(self, server: Serving, *lines: dict[str, Any]) -> None:
        super().__init__(*lines)
        self._server = server

    async def read(self) -> bytes:
        if not self._left:
            await self._server.unserved.wait()
        return await super().read()


def test_an_optional_kind_that_is_not_served_is_an_empty_store_until_it_is(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server = Serving()

    async def run() -> None:
        clock = asyncio.get_running_loop().time
        store = Store[int]()
        spec = WatchSpec(THING, Wire, lambda _: 0, optional=True)
        watch = Watch(server, Reflector(spec, store, lambda _: None, lambda _: None), clock=clock)  # type: ignore[arg-type]
        running = asyncio.create_task(watch.run())
        await asyncio.wait_for(watch.synced.wait(), 2)
        assert not store.is_served
        await asyncio.sleep(10 * UNSERVED_SECONDS)
        assert server.asked <= 3 + 10
        assert watch.age() < STALE_SECONDS, "it is not stale: the server confirms that there are none"
        server.unserved.clear()
        await asyncio.sleep(UNSERVED_SECONDS)
        assert (store.is_served, len(store)) == (True, 1)
        server.unserved.set()
        await asyncio.sleep(5)
        assert store.is_served, "a server that has just begun may not find it yet"
        await asyncio.sleep(60)
        assert (store.is_served, len(store)) == (False, 0)
        running.cancel()

    virtual_time.run(run())
    assert caplog.messages == ["the API server does not serve Thing; retrying later"] * 2


class Quiet(Forgetful):
    """Lists, and is then silent for ever: etcd lets a quiet kind go without bookmarks for minutes."""

    def __init__(self) -> None:
        super().__init__(streams=True)
        self.opened = 0

    async def stream(self, _: Kind, __: str, parameters: Mapping[str, str], **___: object) -> "Said | Failure":
        self.opened += 1
        is_first = "sendInitialEvents" in parameters
        return Silent({"type": "BOOKMARK", "object": _BOOKMARK}) if is_first else Silent()


class Silent(Said):
    """A stream that does not end."""

    async def read(self) -> bytes:
        chunk = await super().read()
        if not chunk:
            await asyncio.Event().wait()
        return chunk


def test_a_kind_without_bookmarks_is_neither_stale_nor_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    server = Quiet()

    async def run() -> None:
        clock = asyncio.get_running_loop().time
        reflector = Reflector(WatchSpec(THING, Wire, lambda _: 0), Store[int](), lambda _: None, lambda _: None)
        watch = Watch(server, reflector, clock=clock)  # type: ignore[arg-type]
        running = asyncio.create_task(watch.run())
        for _ in range(500):
            await asyncio.sleep(3)
            assert watch.age() < STALE_SECONDS / 3
        running.cancel()
        assert (watch.failures, caplog.messages) == ({}, [])
        assert server.opened <= 1_500 / 90 + 1, "the stream is opened again at most each 90 s"

    virtual_time.run(run())


class Returning(Forgetful):
    """Cannot be reached for a minute, and has then forgotten the place where the watch stood."""

    def __init__(self) -> None:
        super().__init__(streams=True)
        self.listed_at: list[float] = []

    async def stream(self, _: Kind, __: str, parameters: Mapping[str, str], **___: object) -> Said | Failure:
        now = asyncio.get_running_loop().time()
        if 1 < now < 61:
            return Failure(Cause.UNREACHABLE, "connection refused")
        if "sendInitialEvents" in parameters:
            self.listed_at.append(now)
            return Bookmarks(Forbidding())
        return await super().stream(_, __, parameters)


def test_after_an_outage_a_place_that_is_forgotten_costs_no_second_long_pause() -> None:
    server = Returning()
    watch = Watch(server, Reflector(WatchSpec(THING, Wire, lambda _: 0), Store[int](), lambda _: None, lambda _: None))  # type: ignore[arg-type]
    watch.reflector.phase, watch.reflector.version = Phase.WATCHING, "5"

    async def run() -> None:
        await asyncio.sleep(1.1)
        running = asyncio.create_task(watch.run())
        await asyncio.sleep(100)
        running.cancel()

    virtual_time.run(run())
    assert server.listed_at[0] < 61 + 12.5 + 1, "the last pause of the outage, and a short one"


@pytest.mark.parametrize("streams", [True, False])
def test_a_server_that_forgets_at_once_is_listed_less_and_less_often(*, streams: bool) -> None:
    server = Forgetful(streams=streams)
    spec = WatchSpec(THING, Wire, lambda _: 0)
    watch = Watch(server, Reflector(spec, Store[int](), lambda _: None, lambda _: None))  # type: ignore[arg-type]

    async def run() -> None:
        running = asyncio.create_task(watch.run())
        await asyncio.sleep(600)
        running.cancel()

    virtual_time.run(run())
    assert watch.reflector.synced
    assert 30 < server.lists < 120  # every 7.5 to 12.5 s, after a few quick ones


class Slow:
    """Sends many objects in one chunk, and then nothing for a long time."""

    async def stream(self, _: Kind, __: str, ___: Mapping[str, str], **____: object) -> Said:
        return Chunk(*({"type": "ADDED", "object": {"metadata": {"name": f"n{number}"}}} for number in range(40)))


class Chunk(Said):
    """A stream whose lines all come at once."""

    async def read(self) -> bytes:
        if not self._left:
            await asyncio.sleep(60)
        chunk = b"".join(self._left)
        self._left.clear()
        return chunk


def test_other_tasks_get_a_turn_while_the_lines_of_a_chunk_are_expensive(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        spent, turns = 0.0, 0
        loop = asyncio.get_running_loop()
        time = loop.time

        def expensive(_: Wire) -> int:
            nonlocal spent
            spent += 0.004
            return 0

        monkeypatch.setattr(loop, "time", lambda: time() + spent)
        reflector = Reflector(WatchSpec(THING, Wire, expensive), Store[int](), lambda _: None, lambda _: None)
        running = asyncio.create_task(Watch(Slow(), reflector).run())  # type: ignore[arg-type]
        while len(reflector.store) < 40:
            turns += 1
            await asyncio.sleep(0)
        assert turns > 40 // 3, "after each 10 ms of work"
        running.cancel()

    virtual_time.run(run())


class Said429:
    """An answer of an API server whose cache of a kind is not filled yet."""

    status = 429
    headers: Mapping[str, str] = {"Retry-After": "20"}

    async def read(self, _: int) -> bytes:
        return json.dumps({"code": 429, "reason": "TooManyRequests", "message": "storage is (re)initializing"}).encode()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        pass


class Said200(Said429):
    """Its answer once the cache is filled."""

    status = 200
    headers: Mapping[str, str] = {}

    async def read(self, _: int) -> bytes:
        return b'{"metadata": {"resourceVersion": "5"}, "items": []}'


class StaysOpen(Said):
    """A stream that stays open after its lines."""

    async def read(self) -> bytes:
        if not self._left:
            await asyncio.Event().wait()
        return await super().read()


class Initializing:
    """Answers 429 for a while, as right after the creation of a CustomResourceDefinition."""

    errors = (OSError,)

    def __init__(self) -> None:
        self.is_ready = False
        self.asked = 0

    async def send(self, *_: object) -> Said429:
        self.asked += 1
        return Said200() if self.is_ready else Said429()

    def stream(self, _: object) -> Said:
        return StaysOpen({"type": "BOOKMARK", "object": _BOOKMARK})

    async def close(self) -> None:
        pass


def test_kind_whose_storage_is_initializing_is_read_within_seconds_of_being_ready(tmp_path: Path) -> None:
    server = Initializing()

    async def run() -> None:
        async with nowhere(tmp_path, make_http=lambda _: server) as client:
            spec = WatchSpec(THING, Wire, lambda _: 0)
            watch = Watch(client, Reflector(spec, Store[int](), lambda _: None, lambda _: None))
            running = asyncio.create_task(watch.run())
            await asyncio.sleep(60)
            assert not watch.synced.is_set()
            assert server.asked < 120, "nor is the server flooded"
            server.is_ready = True
            await asyncio.wait_for(watch.synced.wait(), 3)
            running.cancel()

    virtual_time.run(run())
