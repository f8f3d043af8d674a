"""Direct connections to the API server, as the command line uses them: every answer that HTTP/1.1 allows."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from foresail.kube import http_direct
from foresail.kube.connect import connect
from foresail.kube.http_direct import DirectHttp, direct_http
from tests.unit.kube.nowhere import kubeconfig_of
from tests.unit.kube.test_kubeconfig import written

_EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Canned:
    """A server that answers the requests of its connections with these bytes, one after the other."""

    def __init__(self, *answers: bytes, closes: bool = False) -> None:
        self.heads: list[str] = []
        self.connections = 0
        self._answers, self._closes = iter(answers), closes

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
                writer.write(next(self._answers))
                await writer.drain()
                if self._closes:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has closed it
        finally:
            writer.close()

    def asked(
        self, folder: Path, times: int = 1, headers: Sequence[tuple[str, str]] = (), path: str = "/x", pause: float = 0
    ) -> list[tuple[int, bytes]]:
        """Send requests one after the other; return each status and body."""

        async def run() -> list[tuple[int, bytes]]:
            async with await asyncio.start_server(self.serve, "127.0.0.1", 0) as server, asyncio.timeout(20):
                http = DirectHttp(await connect(kubeconfig_of(folder, server.sockets[0].getsockname()[1])))
                found = []
                try:
                    for _ in range(times):
                        async with await http.send("GET", path, {"limit": "1 & 2"}, headers, None, 10.0) as answer:
                            found.append((answer.status, await answer.read(1 << 20)))
                        await asyncio.sleep(pause)
                finally:
                    await http.close()
                return found

        return asyncio.run(run())


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    body = b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in chunks)
    return b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n" + body + end


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length:2\r\n\r\n{}", b"{}"),
        (chunked(b"ab", b"c" * 300_000), b"ab" + b"c" * 300_000),
        (chunked(end=b"2;name=value\r\n{}\r\n0\r\nTrailer: x\r\n\r\n"), b"{}"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + _EMPTY, b""),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
    ids=["length", "chunks", "extension and trailer", "1xx", "204"],
)
def test_a_body_is_read_to_its_end_and_its_connection_is_used_again(tmp_path: Path, answer: bytes, body: bytes) -> None:
    server = Canned(answer, answer)
    assert [found for _, found in server.asked(tmp_path, times=2)] == [body, body]
    assert server.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\n\r\n{}",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: Close\r\n\r\n{}",
    ],
    ids=["until the end", "HTTP/1.0", "Connection: close"],
)
def test_a_connection_that_ends_with_its_answer_is_not_used_again(tmp_path: Path, answer: bytes) -> None:
    server = Canned(answer, answer, closes=True)
    assert server.asked(tmp_path, times=2) == [(200, b"{}"), (200, b"{}")]
    assert server.connections == 2


def test_a_kept_alive_connection_that_the_server_has_closed_or_that_is_old_is_not_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closing = Canned(_EMPTY, _EMPTY, closes=True)
    assert closing.asked(tmp_path, times=2, pause=0.2) == [(200, b""), (200, b"")]
    monkeypatch.setattr(http_direct, "_IDLE_SECONDS", 0.05)
    idle = Canned(_EMPTY, _EMPTY)
    assert idle.asked(tmp_path, times=2, pause=0.2) == [(200, b""), (200, b"")]
    assert (closing.connections, idle.connections) == (2, 2)


def test_a_connection_with_data_that_nobody_asked_for_is_not_used_again(tmp_path: Path) -> None:
    early = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly"
    server = Canned(_EMPTY + early, _EMPTY)
    assert server.asked(tmp_path, times=2, pause=0.2) == [(200, b""), (200, b"")]
    assert server.connections == 2


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"", "closed before the end"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", "closed before the end"),
        (chunked(b"{}", end=b""), "closed before the end"),
        (chunked(b"{}", end=b"5\r\n{"), "closed before the end"),
        (chunked(end=b"2\r\n{}x0\r\n\r\n"), "a wrong size"),
        (chunked(end=b"-1\r\n"), "has no size"),
        (chunked(end=b"0x2\r\n{}\r\n"), "has no size"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "has the length '-1'"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 9\r\n\r\n{}", "has the length '2, 9'"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", "ambiguous length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n{}", "ambiguous length"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP/1.1: it begins with 'SSH-2.0-OpenSSH'"),
        (b"HTTP/2 200\r\n\r\n", "not HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: " + b"1" * 5000 + b"\r\n\r\n", "has the length '1111"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 1200 + _EMPTY, "more than 10 interim answers"),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + _EMPTY, "another protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\n{}", "a header that is not HTTP: 'Content-Length : 2'"),
        (b"HTTP/1.1 200 OK\r\nX: a\r\n Content-Length: 2\r\n\r\n{}", "a header that is not HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: a\nContent-Length: 2\r\n\r\n{}", "a header that is not HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n", "a header that is not HTTP"),
        (b"HTTP/1.1 200 OK\r\nnothing\r\n\r\n", "a header that is not HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n", "too long"),
    ],
)
def test_an_answer_that_is_cut_off_or_is_not_http_is_an_error_with_its_cause(
    tmp_path: Path, answer: bytes, problem: str
) -> None:
    with pytest.raises(OSError, match=problem):
        Canned(answer, closes=True).asked(tmp_path)


def test_a_request_sends_every_header_and_no_name_can_add_one(tmp_path: Path) -> None:
    server = Canned(_EMPTY)
    server.asked(tmp_path, headers=[("Impersonate-Group", "a"), ("Impersonate-Group", "b")], path="/a b?c#d\r\nX: y/é")
    first, *lines = server.heads[0].splitlines()
    assert first == "GET /a%20b%3Fc%23d%0D%0AX:%20y/%C3%A9?limit=1+%26+2 HTTP/1.1"
    assert lines[0].startswith("Host: 127.0.0.1:")
    assert lines[1:3] == ["Impersonate-Group: a", "Impersonate-Group: b"]
    for header in (
        ("Authorization", "Bearer t\r\nX: y"),
        ("Authorization", "t\ny"),
        ("X: y\r\nZ", ""),
        ("X y", ""),
        ("", ""),
    ):
        with pytest.raises(OSError, match="a header has a line break or a wrong name"):
            server.asked(tmp_path, headers=[header])


def test_a_server_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    async def ask(server: str) -> None:
        http = DirectHttp(await connect(str(written(tmp_path / "config", cluster={"server": server}))))
        await http.send("GET", "/", {}, (), None, 10.0)

    with pytest.raises(OSError, match=r"cannot connect to 127\.0\.0\.1:1: .*Connect call failed"):
        asyncio.run(ask("http://127.0.0.1:1"))
    with pytest.raises(OSError, match=r"cannot connect to api\.invalid:9: "):
        asyncio.run(ask("http://api.invalid:9"))


def test_nothing_goes_out_in_plain_text_to_a_server_with_https(tmp_path: Path) -> None:
    async def ask() -> None:
        connection = await connect(str(written(tmp_path / "config")))
        connection.tls = None
        await DirectHttp(connection).send("GET", "/", {}, (), None, 10.0)

    with pytest.raises(OSError, match="refusing to send a request to 127\\.0\\.0\\.1:9 without TLS"):
        asyncio.run(ask())


def test_only_a_proxy_and_a_password_in_the_url_need_more_than_a_direct_connection(tmp_path: Path) -> None:
    async def is_direct(**cluster: str) -> bool:
        return direct_http(await connect(str(written(tmp_path / "config", cluster=cluster)))) is not None

    assert asyncio.run(is_direct(server="https://127.0.0.1:9"))
    assert not asyncio.run(is_direct(server="https://127.0.0.1:9", **{"proxy-url": "http://127.0.0.1:8"}))
    assert not asyncio.run(is_direct(server="https://ann:secret@127.0.0.1:9"))
