"""Rows of BackupStorageLocations."""

import sys
from datetime import datetime

import msgspec

from foresail.api import mirrored, nonadmin, velero
from foresail.api.marks import NAMESPACE_UID, REQUEST_HASH, REQUEST_UID, SUSPENDED
from foresail.cron.duration import nanoseconds
from foresail.plan import Key

ORIGIN_NAME = "openshift.io/oadp-nabsl-origin-name"
ORIGIN_NAMESPACE = nonadmin.LOCATION_ORIGIN
NACUUID_LABEL = "openshift.io/oadp-nabsl-origin-nacuuid"


class LocationRow(msgspec.Struct, frozen=True):
    """A BackupStorageLocation, whoever made it, with the record of whose it is."""

    name: str
    authority: str  # an additional CA certificate in PEM; empty if there is none
    is_default: bool = False
    is_read_only: bool = False
    is_available: bool = True
    last_synced: datetime | None = None  # when Velero last compared its Backups with the bucket
    storage: str = ""  # the bucket and prefix that records are signed for; empty if it is a tenant's own
    is_synced: bool = True  # whether Velero ever does
    phase: str = ""
    uid: str = ""
    owner: Key | None = None  # the tenant's NonAdminBackupStorageLocation; None if it is the administrator's
    request_uid: str = ""
    namespace_uid: str = ""
    request_hash: str = ""  # of the spec and the credentials that are in place; empty if there are none yet
    suspended: str = ""  # why it takes no backups of its tenant any more
    created: datetime | None = None


def location_row(wire: mirrored.Location) -> LocationRow:
    """Return what is kept of a BackupStorageLocation."""
    stored = wire.spec.object_storage
    annotations = wire.metadata.annotations or {}
    name = annotations.get(ORIGIN_NAME)
    namespace = annotations.get(ORIGIN_NAMESPACE)
    period = wire.spec.backup_sync_period
    owner = Key(sys.intern(namespace), name) if name and namespace else None
    return LocationRow(
        name=wire.metadata.name,
        authority=stored.ca_cert.decode(errors="replace") if stored is not None and stored.ca_cert else "",
        is_default=bool(wire.spec.default),
        is_read_only=wire.spec.is_read_only,
        is_available=wire.status.phase == velero.AVAILABLE,
        last_synced=wire.status.last_synced_time,
        storage=storage_of(wire) if owner is None else "",
        is_synced=period is None or nanoseconds(period) != 0,
        phase=sys.intern(wire.status.phase),
        uid=wire.metadata.uid,
        owner=owner,
        request_uid=annotations.get(REQUEST_UID, ""),
        namespace_uid=annotations.get(NAMESPACE_UID, ""),
        request_hash=annotations.get(REQUEST_HASH, ""),
        suspended=sys.intern(annotations.get(SUSPENDED, "")),
        created=wire.metadata.creation_timestamp,
    )


def storage_of(wire: mirrored.Location) -> str:
    """Return bucket and prefix of a location, which stay the same when it is created again.

    A bucket's name has no slash.
    """
    stored = wire.spec.object_storage
    return f"{stored.bucket}/{stored.prefix.strip('/')}" if stored is not None and stored.bucket else ""
