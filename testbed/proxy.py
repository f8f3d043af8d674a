"""A proxy before the API server that can cut, stall or tear a stream, delay an answer, or refuse requests.

It ends TLS with the cluster's own certificate and speaks TLS again to the API server, so it sees the plain bytes and
knows where a line ends. Clients must therefore show a token: a client certificate does not pass through.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar

from testbed.api import server_context, trust
from testbed.ports import Port
from testbed.replicas import APISERVER, replicas
from testbed.site import Site

_CHUNK = 64 * 1024
_SECONDS = 60.0
_EXPIRED = b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}'
_ANSWERS = {
    429: b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
    410: b"HTTP/1.1 410 Gone\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
    % (len(_EXPIRED), _EXPIRED),
}
_T = TypeVar("_T")


@dataclass(eq=False)
class _Stream:
    """One client connection and its twin to the API server."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    target: str = ""  # of the latest request: connections are used again and again
    flowing: asyncio.Event = field(default_factory=asyncio.Event)
    answers_at: float = 0.0  # on the loop's clock: until then, no answer passes
    is_refused: bool = False  # the latest request: no byte of it is passed on

    def abort(self) -> None:
        self.client.transport.abort()
        self.server.transport.abort()


@dataclass(slots=True)
class _Refusal:
    """Which requests are refused, how, and how many more of them."""

    of: str
    after: float
    code: int
    left: int | None

    def refuses(self, target: str) -> bool:
        """Count a request that is refused."""
        if self.of not in target or self.left == 0:
            return False
        if self.left is not None:
            self.left -= 1
        return True


