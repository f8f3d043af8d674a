"""Where backups are stored, and whether Velero would store one there now."""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from foresail.api import mirrored, velero
from foresail.selfservice.reasons import Reason, Refused


class LocationRow(msgspec.Struct, frozen=True):
    """A BackupStorageLocation."""

    name: str
    authority: str  # in PEM: whom to trust there beside those whom everybody trusts; empty if nobody
    is_default: bool = False
    is_read_only: bool = False
    is_available: bool = True
    last_synced: datetime | None = None  # when Velero last compared its Backups with the bucket


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
    )


def closed(name: str, locations: Iterable[LocationRow]) -> Refused | None:
    """Say why Velero would refuse a backup for its location, the default one if it names none; None if it would not.

    Of a location that is not there Velero itself says so: it is a name to be corrected, and not one to be waited for.
    What Velero says about one that it cannot reach is for the administrator: it names addresses and buckets.
    """
    rows = {row.name: row for row in locations}
    meant = velero.location_meant(name, (row.name for row in rows.values() if row.is_default))
    row = rows.get(meant)
    if row is None or (row.is_available and not row.is_read_only):
        return None
    stands = "read-only" if row.is_read_only else "not available"
    text = f"storage location {meant} is {stands}: the backup starts by itself when that is over"
    return Refused(Reason.LOCATION_UNAVAILABLE, f"{text}; if it lasts, ask the administrator of the cluster")
