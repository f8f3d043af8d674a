"""Velero's kinds as they come over the wire: of each only what Foresail reads, everything else is skipped unread.

Velero's kinds have no status subresource: spec and status are written together, on the main resource.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from zlib import crc32

import msgspec

from foresail.api.metadata import Metadata, Written
from foresail.plan import Kind

GROUP = "velero.io"
SCHEDULE = Kind(GROUP, "v1", "schedules", "Schedule")
BACKUP = Kind(GROUP, "v1", "backups", "Backup")
LOCATION = Kind(GROUP, "v1", "backupstoragelocations", "BackupStorageLocation")
VOLUME_SNAPSHOT_LOCATION = Kind(GROUP, "v1", "volumesnapshotlocations", "VolumeSnapshotLocation")
RESTORE = Kind(GROUP, "v1", "restores", "Restore")
DELETE_REQUEST = Kind(GROUP, "v1", "deletebackuprequests", "DeleteBackupRequest")
DOWNLOAD_REQUEST = Kind(GROUP, "v1", "downloadrequests", "DownloadRequest")
POD_VOLUME_BACKUP = Kind(GROUP, "v1", "podvolumebackups", "PodVolumeBackup")
POD_VOLUME_RESTORE = Kind(GROUP, "v1", "podvolumerestores", "PodVolumeRestore")
DATA_UPLOAD = Kind(GROUP, "v2alpha1", "datauploads", "DataUpload")
DATA_DOWNLOAD = Kind(GROUP, "v2alpha1", "datadownloads", "DataDownload")
STATUS_REQUEST = Kind(GROUP, "v1", "serverstatusrequests", "ServerStatusRequest")

SCHEDULE_LABEL = "velero.io/schedule-name"
BACKUP_NAME_LABEL = "velero.io/backup-name"
BACKUP_UID_LABEL = "velero.io/backup-uid"
CLAIM_UID_LABEL = "velero.io/pvc-uid"
CLAIM_NAME_ANNOTATION = "velero.io/pvc-name"
RESTORE_NAME_LABEL = "velero.io/restore-name"

ENABLED = "Enabled"
FAILED_VALIDATION = "FailedValidation"
COMPLETED = "Completed"
PARTIALLY_FAILED = "PartiallyFailed"
FAILED = "Failed"
PROCESSED = "Processed"
DELETING = "Deleting"
AVAILABLE = "Available"
WAITING = frozenset({"", "New", "Queued"})
RUNNING = frozenset({"ReadyToStart", "InProgress"})
RESTORABLE = (COMPLETED, PARTIALLY_FAILED)
"""Phases of a Backup that can be restored from."""

TERMINAL = frozenset({COMPLETED, PARTIALLY_FAILED, FAILED, FAILED_VALIDATION, DELETING})
"""The phases of a Backup in which nothing runs any more; every other, one that we have never heard of too, is busy."""

AFTER_THE_QUEUE = frozenset(
    {
        "WaitingForPluginOperations",
        "WaitingForPluginOperationsPartiallyFailed",
        "Finalizing",
        "FinalizingPartiallyFailed",
    }
)
"""The phases in which a Backup is not finished, but no longer counts against Velero's concurrency."""

FINALIZING = frozenset({"Finalizing", "FinalizingPartiallyFailed"})
"""Those in which Velero does its last work; it does that of Restores one after the other."""

MOVED = frozenset({COMPLETED, FAILED, "Canceled"})
"""The phases in which the data of a volume is not moved any more."""

DELETION_TIME = timedelta(hours=1)
"""How long a deletion may take. A Velero that was killed amid it skips the request, and removes it after a day."""

REOPENED = {COMPLETED: "Finalizing", PARTIALLY_FAILED: "FinalizingPartiallyFailed"}
"""The phase from which Velero ends a Backup, by the one in which it is then."""

_STILL_RUNS = "backup is still in progress"  # Velero's own words, in the errors of a DeleteBackupRequest
_DEFAULT_LOCATION = "default"


def label_of(name: str) -> str:
    """Return a name as Velero writes it into a label."""
    longest = 63
    cut = 57
    return name if len(name) <= longest else name[:cut] + sha256(name.encode()).hexdigest()[: longest - cut]


def is_taken_for_running(phase: str, errors: Iterable[str]) -> bool:
    """Whether Velero refused to delete a Backup in this phase as one that runs, though it has ended by its own word.

    Velero puts a Backup on its list of those that run once more after another part of it has ended the Backup, if an
    answer of the API server is late, and takes it off only when it ends the Backup again or is restarted.
    """
    return phase in REOPENED and any(_STILL_RUNS in error for error in errors)


def stalls_at(phase: str, last_write: datetime) -> datetime | None:
    """Return when a deletion that Velero has begun counts as abandoned; None if it waits or has ended.

    Velero writes to the request when it begins and when it ends, and a request may wait long before the first.
    """
    return last_write + DELETION_TIME if phase == "InProgress" else None


class ScheduleSpec(msgspec.Struct, frozen=True, rename="camel"):
    """What a Schedule asks for; the template is passed on as it is, so it is not read here."""

    schedule: str = ""
    template: msgspec.Raw = msgspec.Raw(b"{}")
    paused: bool | None = None
    skip_immediately: bool | None = None
    use_owner_references_in_backup: bool | None = None


class ScheduleStatus(msgspec.Struct, frozen=True, rename="camel"):
    """What is remembered in a Schedule; these four fields are all that its definition keeps."""

    phase: str = ""
    last_backup: datetime | None = None
    last_skipped: datetime | None = None
    validation_errors: list[str] | None = None


class Schedule(msgspec.Struct, frozen=True):
    """A Schedule."""

    metadata: Metadata
    spec: ScheduleSpec = ScheduleSpec()
    status: ScheduleStatus = ScheduleStatus()


