"""What the runtime needs of an API server, and the client of HTTP: interfaces, which the simulated worlds have too."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from foresail.kube.failures import Failure
from foresail.plan import Body, Key, Kind

T = TypeVar("T")


class Stream(Protocol):
    """The bytes of an open watch, in chunks of any size; leaving the context closes it."""

    async def read(self) -> bytes:
        """Wait for the next chunk; empty at the end, an OSError if the stream breaks."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...


class Server(Protocol):
    """One identity at one API server; whatever it refuses comes back as a Failure."""

    async def get(self, kind: Kind, key: Key, of: type[T]) -> T | Failure:
        """Read one object."""

    async def page(
        self,
        kind: Kind,
        namespace: str,
        parameters: Mapping[str, str],
        of: type[T],
        *,
        metadata_only: bool = False,
        most_bytes: int | None = None,
    ) -> T | Failure:
        """Read one page of a list, of whole objects or of their metadata."""

    async def create(self, kind: Kind, key: Key, body: Body, of: type[T]) -> T | Failure:
        """Create an object."""

    async def merge(self, kind: Kind, key: Key, body: Body, of: type[T], subresource: str = "") -> T | Failure:
        """Merge into an object; with a resourceVersion in the body, only if it is still the newest."""

    async def json_patch(self, kind: Kind, key: Key, operations: Sequence[Body], of: type[T]) -> T | Failure:
        """Apply the operations of a JSON patch, all or none."""

    async def apply(self, kind: Kind, key: Key, body: Body, of: type[T], subresource: str = "") -> T | Failure:
        """Declare our fields of an object; fields that someone else owns are a conflict."""

    async def delete(self, kind: Kind, key: Key, uid: str, resource_version: str = "") -> Failure | None:
        """Delete the object with that UID, and version if any; None if it is being deleted or already deleted."""

    async def delete_labelled(self, kind: Kind, namespace: str, selector: str) -> Failure | None:
        """Delete the objects of a namespace that a label selector means."""

    async def stream(
        self, kind: Kind, namespace: str, parameters: Mapping[str, str], *, metadata_only: bool = False
    ) -> Stream | Failure:
        """Open a watch of whole objects or of their metadata; the caller must close it."""


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
