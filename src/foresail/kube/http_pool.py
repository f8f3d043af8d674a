"""HTTP by aiohttp, with proxies and traces: for the operator, whose requests share one pool of connections."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import cache
from types import TracebackType
from typing import Self

import aiohttp

from foresail.kube.connect import Connection
from foresail.kube.http import CONNECT_SECONDS
from foresail.kube.tracing import Tracer

MOST_BYTES = 32 << 20
"""Of one answer, where answers are bounded."""


class LargeAnswerError(Exception):
    """An answer has more bytes than are read of it."""


class BoundedResponse(aiohttp.ClientResponse):
    """An answer that is not read to its end if it is too large."""

    async def read(self) -> bytes:
        """Read the whole body."""
        pieces, size = [], 0
        async for piece in self.content.iter_any():
            size += len(piece)
            if size > MOST_BYTES:
                self.close()
                raise LargeAnswerError(f"the answer of the API server has more than {MOST_BYTES >> 20} MiB")
            pieces.append(piece)
        return b"".join(pieces)


class HttpPool:
    """Sends requests over kept-alive connections of aiohttp."""

    errors = (aiohttp.ClientError, OSError)

    def __init__(self, connection: Connection, tracer: Tracer | None = None, *, is_bounded: bool = False) -> None:
        self._connection = connection
        self._session = aiohttp.ClientSession(
            response_class=BoundedResponse if is_bounded else aiohttp.ClientResponse,
            connector=aiohttp.TCPConnector(limit=0, limit_per_host=0),
            cookie_jar=aiohttp.DummyCookieJar(),  # as kubectl: one of a proxy belongs to one identity
            auto_decompress=False,
            trace_configs=[tracer.tracing()] if tracer is not None else None,
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    async def send(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, str],
        headers: Sequence[tuple[str, str]],
        data: bytes | None,
        seconds: float | None,
    ) -> aiohttp.ClientResponse:
        """Send a request, and return its answer when that begins."""
        to = self._connection
        return await self._session.request(
            method,
            to.server + path,
            params=parameters,
            data=data,
            headers=headers,
            timeout=_limits(seconds),
            allow_redirects=False,
            ssl=to.tls or True,
            server_hostname=to.server_name or None,
            proxy=to.proxy or None,
            middlewares=() if data is None else (_send_once,),
        )

    def stream(self, answer: aiohttp.ClientResponse) -> "Response":
        """Return the body of an answer as a watch."""
        return Response(answer)


class Response:
    """An open watch at a real API server."""

    __slots__ = ("_response",)

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def read(self) -> bytes:
        """Wait for the next chunk; empty at the end, an OSError if the connection breaks."""
        try:
            return await self._response.content.readany()
        except aiohttp.ClientError as problem:
            raise ConnectionAbortedError(str(problem) or type(problem).__name__) from problem

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        # Neither released, because the rest of the stream is of no use, nor closed gracefully: a TLS shutdown may take
        # longer than the event loop lives, and the socket would stay open.
        connection = self._response.connection
        transport = connection.transport if connection is not None else None
        self._response.close()
        if transport is not None:
            transport.abort()
            await asyncio.sleep(0)  # the event loop closes the socket in its next turn


@cache
def _limits(seconds: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS)


async def _send_once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a request without aiohttp's own retry: it resends a DELETE whose connection dies, done or not."""
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise  # never sent, and never resent
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as problem:
        raise aiohttp.ClientConnectionError(str(problem) or type(problem).__name__) from problem
