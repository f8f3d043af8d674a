"""HTTP/1.1 over asyncio's streams, for the command line: the import of aiohttp takes longer than most commands."""

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from types import TracebackType
from typing import Self
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from aiohappyeyeballs import start_connection

from foresail.kube.connect import Connection
from foresail.kube.server import CONNECT_SECONDS, BoundedBody

_IDLE_SECONDS = 15.0  # then a connection is not used again, as with aiohttp: the server may be about to close it
_NEXT_ADDRESS = 0.25
_PIECE = 64 << 10
_SAFE = "/:@!$&'()*+,;=~%"
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*")
_LENGTH = re.compile(r"[0-9]{1,18}")
_MOST_INTERIM = 10
_STATUS = re.compile(r"HTTP/1\.([01]) ([1-5][0-9]{2})(?: |$)")
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,16}")
_NO_BODY = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)


def direct_http(connection: Connection) -> "DirectHttp | None":
    """Return direct connections to the API server; None behind a proxy, and for a password in the URL."""
    return None if connection.proxy or "@" in urlsplit(connection.server).netloc else DirectHttp(connection)


class _Wire:
    """One connection to the API server."""

    __slots__ = ("idle_since", "reader", "tls", "writer")

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tls: ssl.SSLContext | None) -> None:
        self.reader = reader
        self.writer = writer
        self.tls = tls
        self.idle_since = 0.0

    async def is_usable(self) -> bool:
        """Whether another request may go over it: it is open, and the server has sent nothing unasked."""
        try:
            async with asyncio.timeout(0):
                await self.reader.read(1)  # does not wait if the server has closed it, or sent what nobody asked for
        except TimeoutError:
            return not self.writer.is_closing()
        except OSError:
            return False
        return False

    async def abort(self) -> None:
        """Close it without the farewell of TLS, which may take longer than the event loop lives."""
        self.writer.transport.abort()
        await asyncio.sleep(0)  # the event loop closes the socket in its next turn


class DirectHttp:
    """Sends requests over kept-alive connections without a proxy."""

    errors = (OSError,)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._idle: list[_Wire] = []

    async def close(self) -> None:
        """Close every connection."""
        for wire in self._idle:
            await wire.abort()

    async def send(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, str],
        headers: Sequence[tuple[str, str]],
        data: bytes | None,
        seconds: float | None,
    ) -> "DirectAnswer":
        """Send a request, and return its answer when that begins."""
        until = None if seconds is None else asyncio.get_running_loop().time() + seconds
        server = urlsplit(self._connection.server)
        target = quote(server.path + path, safe=_SAFE) + (f"?{urlencode(parameters)}" if parameters else "")
        length = [("Content-Length", str(len(data)))] if data is not None else []
        lines = [f"{name}: {value}" for name, value in (("Host", server.netloc), *headers, *length)]
        if not all(map(_HEADER.fullmatch, lines)):
            text = "a header has a line break or a wrong name; check the token and the names in the kubeconfig"
            raise ConnectionError(text)
        request = "\r\n".join((f"{method} {target} HTTP/1.1", *lines, "", "")).encode() + (data or b"")
        async with _guarded(until):
            wire = await self._wire()
            try:
                wire.writer.write(request)
                await wire.writer.drain()
                return DirectAnswer(self._idle, wire, until, await _head(wire.reader))
            except BaseException:
                await wire.abort()
                raise

    def stream(self, answer: "DirectAnswer") -> "DirectStream":
        """Return the body of an answer as a watch."""
        return DirectStream(answer)

    async def _wire(self) -> _Wire:
        now = asyncio.get_running_loop().time()
        tls = self._connection.tls
        while self._idle:
            wire = self._idle.pop()
            if wire.tls is tls and now - wire.idle_since < _IDLE_SECONDS and await wire.is_usable():
                return wire
            await wire.abort()
        return await self._dial(tls)

    async def _dial(self, tls: ssl.SSLContext | None) -> _Wire:
        server = urlsplit(self._connection.server)
        if server.scheme == "https" and tls is None:
            raise ConnectionError(f"refusing to send a request to {server.netloc} without TLS")
        host = server.hostname or ""
        port = server.port or (443 if tls else 80)
        name = (self._connection.server_name or host).rstrip(".") if tls else None
        try:
            addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
            async with asyncio.timeout(CONNECT_SECONDS):
                plain = await start_connection(addresses, happy_eyeballs_delay=_NEXT_ADDRESS, interleave=1)
                try:
                    return _Wire(*await asyncio.open_connection(sock=plain, ssl=tls, server_hostname=name), tls)
                except BaseException:
                    plain.close()
                    raise
        except ssl.SSLCertVerificationError as problem:
            text = f"the certificate of {server.netloc} is not trusted: {problem.verify_message}"
            raise ssl.SSLCertVerificationError(problem.errno, text) from problem
        except TimeoutError as problem:
            raise TimeoutError(f"no connection to {server.netloc} within {CONNECT_SECONDS:g} s") from problem
        except OSError as problem:
            raise ConnectionError(f"cannot connect to {server.netloc}: {problem}") from problem


