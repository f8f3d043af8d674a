"""Requests of tenants, and those that no operator has processed."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from foresail.api.metadata import Metadata
from foresail.api.requests import (
    NON_ADMIN_BACKUP,
    NON_ADMIN_DOWNLOAD_REQUEST,
    NON_ADMIN_RESTORE,
    NON_ADMIN_SCHEDULE,
)
from foresail.cli.access.cluster import Cluster, refusal
from foresail.cli.access.together import all_of
from foresail.cli.doctor.finding import Finding, minutes, problem, some
from foresail.kube.failures import Cause, Failure
from foresail.kube.pages import read_pages
from foresail.kube.reflector import ListMetadata
from foresail.plan import Key, Kind

if TYPE_CHECKING:
    from foresail.cli.doctor.evidence import Evidence

KINDS = (NON_ADMIN_BACKUP, NON_ADMIN_RESTORE, NON_ADMIN_SCHEDULE, NON_ADMIN_DOWNLOAD_REQUEST)
"""The kinds that the operator gives a phase as soon as it sees an object."""

PROCESSED_WITHIN = timedelta(minutes=2)
"""How long a request may have no phase."""


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""


class RequestWire(msgspec.Struct, frozen=True):
    """As much of a request as tells whether an operator has processed it."""

    metadata: Metadata
    status: _Status = _Status()


class _Page(msgspec.Struct, frozen=True):
    metadata: ListMetadata = ListMetadata()
    items: tuple[RequestWire, ...] | None = None


class Request(msgspec.Struct, frozen=True):
    """A request of a tenant."""

    kind: Kind
    key: Key
    uid: str
    phase: str
    created: datetime | None = None

    def __str__(self) -> str:
        return f"{self.kind.name} {self.key}"


Requests = Mapping[Kind, tuple[Request, ...]]


async def read_requests(cluster: Cluster) -> Requests:
    """Read the requests of all tenants, page by page."""
    lists = await all_of(_read(cluster, kind) for kind in KINDS)
    return dict(zip(KINDS, lists, strict=True))


async def _read(cluster: Cluster, kind: Kind) -> tuple[Request, ...]:
    requests: list[Request] = []
    async for page in read_pages(cluster.client, kind, "", _Page):
        if isinstance(page, Failure):
            if page.cause is Cause.NOT_FOUND:
                return ()
            raise refusal(page, "list", kind, Key("", ""))
        requests += (request_of(kind, item) for item in page.items or ())
    return tuple(requests)


def request_of(kind: Kind, wire: RequestWire) -> Request:
    """Return a request as the checks see it."""
    meta = wire.metadata
    return Request(kind, Key(meta.namespace, meta.name), meta.uid, wire.status.phase, meta.creation_timestamp)


def unprocessed(requests: Requests, now: datetime) -> tuple[Request, ...]:
    """Return the requests that have had no phase for minutes, the oldest first."""
    waiting = [
        request for several in requests.values() for request in several if not request.phase and is_late(request, now)
    ]
    return tuple(sorted(waiting, key=lambda request: (request.created or now, request.key)))


def is_late(request: Request, now: datetime) -> bool:
    """Return whether a request is older than an operator takes to process it."""
    return now - (request.created or now) > PROCESSED_WITHIN


def unprocessed_requests(seen: "Evidence") -> Iterator[Finding]:
    """Report the requests that no operator has processed, although one should."""
    late = [request for request in seen.unprocessed if not seen.unserved.get(request.kind)]
    if late:
        now = seen.server_time or seen.instant
        age = minutes(now - (late[0].created or now))
        names = some([str(request) for request in late])
        those = "1 request has" if len(late) == 1 else f"{len(late)} requests have"
        fix = "check the operator of self-service: findings pods and self-service, then its log"
        yield problem("requests", f"{those} had no status for up to {age}: no operator processes {names}", fix)
