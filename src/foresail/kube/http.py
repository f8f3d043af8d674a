"""What the client needs of HTTP: implemented by aiohttp's pool and, for the command line, by direct connections."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from foresail.kube.server import Stream

CONNECT_SECONDS = 5.0
"""Limit for a connection with its TLS handshake, without the lookup of the name."""


class Answer(Protocol):
    """The head of an answer; leaving the context releases its connection."""

    @property
    def status(self) -> int:
        """The status code."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, by their canonical names."""

    async def read(self) -> bytes:
        """Read the whole body."""

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
