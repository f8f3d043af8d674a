"""Whether what a page shows has changed: a digest of the versions of its objects."""

from collections.abc import Iterable
from hashlib import sha256

from foresail.cli.tenant.tenant_request import TenantRequest

ONE, MANY = 2.0, 10.0
"""Seconds between two reads of one object, and at least of a list."""

_REST = 10  # times as long as a list took to read, nothing is read

MOST_STREAMS = 16
"""Pages that are followed at once."""

CHANGED = b"event: changed\ndata:\n\n"
ALIVE = b": alive\n\n"
FIRST = b"retry: 10000\n\n"


def digest(found: Iterable[TenantRequest]) -> str:
    """Return a text that is another one as soon as one of the objects is."""
    versions = sorted(f"{each.request.metadata.uid} {each.request.metadata.resource_version}" for each in found)
    return sha256("\n".join(versions).encode()).hexdigest()[:32]


def pause(took: float, *, is_one: bool) -> float:
    """Return the seconds until the next read, by how long the last one took."""
    return ONE if is_one else max(MANY, _REST * took)
