"""What the client needs of HTTP: implemented by aiohttp's pool and, for the command line, by direct connections."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from foresail.kube.server import Stream

CONNECT_SECONDS = 5.0
"""Limit for a connection with its TLS handshake, without the lookup of the name."""

MOST_BYTES = 16 << 20
"""Limit for the body of one answer, as for one line of a watch: several times the largest object."""


class LargeAnswerError(Exception):
    """An answer has more bytes than are read of it."""


class BoundedBody:
    """Collects the pieces of a body, and raises when there are more bytes than allowed."""

    __slots__ = ("_left", "_most", "_pieces")

    def __init__(self, most: int, length: int | None = None) -> None:
        self._pieces: list[bytes] = []
        self._most = self._left = most
        if length is not None and length > most:
            raise self._error()

    def add(self, piece: bytes) -> None:
        """Add the next piece."""
        self._left -= len(piece)
        if self._left < 0:
            self._pieces.clear()
            raise self._error()
        self._pieces.append(piece)

    def whole(self) -> bytes:
        """Return all pieces together."""
        return b"".join(self._pieces)

    def _error(self) -> LargeAnswerError:
        return LargeAnswerError(f"the answer of the API server has more than {in_units(self._most)}")


def in_units(count: int) -> str:
    """Return a number of bytes in MiB, or in KiB if it is smaller."""
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"


class Answer(Protocol):
    """The head of an answer; leaving the context releases its connection."""

    @property
    def status(self) -> int:
        """The status code."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, by their canonical names."""

    async def read(self, most: int) -> bytes:
        """Read the whole body; a LargeAnswerError if it has more than so many bytes."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...


class Http(Protocol):
    """Sends requests to one API server: each once, without following redirects."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What a request without an answer raises; an SSLCertVerificationError if the server is not trusted."""

    async def send(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, str],
        headers: Sequence[tuple[str, str]],
        data: bytes | None,
        seconds: float | None,
    ) -> Any:  # noqa: ANN401 - an Answer of its own kind
        """Send a request, and return its answer when that begins; the limit holds for its body too."""

    def stream(self, answer: Any) -> Stream:  # noqa: ANN401 - an Answer of its own kind
        """Return the body of an answer as a watch."""

    async def close(self) -> None:
        """Close every connection."""