class TemplateMetadata(msgspec.Struct, frozen=True):
    """What a template says of the Backup itself; labels that are there, even none, replace the Schedule's."""

    labels: dict[str, str] | None = None


class Template(msgspec.Struct, frozen=True, rename="camel"):
    """The parts of a Backup's template that decide something before there is a Backup."""

    metadata: TemplateMetadata | None = None
    storage_location: str = ""
    included_namespaces: tuple[str, ...] | None = None
    ttl: Any = None


class BackupSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Where the data of a Backup is, and which objects it selects."""

    storage_location: str = ""
    included_namespaces: Any = None
    excluded_namespaces: Any = None
    included_resources: Any = None
    excluded_resources: Any = None
    included_cluster_scoped_resources: Any = None
    excluded_cluster_scoped_resources: Any = None
    included_namespace_scoped_resources: Any = None
    excluded_namespace_scoped_resources: Any = None
    include_cluster_resources: Any = None
    label_selector: Any = None
    or_label_selectors: Any = None
    resource_policy: Any = None

    @property
    def selection(self) -> int:
        """A digest of what it selects, by which two runs are compared."""
        return crc32(msgspec.json.encode(msgspec.structs.replace(self, storage_location=""), order="sorted"))


class BackupProgress(msgspec.Struct, frozen=True, rename="camel"):
    """How many objects a Backup has; Velero leaves out a zero."""

    items_backed_up: int = 0


class BackupStatus(msgspec.Struct, frozen=True, rename="camel"):
    """How far a Backup is."""

    phase: str = ""
    failure_reason: str = ""
    progress: BackupProgress | None = None
    start_timestamp: datetime | None = None
    completion_timestamp: datetime | None = None
    expiration: datetime | None = None
    volume_snapshots_completed: int = 0
    csi_volume_snapshots_completed: int = 0
    backup_item_operations_completed: int = 0

    @property
    def snapshots(self) -> int:
        """How many volumes have a snapshot; those that are moved are counted as operations, the others perhaps too."""
        moved = max(self.csi_volume_snapshots_completed, self.backup_item_operations_completed)
        return self.volume_snapshots_completed + moved


class Backup(msgspec.Struct, frozen=True):
    """A Backup."""

    metadata: Metadata
    spec: BackupSpec = BackupSpec()
    status: BackupStatus = BackupStatus()


class DeletionSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Which Backup to delete."""

    backup_name: str = ""


class DeletionStatus(msgspec.Struct, frozen=True):
    """How far a deletion is."""

    phase: str = ""
    errors: list[str] | None = None


class DeleteBackupRequest(msgspec.Struct, frozen=True):
    """A request to Velero to delete a Backup and its data."""

    metadata: Written
    spec: DeletionSpec = DeletionSpec()
    status: DeletionStatus = DeletionStatus()


class RestoreSpec(msgspec.Struct, frozen=True, rename="camel"):
    """From which Backup, or from the newest of which Schedule, and into which other namespaces."""

    backup_name: str = ""
    schedule_name: str = ""
    namespace_mapping: dict[str, str] | None = None


class RestoreStatus(msgspec.Struct, frozen=True, rename="camel"):
    """How far a Restore is."""

    phase: str = ""
    failure_reason: str = ""
    validation_errors: list[str] | None = None
    start_timestamp: datetime | None = None
    completion_timestamp: datetime | None = None


class Restore(msgspec.Struct, frozen=True):
    """A Restore."""

    metadata: Metadata
    spec: RestoreSpec = RestoreSpec()
    status: RestoreStatus = RestoreStatus()


class DownloadTarget(msgspec.Struct, frozen=True):
    """One file that Velero keeps about a Backup or a Restore."""

    kind: str = ""
    name: str = ""


class DownloadSpec(msgspec.Struct, frozen=True):
    """The spec of a DownloadRequest."""

    target: DownloadTarget = DownloadTarget()


class DownloadStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to a DownloadRequest."""

    download_url: str = msgspec.field(default="", name="downloadURL")
    expiration: datetime | None = None


class Download(msgspec.Struct, frozen=True):
    """A DownloadRequest."""

    metadata: Metadata
    spec: DownloadSpec = DownloadSpec()
    status: DownloadStatus = DownloadStatus()


class LocationSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Whether a location is the one that is meant when none is named, and whether it takes Backups."""

    default: bool | None = None
    access_mode: str = ""
    validation_frequency: str = ""  # empty: as Velero's flag says

    @property
    def is_read_only(self) -> bool:
        """Whether it takes none."""
        return self.access_mode == "ReadOnly"


class LocationStatus(msgspec.Struct, frozen=True, rename="camel"):
    """Whether Velero could reach a location when it last tried."""

    phase: str = ""
    message: str = ""
    last_validation_time: datetime | None = None


class Location(msgspec.Struct, frozen=True):
    """A BackupStorageLocation."""

    metadata: Metadata
    spec: LocationSpec = LocationSpec()
    status: LocationStatus = LocationStatus()


def resolve_location(name: str, defaults: Iterable[str]) -> str:
    """Return the name of the location that a Backup means: the one that it names, or the default one.

    If several are said to be that, it is the first by name; if none is, Velero takes the one of that name.
    """
    return name or min(defaults, default=_DEFAULT_LOCATION)


class StatusRequestStatus(msgspec.Struct, frozen=True, rename="camel"):
    """What Velero answered."""

    phase: str = ""
    server_version: str = ""


class StatusRequest(msgspec.Struct, frozen=True):
    """A question to the Velero server for its version."""

    metadata: Metadata
    status: StatusRequestStatus = StatusRequestStatus()
