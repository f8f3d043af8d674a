"""Lists in pages: a page whose answer is too large is read again in smaller ones."""

from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Protocol, TypeVar

import msgspec

from foresail.kube.failures import Cause, Failure
from foresail.plan import Kind

MOST_PER_PAGE = 500
"""Objects that one request asks for."""

_DIVISOR = 4


class ListMetadata(msgspec.Struct, frozen=True):
    """The resourceVersion of a list, and the token of its next page."""

    resource_version: str = msgspec.field(default="", name="resourceVersion")
    next_page: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct):
    """A page of a list with its objects still encoded."""

    metadata: ListMetadata
    items: list[msgspec.Raw] | None = None  # null if the metadata of nothing is listed


class Paged(Protocol):
    """A page of a list, whatever its objects are decoded into."""

    @property
    def metadata(self) -> ListMetadata:
        """The token of the next page, if there is one."""


class PageSize(msgspec.Struct, frozen=True):
    """How many objects a request asks for at first, and how many bytes are read of an answer."""

    objects: int = MOST_PER_PAGE
    bytes: int | None = None  # None: the client's own limit


_USUAL = PageSize()
P = TypeVar("P", bound=Paged)
Decoded = TypeVar("Decoded")


class PageReader(Protocol):
    """The request that a list is made of."""

    async def page(
        self,
        kind: Kind,
        namespace: str,
        parameters: Mapping[str, str],
        of: type[Decoded],
        *,
        metadata_only: bool = False,
        most_bytes: int | None = None,
    ) -> Decoded | Failure:
        """Read one page of a list."""


def smaller_page(limit: int, failure: Failure) -> int:
    """Return how many objects the next attempt asks for; 0 if fewer do not help."""
    return max(limit // _DIVISOR, 1) if failure.cause is Cause.TOO_LARGE and limit > 1 else 0


async def read_pages(
    client: PageReader,
    kind: Kind,
    namespace: str,
    of: type[P],
    selection: Mapping[str, str] = MappingProxyType({}),
    *,
    metadata_only: bool = False,
    size: PageSize = _USUAL,
) -> AsyncIterator[P | Failure]:
    """Yield the pages of a list; a failure is the last."""
    limit = size.objects
    token = ""
    while True:
        parameters = {**selection, "limit": str(limit), **({"continue": token} if token else {})}
        page = await client.page(kind, namespace, parameters, of, metadata_only=metadata_only, most_bytes=size.bytes)
        if isinstance(page, Failure):
            smaller = smaller_page(limit, page)
            if not smaller:
                yield page
                return
            limit = smaller
            continue
        yield page
        token = page.metadata.next_page
        if not token:
            return
