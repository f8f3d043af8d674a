"""Rows of BackupStorageLocations."""

from datetime import datetime

import msgspec

from foresail.api import mirrored, velero


class LocationRow(msgspec.Struct, frozen=True):
    """A BackupStorageLocation."""

    name: str
    authority: str  # an additional CA certificate in PEM; empty if there is none
    is_default: bool = False
    is_read_only: bool = False
    is_available: bool = True
    last_synced: datetime | None = None  # when Velero last compared its Backups with the bucket
    storage: str = ""  # bucket and prefix: what stays the same when the location is created again


def location_row(wire: mirrored.Location) -> LocationRow:
    """Return what is kept of a BackupStorageLocation."""
    stored = wire.spec.object_storage
    return LocationRow(
        name=wire.metadata.name,
        authority=stored.ca_cert.decode() if stored is not None and stored.ca_cert else "",
        is_default=bool(wire.spec.default),
        is_read_only=wire.spec.is_read_only,
        is_available=wire.status.phase == velero.AVAILABLE,
        last_synced=wire.status.last_synced_time,
        storage=storage_of(wire),
    )


def storage_of(wire: mirrored.Location) -> str:
    """Return bucket and prefix of a location; a bucket's name has no slash."""
    stored = wire.spec.object_storage
    return f"{stored.bucket}/{stored.prefix.strip('/')}" if stored is not None and stored.bucket else ""
