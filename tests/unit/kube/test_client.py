"""The client, at a server that no API server can be made to be."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import unquote

import pytest

from foresail.kube.client import Client, address
from foresail.kube.failures import Cause, Failure
from foresail.plan import Key, Kind
from tests.unit.kube.nowhere import HTTP, MakeHttp, nowhere


@pytest.fixture(params=HTTP.values(), ids=list(HTTP))
def make_http(request: pytest.FixtureRequest) -> MakeHttp:
    made: MakeHttp = request.param
    return made


async def _say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await reader.read()  # until the client has had enough
    finally:
        writer.close()
        await writer.wait_closed()


def test_who_takes_the_connection_and_never_answers_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_http: MakeHttp
) -> None:
    monkeypatch.setattr("foresail.kube.client._SECONDS", 0.2)

    async def ask() -> object:
        async with await asyncio.start_server(_say_nothing, "127.0.0.1", 0) as silent:
            port = silent.sockets[0].getsockname()[1]
            async with nowhere(tmp_path, port, make_http=make_http) as client, asyncio.timeout(20):
                return await client.server_time()

    answer = asyncio.run(ask())
    assert isinstance(answer, Failure)
    assert answer.cause is Cause.UNREACHABLE


THING = Kind("runtime.foresail.dev", "v1", "things", "Thing")
KEY = Key("ns", "a")
_THINGS = "/apis/runtime.foresail.dev/v1/namespaces"
WRITES: dict[str, Callable[[Client], Awaitable[object]]] = {
    "create": lambda client: client.create(THING, KEY, {}, object),
    "merge": lambda client: client.merge(THING, KEY, {}, object),
    "json_patch": lambda client: client.json_patch(THING, KEY, [], object),
    "merge_by_name": lambda client: client.merge_by_name(THING, KEY, {}, object),
    "apply": lambda client: client.apply(THING, KEY, {}, object),
    "delete": lambda client: client.delete(THING, KEY, "uid"),
}
_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
_ELSEWHERE = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"


class Counting:
    """A server that counts requests, and answers a write with these bytes: with none, it closes the connection."""

    def __init__(self, to_writes: bytes) -> None:
        self.requests: list[str] = []
        self.connections = 0
        self._to_writes = to_writes

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                length = [line for line in head.lower().splitlines() if line.startswith("content-length:")]
                await reader.readexactly(int(length[0].partition(":")[2]) if length else 0)
                self.requests.append(head.split(" ")[0])
                answer = _OK if self.requests[-1] == "GET" else self._to_writes
                if not answer:
                    return
                writer.write(answer)
        except asyncio.IncompleteReadError:
            pass  # the client has closed it
        finally:
            writer.close()

    @asynccontextmanager
    async def client(self, folder: Path, make_http: MakeHttp) -> AsyncIterator[Client]:
        async with (
            await asyncio.start_server(self.serve, "127.0.0.1", 0) as server,
            nowhere(folder, server.sockets[0].getsockname()[1], make_http=make_http) as client,
            asyncio.timeout(20),
        ):
            yield client


@pytest.mark.parametrize("verb", WRITES)
@pytest.mark.parametrize("kept_alive", [False, True], ids=["new connection", "kept-alive connection"])
def test_a_write_whose_connection_dies_is_not_sent_again(
    tmp_path: Path, verb: str, make_http: MakeHttp, *, kept_alive: bool
) -> None:
    server = Counting(to_writes=b"")

    async def ask() -> object:
        async with server.client(tmp_path, make_http) as client:
            if kept_alive:
                await client.get(THING, KEY, object)
            return await WRITES[verb](client)

    answer = asyncio.run(ask())
    assert len([method for method in server.requests if method != "GET"]) == 1
    assert server.connections == 1
    assert isinstance(answer, Failure)
    assert answer.cause is Cause.UNREACHABLE


@pytest.mark.parametrize("verb", WRITES)
def test_a_redirect_of_a_write_is_a_failure_and_not_followed(tmp_path: Path, verb: str, make_http: MakeHttp) -> None:
    server = Counting(to_writes=_ELSEWHERE)

    async def ask() -> object:
        async with server.client(tmp_path, make_http) as client:
            return await WRITES[verb](client)

    answer = asyncio.run(ask())
    assert len(server.requests) == 1
    assert isinstance(answer, Failure)
    assert (answer.cause, answer.code) == (Cause.OTHER, 307)
    assert "/elsewhere" in answer.message


async def _paths(
    folder: Path, make_http: MakeHttp, *keys: Key, subresource: str = ""
) -> tuple[list[str], list[object]]:
    """Merge into each of these objects; return the paths that the server got, and the answers."""
    paths: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        paths.append(head.split(" ")[1])
        writer.write(_OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with nowhere(folder, port, make_http=make_http) as client, asyncio.timeout(20):
            return paths, [await client.merge(THING, each, {}, object, subresource) for each in keys]


def test_a_name_cannot_change_the_path_of_a_request(tmp_path: Path, make_http: MakeHttp) -> None:
    keys = Key("ns", "a?b#c d"), Key("ns", "system:a"), Key("ns", "things.example.com"), Key("ns", "é\r\nX: y")
    paths, _ = asyncio.run(_paths(tmp_path, make_http, *keys, subresource="status"))
    names = [unquote(each.removeprefix(f"{_THINGS}/ns/things/").removesuffix("/status")) for each in paths]
    assert names == [each.name for each in keys]
    assert all(each.isprintable() and set(each).isdisjoint("?# ") for each in paths)


@pytest.mark.parametrize("name", [".", "..", "a/b", "../../../../api/v1/secrets", "a%2Fb", "%2e%2e"])
def test_a_name_that_is_no_single_part_of_a_path_is_refused_without_a_request(
    name: str, tmp_path: Path, make_http: MakeHttp
) -> None:
    paths, answers = asyncio.run(_paths(tmp_path, make_http, Key("ns", name), Key(name, "a")))
    assert paths == []
    for answer in answers:
        assert isinstance(answer, Failure)
        assert answer.cause is Cause.INVALID


def test_a_name_that_no_text_can_hold_has_a_path() -> None:
    assert address(THING, "ns", "\ud800").endswith("/things/%ED%A0%80")


_BAD_DATES = {
    "offset": "Mon, 16 Nov 2026 22:00:00 +99999999999999",
    "year": "Mon, 16 Nov 99999999999999999999 22:00:00 GMT",
    "nothing": "",
}


@pytest.mark.parametrize("date", _BAD_DATES.values(), ids=list(_BAD_DATES))
def test_a_time_that_cannot_be_read_is_a_failure(date: str, tmp_path: Path, make_http: MakeHttp) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async def ask() -> object:
        async with (
            await asyncio.start_server(serve, "127.0.0.1", 0) as server,
            nowhere(tmp_path, server.sockets[0].getsockname()[1], make_http=make_http) as client,
        ):
            return await client.server_time()

    answer = asyncio.run(ask())
    assert isinstance(answer, Failure)
    assert answer.cause is Cause.UNREADABLE
