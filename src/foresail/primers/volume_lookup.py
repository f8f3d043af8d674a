"""From which nodes the bound volumes of a run can be reached: looked up shortly before it is needed.

A placeholder mounts no claim, so the scheduler does not know that the run is bound to the nodes of its data.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol, TypeVar

import msgspec

from foresail.api.core import CLAIM, VOLUME, Claim, Volume
from foresail.kube.failures import Cause, Failure
from foresail.plan import Key, Kind

Volumes = tuple[bytes, ...]
"""A node selector, in JSON, for each volume that is not everywhere."""


T = TypeVar("T")


class Reads(Protocol):
    """Reads single objects; the client does."""

    async def get(self, kind: Kind, key: Key, of: type[T]) -> T | Failure:
        """Read one object."""


class VolumeLookup(msgspec.Struct, frozen=True):
    """The claims of a CronJob to look up, and the fire: each fire is another lookup."""

    namespace: str
    uid: str
    claims: tuple[str, ...]
    fire: datetime


LocateVolumes = Callable[[VolumeLookup], Awaitable[Volumes | None]]


def locate_volumes_with(client: Reads) -> LocateVolumes:
    """Return the function that runs this background read; it returns None if the API server did not answer."""

    async def locate_volumes(lookup: VolumeLookup) -> Volumes | None:
        found = [await _selector(client, Key(lookup.namespace, name)) for name in lookup.claims]
        return None if None in found else tuple(each for each in found if each)

    return locate_volumes


async def _selector(client: Reads, key: Key) -> bytes | None:
    """Return a node selector for the volume of a claim; empty if none, None if the API server did not answer."""
    claim = await client.get(CLAIM, key, Claim)
    if isinstance(claim, Failure):
        return _nothing(claim)
    if not claim.spec.volume_name:
        return b""
    volume = await client.get(VOLUME, Key("", claim.spec.volume_name), Volume)
    if isinstance(volume, Failure):
        return _nothing(volume)
    owner = volume.spec.claim_ref
    affinity = volume.spec.node_affinity
    # Whoever makes a claim may name any volume in it, so the volume must name the claim as well.
    if owner is None or owner.uid != claim.metadata.uid or affinity is None:
        return b""
    text = bytes(affinity.required)
    return b"" if text == b"null" else text


def _nothing(failure: Failure) -> bytes | None:
    return b"" if failure.cause is Cause.NOT_FOUND else None


async def no_volume_lookup(_search: VolumeLookup) -> Volumes | None:
    """Return no answer: without a client, the template is used as it is."""
    return None
