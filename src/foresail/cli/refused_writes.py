"""Writes that the API server refuses to the operator, as the operator's Events report them."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from foresail.api.core import EVENT
from foresail.api.instants import stamp, utc
from foresail.cli.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.kube.refusals import WRITE_REFUSED
from foresail.plan import Kind

_CURRENT = timedelta(minutes=12)  # the operator retries each minute, and repeats its Event after ten


@dataclass(frozen=True, slots=True)
class RefusedWrite:
    """When the API server refused a write, and in what words."""

    at: datetime
    message: str

    def __str__(self) -> str:
        return f"{self.message} ({stamp(self.at)})"


class _Subject(msgspec.Struct, frozen=True):
    uid: str = ""


class _Event(msgspec.Struct, frozen=True, rename="camel"):
    involved_object: _Subject
    event_time: datetime | None = None
    message: str = ""


_event = msgspec.json.Decoder(_Event)


async def refused_writes(cluster: Cluster, kind: Kind, namespace: str, instant: datetime) -> dict[str, RefusedWrite]:
    """Return the latest current refusal for each object of a kind by its UID; none if one may not read Events."""
    chosen = f"involvedObject.kind={kind.name},reason={WRITE_REFUSED}"
    try:
        listed = await cluster.listed(EVENT, namespace, fields=chosen)
    except CommandError:
        return {}
    found: dict[str, RefusedWrite] = {}
    for event in map(_event.decode, listed):
        if event.event_time is None or instant - utc(event.event_time) > _CURRENT:
            continue
        uid, refused = event.involved_object.uid, RefusedWrite(utc(event.event_time), event.message)
        if uid not in found or found[uid].at < refused.at:
            found[uid] = refused
    return found
