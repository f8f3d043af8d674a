"""Velero's kinds as self-service reads them: raw spec and status to mirror, and the few fields that decisions need.

Mirrored content has no type here, so fields and phases of a later Velero are mirrored too.
"""

from datetime import datetime

import msgspec

from foresail.api import velero
from foresail.api.metadata import Metadata, Written

_NOTHING = msgspec.Raw(b"{}")


class Mirrored(msgspec.Struct, frozen=True):
    """A Backup or a Restore."""

    metadata: Metadata
    spec: msgspec.Raw = _NOTHING
    status: msgspec.Raw = _NOTHING


class MirroredDeletion(msgspec.Struct, frozen=True):
    """A DeleteBackupRequest."""

    metadata: Written
    status: msgspec.Raw = _NOTHING


class Download(msgspec.Struct, frozen=True):
    """A DownloadRequest."""

    metadata: Metadata
    spec: velero.DownloadSpec = velero.DownloadSpec()
    status: msgspec.Raw = _NOTHING


class Progress(msgspec.Struct, frozen=True, rename="camel"):
    """The number of items."""

    total_items: int = 0
    items_backed_up: int = 0


class HookStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The number of hooks."""

    hooks_failed: int = 0


class Glimpse(msgspec.Struct, frozen=True, rename="camel"):
    """What decisions need of a mirrored status."""

    phase: str = ""
    queue_position: int = 0
    expiration: datetime | None = None
    errors: int | list[str] = 0  # a number in a Backup or Restore, texts in a DeleteBackupRequest
    warnings: int = 0
    failure_reason: str = ""
    validation_errors: list[str] | None = None
    progress: Progress | None = None
    hook_status: HookStatus | None = None
    start_timestamp: datetime | None = None
    completion_timestamp: datetime | None = None
    volume_snapshots_completed: int = 0
    csi_volume_snapshots_completed: int = 0


class MovementProgress(msgspec.Struct, frozen=True, rename="camel"):
    """How much of the data of one volume was moved; Velero estimates the total at first."""

    total_bytes: int = 0
    bytes_done: int = 0


class MovementStatus(msgspec.Struct, frozen=True):
    """The phase of the data of one volume, how far it is, and its snapshot in the repository."""

    phase: str = ""
    progress: MovementProgress | None = None
    snapshot_id: str = msgspec.field(default="", name="snapshotID")


class Movement(msgspec.Struct, frozen=True):
    """The transfer of one volume: DataUpload, PodVolumeBackup, DataDownload or PodVolumeRestore."""

    metadata: Metadata
    status: MovementStatus = MovementStatus()


class Stored(msgspec.Struct, frozen=True, rename="camel"):
    """The storage location in the spec of a Backup."""

    storage_location: str = ""


class ObjectStorage(msgspec.Struct, frozen=True, rename="camel"):
    """A bucket and its CA certificate in PEM."""

    bucket: str = ""
    prefix: str = ""
    ca_cert: bytes | None = None


class LocationSpec(velero.LocationSpec, frozen=True, rename="camel"):
    """The spec of a location, with its bucket."""

    object_storage: ObjectStorage | None = None
    backup_sync_period: str | None = None


class LocationStatus(velero.LocationStatus, frozen=True, rename="camel"):
    """The status of a location, with the time of Velero's last sync."""

    last_synced_time: datetime | None = None


class Location(velero.Location, frozen=True):
    """A BackupStorageLocation."""

    spec: LocationSpec = LocationSpec()
    status: LocationStatus = LocationStatus()
