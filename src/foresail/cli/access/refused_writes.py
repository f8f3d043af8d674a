"""Writes that the API server refuses to the operator, as the operator's Events report them."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from foresail.api.core import EVENT
from foresail.api.instants import stamp, utc
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.kube.failures import WRITE_REFUSED
from foresail.plan import Key, Kind

_CURRENT = timedelta(minutes=12)  # the operator retries each minute, and repeats its Event after ten


class RefusedWrite(msgspec.Struct, frozen=True):
    """When the API server refused a write, and in what words."""

    at: datetime
    message: str

    def __str__(self) -> str:
        return f"{self.message} ({stamp(self.at)})"


class _Subject(msgspec.Struct, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _Event(msgspec.Struct, frozen=True, rename="camel"):
    involved_object: _Subject
    event_time: datetime | None = None
    message: str = ""


_event = msgspec.json.Decoder(_Event)


async def refused_writes(cluster: Cluster, kind: Kind, namespace: str, instant: datetime) -> dict[str, RefusedWrite]:
    """Return the latest current refusal for each object of a kind by its UID; none if one may not read Events."""
    selector = f"involvedObject.kind={kind.name},reason={WRITE_REFUSED}"
    try:
        latest = _latest(await cluster.listed(EVENT, namespace, fields=selector), instant)
    except CommandError:
        return {}
    return {about.uid: refused for about, refused in latest.items()}


async def all_refused_writes(cluster: Cluster, instant: datetime) -> dict[tuple[str, Key], RefusedWrite]:
    """Return the latest current refusal for each object of the cluster, by the name of its kind and its key."""
    latest = _latest(await cluster.listed(EVENT, "", fields=f"reason={WRITE_REFUSED}"), instant)
    return {(about.kind, Key(about.namespace, about.name)): refused for about, refused in latest.items()}


def _latest(listed: Iterable[msgspec.Raw], instant: datetime) -> dict[_Subject, RefusedWrite]:
    latest: dict[_Subject, RefusedWrite] = {}
    for event in map(_event.decode, listed):
        if event.event_time is None or instant - utc(event.event_time) > _CURRENT:
            continue
        about = event.involved_object
        refused = RefusedWrite(utc(event.event_time), event.message)
        if about not in latest or latest[about].at < refused.at:
            latest[about] = refused
    return latest
