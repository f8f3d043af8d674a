"""Whether what a page shows has changed: a digest of the versions of its objects."""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from foresail.cli.tenant.tenant_request import TenantRequest

ONE, MANY = 2.0, 10.0
"""Seconds between two reads of one object, and at least of a list."""

_REST = 10  # times as long as a list took to read, nothing is read

CHANGED = b"event: changed\ndata:\n\n"
ALIVE = b": alive\n\n"
FIRST = b"retry: 10000\n\n"


def digest(requests: Iterable[TenantRequest]) -> str:
    """Return a text that is another one as soon as one of the objects is."""
    return _digest(
        f"{request.request.metadata.uid} {request.request.metadata.resource_version}" for request in requests
    )


def version_digest(contents: Iterable[Mapping[str, Any]]) -> str:
    """Return the same of objects as they came."""
    metadatas = (content["metadata"] for content in contents)
    return _digest(f"{metadata.get('uid')} {metadata.get('resourceVersion')}" for metadata in metadatas)


def _digest(unsorted: Iterable[str]) -> str:
    versions = sorted(unsorted)
    return sha256("\n".join(versions).encode()).hexdigest()[:32]


def pause(took: float, *, is_one: bool) -> float:
    """Return the seconds until the next read, by how long the last one took."""
    return ONE if is_one else max(MANY, _REST * took)