class DirectAnswer:
    """The head of an answer, and its body as it comes."""

    def __init__(self, idle: list[_Wire], wire: _Wire, until: float | None, head: "_Head") -> None:
        self.status = head.status
        self.headers = head.headers
        self._idle = idle
        self._wire = wire
        self._until = until
        self._is_chunked, self._left = _framing(head)  # _left: of the chunk or the body; None until the connection ends
        self._is_reusable = head.is_kept_alive and self._left is not None
        self._has_chunk = False

    async def read(self, most: int) -> bytes:
        """Read the whole body; a LargeAnswerError if it has more than so many bytes."""
        body = BoundedBody(most, self._left)
        async with _guarded(self._until):
            while piece := await self.read_piece():
                body.add(piece)
        return body.whole()

    async def read_piece(self) -> bytes:
        """Wait for the next piece of the body; empty at its end."""
        if self._is_chunked and not self._left:
            self._left = await self._next_chunk()
        if self._left == 0:
            return b""
        piece = await self._wire.reader.read(_PIECE if self._left is None else min(self._left, _PIECE))
        if self._left is not None:
            if not piece:
                raise asyncio.IncompleteReadError(piece, self._left)
            self._left -= len(piece)
        return piece

    async def _next_chunk(self) -> int:
        """Return the size of the next chunk; 0 after the last, when its trailers have been read."""
        reader = self._wire.reader
        if self._has_chunk and await reader.readexactly(2) != b"\r\n":
            raise ConnectionAbortedError("a chunk of the answer has a wrong size")
        size = (await reader.readuntil(b"\r\n")).partition(b";")[0].strip()
        if not _SIZE.fullmatch(size):
            raise ConnectionAbortedError("a chunk of the answer has no size")
        self._has_chunk = True
        if int(size, 16) == 0:
            self._is_chunked = False
            while await reader.readuntil(b"\r\n") != b"\r\n":
                pass
        return int(size, 16)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._is_reusable and not self._is_chunked and self._left == 0:
            self._wire.idle_since = asyncio.get_running_loop().time()
            self._idle.append(self._wire)
        else:
            await self._wire.abort()


class DirectStream:
    """An open watch at a real API server."""

    def __init__(self, answer: DirectAnswer) -> None:
        self._answer = answer

    async def read(self) -> bytes:
        """Wait for the next chunk; empty at the end, an OSError if the connection breaks."""
        async with _guarded(None):
            return await self._answer.read_piece()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._answer.__aexit__(kind, error, at)


class _Head(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    is_kept_alive: bool


async def _head(reader: asyncio.StreamReader) -> _Head:
    """Read the head of an answer, after the interim ones with a status of 1xx."""
    for _ in range(_MOST_INTERIM + 1):
        first, *lines = (await reader.readuntil(b"\r\n\r\n"))[:-4].decode("latin-1").split("\r\n")
        match = _STATUS.match(first)
        if match is None:
            raise ConnectionAbortedError(f"the answer is not HTTP/1.1: it begins with {first[:40]!r}")
        status = int(match[2])
        if status == HTTPStatus.SWITCHING_PROTOCOLS:
            raise ConnectionAbortedError("the server changes to another protocol, which was not asked for")
        if status >= HTTPStatus.OK:
            headers = _headers(lines)
            is_kept_alive = match[1] == "1" and "close" not in headers.get("Connection", "").lower()
            return _Head(status, headers, is_kept_alive)
    raise ConnectionAbortedError(f"the server sends more than {_MOST_INTERIM} interim answers")


def _headers(lines: Sequence[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        if not _HEADER.fullmatch(line):
            raise ConnectionAbortedError(f"the answer has a header that is not HTTP: {line[:40]!r}")
        name, _, value = line.partition(":")
        name = name.title()  # as Go writes it
        headers[name] = f"{headers[name]}, {value.strip()}" if name in headers else value.strip()
    return headers


def _framing(head: _Head) -> tuple[bool, int | None]:
    """Return whether the body comes in chunks, and its length; None if it lasts until the connection ends."""
    coding = head.headers.get("Transfer-Encoding")
    length = head.headers.get("Content-Length")
    if head.status in _NO_BODY:
        return False, 0
    if coding is not None:
        if coding.lower() != "chunked" or length is not None:
            raise ConnectionAbortedError("the answer has an ambiguous length")
        return True, 0
    if length is None:
        return False, None
    if not _LENGTH.fullmatch(length):
        raise ConnectionAbortedError(f"the answer has the length {length[:40]!r}")
    return False, int(length)


@asynccontextmanager
async def _guarded(until: float | None) -> AsyncIterator[None]:
    """Raise an OSError with the cause if an answer takes too long, ends too early, or is not HTTP."""
    limit = asyncio.timeout_at(until)
    try:
        async with limit:
            yield
    except TimeoutError as problem:
        raise TimeoutError("no answer in time" if limit.expired() else str(problem)) from problem
    except asyncio.IncompleteReadError as problem:
        raise ConnectionResetError("the connection was closed before the end of the answer") from problem
    except asyncio.LimitOverrunError as problem:
        raise ConnectionAbortedError("the answer has a line that is too long") from problem
