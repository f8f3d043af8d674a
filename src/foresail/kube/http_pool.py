"""HTTP by aiohttp, with proxies and traces: for the operator, whose requests share one pool of connections."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import cache
from types import TracebackType
from typing import Self

import aiohttp

from foresail.kube.connect import Connection
from foresail.kube.server import CONNECT_SECONDS, BoundedBody
from foresail.kube.tracing import Tracer


class PoolAnswer:
    """The head of an answer, and its body up to a limit."""

    __slots__ = ("response",)

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    @property
    def status(self) -> int:
        """The status code."""
        return self.response.status

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers."""
        return self.response.headers

    async def read(self, most: int) -> bytes:
        """Read the whole body; a LargeAnswerError if it has more than so many bytes."""
        body = BoundedBody(most, self.response.content_length)
        async for piece in self.response.content.iter_any():
            body.add(piece)
        return body.whole()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.response.__aexit__(kind, error, at)  # closes a connection whose answer was not read to its end


class HttpPool:
    """Sends requests over kept-alive connections of aiohttp."""

    errors = (aiohttp.ClientError, OSError)

    def __init__(self, connection: Connection, tracer: Tracer | None = None) -> None:
        self._connection = connection
        self._session = aiohttp.ClientSession(
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
    ) -> PoolAnswer:
        """Send a request, and return its answer when that begins."""
        to = self._connection
        response = await self._session.request(
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
        return PoolAnswer(response)

    def stream(self, answer: PoolAnswer) -> "Response":
        """Return the body of an answer as a watch."""
        return Response(answer.response)


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
