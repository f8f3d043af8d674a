"""When the runs of CronJobs started, as Events report it.

A pod is deleted with its node, and its Events remain for a while. CronJobs that wait for nodes are of this kind: their
nodes are deleted before the next fire.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from foresail.api import pods
from foresail.api.core import EVENT
from foresail.api.instants import utc
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.plan import Key

SCHEDULED, STARTED = "Scheduled", "Started"

Starts = Mapping[Key, datetime]
"""By Job: when its first container started; without that Event, when its first pod was scheduled."""


class Subject(msgspec.Struct, frozen=True):
    """What an Event is about."""

    namespace: str = ""
    name: str = ""


class Event(msgspec.Struct, frozen=True, rename="camel"):
    """What happened to a pod; the scheduler sets `eventTime`, and kubelets set `firstTimestamp`."""

    involved_object: Subject
    event_time: datetime | None = None
    first_timestamp: datetime | None = None


_events = msgspec.json.Decoder(Event)


async def starts(cluster: Cluster, namespace: str) -> Starts:
    """Read the start of each Job from Events; empty if the user may not read them."""
    found: dict[Key, datetime] = {}
    for reason in (SCHEDULED, STARTED):  # the later one counts: a node may be there long before the image is
        selector = f"involvedObject.kind={pods.POD.name},reason={reason}"
        try:
            raw = await cluster.listed(EVENT, namespace, fields=selector)
        except CommandError:
            return found
        found |= first_of_each(map(_events.decode, raw))
    return found


def first_of_each(events: Iterable[Event]) -> dict[Key, datetime]:
    """Return for each Job the first Event of one of its pods."""
    found: dict[Key, datetime] = {}
    for event in events:
        at = event.event_time or event.first_timestamp
        if at is None:
            continue
        for name in _jobs(event.involved_object.name):
            key = Key(event.involved_object.namespace, name)
            found[key] = min(utc(at), found.get(key, utc(at)))
    return found


def _jobs(pod: str) -> list[str]:
    """Return the Jobs that a pod may belong to: its name is the Job's name, an index if it is indexed, and a suffix."""
    name = pod.rpartition("-")[0]
    counted, _, index = name.rpartition("-")
    return [name, counted] if index.isdecimal() else [name]
