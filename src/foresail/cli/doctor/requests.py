"""Requests of tenants, and those that no operator has processed."""

from collections.abc import Collection, Container, Iterable, Mapping
from datetime import datetime, timedelta

import msgspec

from foresail.api import mirrored, nonadmin, velero
from foresail.api.metadata import Metadata, Named
from foresail.api.nonadmin import (
    NON_ADMIN_BACKUP,
    NON_ADMIN_DOWNLOAD_REQUEST,
    NON_ADMIN_LOCATION,
    NON_ADMIN_LOCATION_REQUEST,
    NON_ADMIN_RESTORE,
    NON_ADMIN_SCHEDULE,
)
from foresail.cli.access.cluster import Cluster, refusal
from foresail.cli.access.together import all_of
from foresail.kube.failures import Cause, Failure
from foresail.kube.pages import ListMetadata, read_pages
from foresail.plan import Key, Kind
from foresail.selfservice.families import BACKUPS, FAMILIES, RESTORES
from foresail.selfservice.garbage.decide import (
    GarbageView,
    approval_view,
    deletion_view,
    location_view,
    restore_view,
)
from foresail.selfservice.rows.locations import ApprovalRow, LocationRow, approval_row, location_row
from foresail.selfservice.rows.velero import DeletionRow, VeleroRow, deletion_row, location_of, velero_row

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


Uids = Mapping[Key, str]


class Ownerless(msgspec.Struct, frozen=True):
    """Objects in Velero's namespace whose request or location does not exist."""

    ours: tuple[GarbageView, ...] = ()
    others: tuple[str, ...] = ()  # without UIDs in their record: of the existing controller


async def read_ownerless(cluster: Cluster, namespace: str, requests: Requests) -> Ownerless:
    """Read the Velero objects of tenants, and return those without a request."""
    uids = {family.word: {request.key: request.uid for request in requests.get(family.kind, ())} for family in FAMILIES}
    decode = msgspec.json.Decoder(mirrored.Mirrored).decode
    restores = [velero_row(decode(raw), RESTORES) for raw in await cluster.listed_if_known(velero.RESTORE, namespace)]
    asked = await cluster.listed_if_known(velero.DELETE_REQUEST, namespace)
    deletions = [deletion_row(msgspec.json.decode(raw, type=mirrored.MirroredDeletion)) for raw in asked]
    garbage = ownerless(restores, deletions, uids)
    return msgspec.structs.replace(garbage, ours=(*garbage.ours, *await _of_locations(cluster, namespace)))


async def _of_locations(cluster: Cluster, namespace: str) -> Iterable[GarbageView]:
    """Return what was made for tenants' locations that do not exist."""
    location = msgspec.json.Decoder(mirrored.Location).decode
    approval = msgspec.json.Decoder(nonadmin.Approval).decode
    backup = msgspec.json.Decoder(mirrored.Mirrored).decode
    places = [location_row(location(raw)) for raw in await cluster.listed_if_known(velero.LOCATION, namespace)]
    kind = NON_ADMIN_LOCATION_REQUEST
    asked = [approval_row(approval(raw)) for raw in await cluster.listed_if_known(kind, namespace)]
    if not asked and all(place.owner is None for place in places):
        return ()
    uids = await _uids(cluster, NON_ADMIN_LOCATION)
    backups = [velero_row(backup(raw), BACKUPS) for raw in await cluster.listed_if_known(velero.BACKUP, namespace)]
    return ownerless_locations(places, asked, uids, {location_of(row) for row in backups}, namespace)


def ownerless_locations(
    places: Collection[LocationRow], asked: Iterable[ApprovalRow], uids: Uids, used: Container[str], namespace: str
) -> tuple[GarbageView, ...]:
    """Return the locations without a Backup, and the requests for approval of no other, whose owner does not exist."""
    kept = {place.name for place in places if place.name in used}
    views: list[tuple[LocationRow | ApprovalRow, GarbageView | None]] = [
        (place, location_view(place, namespace)) for place in places if place.name not in kept
    ]
    views += [(approval, approval_view(approval)) for approval in asked if approval.key.name not in kept]
    return tuple(
        view
        for row, view in views
        if view is not None and row.owner is not None and uids.get(row.owner) != row.request_uid
    )


async def _uids(cluster: Cluster, kind: Kind) -> Uids:
    decode = msgspec.json.Decoder(Named).decode
    owned = [decode(raw).metadata for raw in await cluster.listed_if_known(kind)]
    return {Key(metadata.namespace, metadata.name): metadata.uid for metadata in owned}


def ownerless(restores: Iterable[VeleroRow], deletions: Iterable[DeletionRow], uids: Mapping[str, Uids]) -> Ownerless:
    """Return the objects whose request does not exist, by the UID in their record or, without one, by name."""
    ours: list[GarbageView] = []
    others: list[str] = []
    views: list[tuple[VeleroRow | DeletionRow, GarbageView | None]] = [
        (restore, restore_view(restore)) for restore in restores
    ]
    views += [(deletion, deletion_view(deletion)) for deletion in deletions]
    for row, view in views:
        known = uids[RESTORES.word if isinstance(row, VeleroRow) else BACKUPS.word]
        if view is not None and row.owner is not None and known.get(row.owner) != row.request_uid:
            ours.append(view)
        elif row.owner is not None and not row.request_uid and row.owner not in known:
            kind = RESTORES.velero if isinstance(row, VeleroRow) else velero.DELETE_REQUEST
            others.append(f"{kind.name} {row.key.name}")
    return Ownerless(tuple(ours), tuple(others))
