"""No answer is read to its end if it is too large: checked while it comes in, and before it is decoded."""

import ast
import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foresail.kube.client import Client
from foresail.kube.failures import Cause, Failure
from foresail.kube.pages import Page, read_pages
from foresail.kube.reflector import Reflector, WatchSpec
from foresail.kube.store import Store
from foresail.kube.watch import Watch
from foresail.plan import Key, Keyed, Kind
from tests.unit.kube.nowhere import HTTP, MakeHttp, nowhere

SOURCE = Path(__file__).parents[3] / "src" / "foresail"
THING = Kind("runtime.foresail.dev", "v1", "things", "Thing")
KEY = Key("ns", "a")
REQUESTS: dict[str, Callable[[Client], Awaitable[object]]] = {
    "get": lambda client: client.get(THING, KEY, object),
    "page": lambda client: client.page(THING, "ns", {}, Page),
    "discover": lambda client: client.discover(object),
    "version": lambda client: client.version(object),
    "create": lambda client: client.create(THING, KEY, {}, object),
    "merge": lambda client: client.merge(THING, KEY, {}, object),
    "delete": lambda client: client.delete(THING, KEY, "uid"),
}
_CHUNK = b"10000\r\n" + b"[" * 65536 + b"\r\n"


class Endless:
    """A server whose answers never end."""

    def __init__(self, head: str) -> None:
        self.head, self.sent = head, 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(self.head.encode() + b"\r\n\r\n")
            while "chunked" in self.head:
                writer.write(_CHUNK)
                self.sent += 65536
                await writer.drain()
        except ConnectionError:
            pass  # the client has had enough
        finally:
            writer.transport.abort()

    def answer(self, folder: Path, make_http: MakeHttp, ask: Callable[[Client], Awaitable[object]]) -> object:
        async def run() -> object:
            async with (
                await asyncio.start_server(self.serve, "127.0.0.1", 0) as server,
                asyncio.timeout(20),
                nowhere(folder, server.sockets[0].getsockname()[1], make_http=make_http) as client,
            ):
                return await ask(client)

        return asyncio.run(run())


@pytest.fixture(params=HTTP.values(), ids=list(HTTP))
def make_http(request: pytest.FixtureRequest) -> MakeHttp:
    made: MakeHttp = request.param
    return made


@pytest.mark.parametrize("ask", REQUESTS.values(), ids=list(REQUESTS))
def test_an_answer_without_an_end_is_a_failure(
    tmp_path: Path, make_http: MakeHttp, ask: Callable[[Client], Awaitable[object]]
) -> None:
    endless = Endless("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked")
    found = endless.answer(tmp_path, make_http, ask)
    assert isinstance(found, Failure)
    assert found.cause is Cause.TOO_LARGE
    assert "more than 16 MiB" in found.message
    assert endless.sent < 32 << 20


def test_an_answer_that_announces_too_much_is_not_read(tmp_path: Path, make_http: MakeHttp) -> None:
    found = Endless(f"HTTP/1.1 200 OK\r\nContent-Length: {1 << 40}").answer(tmp_path, make_http, REQUESTS["get"])
    assert isinstance(found, Failure)
    assert found.cause is Cause.TOO_LARGE


def test_a_refusal_without_an_end_keeps_its_cause(tmp_path: Path, make_http: MakeHttp) -> None:
    endless = Endless("HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked")
    found = endless.answer(tmp_path, make_http, REQUESTS["get"])
    assert isinstance(found, Failure)
    assert found.cause is Cause.FORBIDDEN
    assert endless.sent < 16 << 20


class Fat:
    """A server whose objects are so large that few of them fit into an answer."""

    def __init__(self, count: int, fits: int) -> None:
        self.count, self.fits, self.limits = count, fits, list[int]()

    async def page(
        self, _: Kind, __: str, parameters: Mapping[str, str], of: type[Any], **___: object
    ) -> Any | Failure:  # noqa: ANN401
        limit, begin = int(parameters["limit"]), int(parameters.get("continue", "0"))
        self.limits.append(limit)
        if min(limit, self.count - begin) > self.fits:
            return Failure(Cause.TOO_LARGE, "the answer has more than 16 MiB")
        end = min(begin + limit, self.count)
        items = [{"metadata": {"name": f"{number:04}", "namespace": "ns"}} for number in range(begin, end)]
        metadata = {"resourceVersion": "7", "continue": str(end) if end < self.count else ""}
        return msgspec.json.decode(msgspec.json.encode({"metadata": metadata, "items": items}), type=of)

    async def stream(self, *_: object, **__: object) -> Failure:
        return Failure(Cause.INVALID, "no streams today", 400)


def test_a_page_that_is_too_large_is_read_again_in_smaller_ones() -> None:
    async def read(server: Any) -> list[Page | Failure]:  # noqa: ANN401 - no PageReader: it answers every type alike
        return [page async for page in read_pages(server, THING, "ns", Page)]

    server = Fat(40, 10)
    pages = asyncio.run(read(server))
    assert sum(len(page.items or ()) for page in pages if isinstance(page, Page)) == 40
    assert server.limits[:4] == [500, 125, 31, 7]
    assert set(server.limits[4:]) == {7}
    [failure] = asyncio.run(read(Fat(1, 0)))
    assert isinstance(failure, Failure)


def test_a_watch_without_streams_lists_large_objects_in_smaller_pages() -> None:
    class Row(Keyed, frozen=True):
        pass

    class Wire(msgspec.Struct):
        metadata: dict[str, str]

    async def follow() -> int:
        spec = WatchSpec(THING, Wire, lambda wire: Row(Key("ns", wire.metadata["name"])))
        reflector = Reflector(spec, Store[Row](), lambda _: None, lambda _: None)
        server: Any = Fat(40, 10)
        watch = Watch(server, reflector)
        task = asyncio.create_task(watch.run())
        async with asyncio.timeout(20):
            await watch.synced.wait()
        task.cancel()
        return len(list(reflector.store))

    assert asyncio.run(follow()) == 40


ALLOWED = {
    ("kube/watch.py", "stream.read()"),  # one chunk of a watch, whose lines are bounded
    ("console/kept.py", "stream.read()"),
    ("cli/options/values.py", "sys.stdin.read()"),  # the user's own
    ("proof/restore_plan/archive.py", "file.read()"),  # the size of an entry was checked before
}


def test_no_read_of_the_source_is_without_a_bound() -> None:
    found = set()
    for file in SOURCE.rglob("*.py"):
        text = file.read_text()
        if not any(call in text for call in (".read()", ".json()", ".text()")):
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            is_read = node.func.attr in ("read", "json", "text") and not node.args and not node.keywords
            if is_read:
                found.add((str(file.relative_to(SOURCE)), ast.unparse(node)))
    assert found == ALLOWED
