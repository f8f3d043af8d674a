"""What the runtime needs of an API server: implemented by the client and by the simulated worlds of the tests."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self, TypeVar

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

    async def stream(
        self, kind: Kind, namespace: str, parameters: Mapping[str, str], *, metadata_only: bool = False
    ) -> Stream | Failure:
        """Open a watch of whole objects or of their metadata; the caller must close it."""
