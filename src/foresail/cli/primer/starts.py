"""When the runs of CronJobs had their nodes, as Events tell: a pod goes with its node, and its Events stay for a while.

That is the very case of CronJobs that wait: their nodes are gone by the next fire.
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
"""By Job: when its first container started, or if no kubelet has told that, when its first pod had a node."""


class Subject(msgspec.Struct, frozen=True):
    """What an Event is about."""

    namespace: str = ""
    name: str = ""


class Event(msgspec.Struct, frozen=True, rename="camel"):
    """What happened to a pod; the scheduler tells the instant in one field, and kubelets in the other."""

    involved_object: Subject
    event_time: datetime | None = None
    first_timestamp: datetime | None = None


_events = msgspec.json.Decoder(Event)


async def starts(cluster: Cluster, namespace: str) -> Starts:
    """Read what Events tell; nothing, for whoever may not read them."""
    found: dict[Key, datetime] = {}
    for reason in (SCHEDULED, STARTED):  # the later one counts: a node may be there long before the image is
        chosen = f"involvedObject.kind={pods.POD.name},reason={reason}"
        try:
            raw = await cluster.listed(EVENT, namespace, fields=chosen)
        except CommandError:
            return found
        found |= first_of_each(map(_events.decode, raw))
    return found


def first_of_each(events: Iterable[Event]) -> dict[Key, datetime]:
    """Return for each Job the first instant at which something was told of one of its pods."""
    found: dict[Key, datetime] = {}
    for each in events:
        at = each.event_time or each.first_timestamp
        if at is None:
            continue
        for name in _jobs(each.involved_object.name):
            key = Key(each.involved_object.namespace, name)
            found[key] = min(utc(at), found.get(key, utc(at)))
    return found


def _jobs(pod: str) -> list[str]:
    """Return the Jobs that a pod may be of: its name is the Job's, an index if the Job counts, and a few letters."""
    name = pod.rpartition("-")[0]
    counted, _, index = name.rpartition("-")
    return [name, counted] if index.isdecimal() else [name]