class Proxy:
    """Passes bytes on until told otherwise; each fault can be limited to requests whose target contains a text."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._port = site.port(Port.APISERVER)
        self._streams: set[_Stream] = set()
        self._stalled: str | None = None
        self._tear: str | None = None
        self._torn = asyncio.Event()
        self._delay: tuple[bytes, float] | None = None
        self._delayed = asyncio.Event()
        self._refusal: _Refusal | None = None
        self._refusing: set[asyncio.Task[None]] = set()
        self.refused = 0  # requests
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._listener = self._run(self._listen())
        self.url = f"https://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def cut(self, of: str = "") -> int:
        """Reset the open streams of requests whose target contains the text; return how many there were."""

        async def cut() -> int:
            chosen = [stream for stream in self._streams if of in stream.target]
            for stream in chosen:
                stream.abort()
            return len(chosen)

        return self._run(cut())

    def stall(self, of: str = "") -> None:
        """Let nothing through any more, in either direction, on streams old and new, and keep them open."""

        async def stall() -> None:
            self._stalled = of
            for stream in self._streams:
                if of in stream.target:
                    stream.flowing.clear()

        self._run(stall())

    def resume(self) -> None:
        """Let through what was held back, and everything after it."""

        async def resume() -> None:
            self._stalled = None
            for stream in self._streams:
                stream.flowing.set()

        self._run(resume())

    def tear(self, of: str = "") -> None:
        """End the next stream that carries a whole line in the middle of that line."""

        async def tear() -> None:
            self._tear = of
            self._torn.clear()

        self._run(tear())

    def wait_torn(self, seconds: float = _SECONDS) -> None:
        """Return when a stream has been torn."""
        self._run(asyncio.wait_for(self._torn.wait(), seconds))

    def delay(self, text: str, seconds: float) -> None:
        """Pass the next request on that carries the text, and keep its answer back for so long."""

        async def delay() -> None:
            self._delay = text.encode(), seconds
            self._delayed.clear()

        self._run(delay())

    def wait_delayed(self, seconds: float = _SECONDS) -> None:
        """Return when a request was passed on whose answer is kept back."""
        self._run(asyncio.wait_for(self._delayed.wait(), seconds))

    def refuse(self, of: str, after: float = 0.0, code: int = 429, times: int | None = None) -> None:
        """Answer each further request whose target contains the text with 429 or 410, so many seconds after it came.

        With a number of times, only so many; others pass then.
        """

        async def refuse() -> None:
            self._refusal = _Refusal(of, after, code, times)

        self._run(refuse())

    def lead_to(self, server: str = "") -> None:
        """Lead to that replica of the API server from now on, or to the common address, and cut every stream."""
        ports = {each.name: each.port for each in replicas(self._site.options, APISERVER)}
        found = ports[server] if server else Port.APISERVER

        async def lead() -> None:
            self._port = self._site.port(found)

        self._run(lead())
        self.cut()

    def close(self) -> None:
        """Cut everything and stop listening."""

        async def close() -> None:
            self._listener.close()
            for stream in self._streams:
                stream.flowing.set()
                stream.abort()
            # They end by themselves now; cancelled, asyncio's own callback would complain.
            mine = asyncio.current_task()
            await asyncio.gather(*(task for task in asyncio.all_tasks() if task is not mine), return_exceptions=True)

        self._run(close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=_SECONDS)

    async def _listen(self) -> asyncio.Server:
        pki = self._site.pki
        context = server_context(pki / "server.crt", pki / "server.key")
        return await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server_reader, server_writer = await asyncio.open_connection(
                "127.0.0.1", self._port, ssl=trust(self._site.pki / "ca.crt")
            )
        except OSError:
            writer.transport.abort()  # the API server is down: the client learns it as it would without us
            return
        stream = _Stream(writer, server_writer)
        stream.flowing.set()
        self._streams.add(stream)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass_on(stream, reader, server_writer, self._note_request))
                group.create_task(self._pass_on(stream, server_reader, writer, self._maybe_tear))
        except* OSError:
            pass  # one side went away: what the other side sees of it is the point of this proxy
        finally:
            self._streams.discard(stream)
            stream.abort()

    async def _pass_on(
        self,
        stream: _Stream,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        look: Callable[[_Stream, bytes], int | None],
    ) -> None:
        while data := await reader.read(_CHUNK):
            keep = look(stream, data)
            if stream.is_refused and writer is stream.server:
                continue
            await stream.flowing.wait()
            if writer is stream.client:
                await asyncio.sleep(stream.answers_at - self._loop.time())
            writer.write(data[:keep])
            await writer.drain()
            if keep is not None:
                break
        with suppress(OSError):
            writer.close()  # an end, not a reset: half a line and then nothing
            await writer.wait_closed()
        raise ConnectionAbortedError

    def _note_request(self, stream: _Stream, data: bytes) -> None:
        words = data.split(b"\r\n", 1)[0].split(b" ")
        if len(words) == 3 and words[2].startswith(b"HTTP/"):  # noqa: PLR2004 - method, target, version
            stream.target = words[1].decode()
            if self._stalled is not None and self._stalled in stream.target:
                stream.flowing.clear()
            stream.is_refused = self._refusal is not None and self._refusal.refuses(stream.target)
            if stream.is_refused and self._refusal is not None:
                self.refused += 1
                task = self._loop.create_task(self._refuse(stream, self._refusal))
                self._refusing.add(task)
                task.add_done_callback(self._refusing.discard)
        if self._delay is not None and self._delay[0] in data:
            stream.answers_at = self._loop.time() + self._delay[1]
            self._delay = None
            self._delayed.set()

    async def _refuse(self, stream: _Stream, refusal: _Refusal) -> None:
        await asyncio.sleep(refusal.after)
        with suppress(OSError):
            stream.client.write(_ANSWERS[refusal.code])
            await stream.client.drain()

    def _maybe_tear(self, stream: _Stream, data: bytes) -> int | None:
        end = data.rfind(b"}\n")
        if self._tear is None or self._tear not in stream.target or end < 0:
            return None
        self._tear = None
        self._torn.set()
        begin = max(data.rfind(b"\n", 0, end), 0)
        return (begin + end) // 2
