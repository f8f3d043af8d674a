"""The tenants' kinds as the operator reads them, with raw specs and mirrored status."""

from datetime import datetime

import msgspec

from foresail.api import velero
from foresail.api.metadata import Metadata
from foresail.plan import Kind

GROUP = "oadp.openshift.io"
NON_ADMIN_BACKUP = Kind(GROUP, "v1alpha1", "nonadminbackups", "NonAdminBackup")
NON_ADMIN_RESTORE = Kind(GROUP, "v1alpha1", "nonadminrestores", "NonAdminRestore")
NON_ADMIN_DOWNLOAD_REQUEST = Kind(GROUP, "v1alpha1", "nonadmindownloadrequests", "NonAdminDownloadRequest")
NON_ADMIN_SCHEDULE = Kind(GROUP, "v1alpha1", "nonadminschedules", "NonAdminSchedule")
NON_ADMIN_LOCATION = Kind(GROUP, "v1alpha1", "nonadminbackupstoragelocations", "NonAdminBackupStorageLocation")
NON_ADMIN_LOCATION_REQUEST = Kind(
    GROUP, "v1alpha1", "nonadminbackupstoragelocationrequests", "NonAdminBackupStorageLocationRequest"
)

NEVER_BACKED_UP = (f"*.{GROUP}", "rollbacks.foresail.dev")
"""The requests themselves: brought back, they would ask again."""

LABELS = {"openshift.io/oadp": "True", "app.kubernetes.io/managed-by": "oadp-nac-controller"}
"""On every Velero object of a tenant, by whichever controller."""

SYNCED_FROM = "openshift.io/oadp-nab-synced-from-nacuuid"
"""The label of a NonAdminBackup that was made for an existing Velero Backup, with the name of that."""

LOCATION_ORIGIN = "openshift.io/oadp-nabsl-origin-namespace"
"""The annotation of a Velero BackupStorageLocation in a tenant's own bucket, with the namespace of that tenant."""

_NOTHING = msgspec.Raw(b"{}")


class OwnedFields(msgspec.Struct, frozen=True):
    """The fields that a writer owns, as far as they matter: those of the spec."""

    spec: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="f:spec")


class FieldsWrite(msgspec.Struct, frozen=True, rename="camel"):
    """When a writer last wrote its fields, and which they are."""

    time: datetime | None = None
    subresource: str = ""
    fields_v1: OwnedFields = OwnedFields()


class RequestMetadata(Metadata, frozen=True, rename="camel"):
    """Metadata with the generation, the finalizers, and who wrote what."""

    generation: int = 0
    finalizers: tuple[str, ...] = ()
    managed_fields: tuple[FieldsWrite, ...] = ()

    @property
    def spec_written(self) -> datetime | None:
        """When somebody last wrote to the spec, at the latest; None if the API server does not tell."""
        writes = (write for write in self.managed_fields if not write.subresource and bytes(write.fields_v1.spec))
        return max((write.time for write in writes if write.time is not None), default=None)


class Condition(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A condition; the time changes only with the status."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int = 0


class Reference(msgspec.Struct, frozen=True):
    """A Velero object and its last mirrored state."""

    nacuuid: str = ""
    name: str = ""
    namespace: str = ""
    spec: msgspec.Raw = _NOTHING
    status: msgspec.Raw = _NOTHING


class QueueInfo(msgspec.Struct, frozen=True, rename="camel"):
    """The position in Velero's queue."""

    estimated_queue_position: int | None = None


NOTHING_TO_RESTORE = "Nothing in the backup matches the restore; change spec.restoreSpec.includedResources"
"""How self-service refuses a restore of kinds that the backup does not have."""


class RestoredGroup(msgspec.Struct, frozen=True, omit_defaults=True):
    """Objects that a restore treated alike: how many, and the first of them."""

    count: int = 0
    names: tuple[str, ...] = ()


class RestoredItems(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a restore did to the objects of its namespace."""

    created: RestoredGroup = RestoredGroup()
    changed_back: RestoredGroup = RestoredGroup()
    left: RestoredGroup = RestoredGroup()  # they exist and differ
    failed: RestoredGroup = RestoredGroup()
    unchanged: int = 0
    following: int = 0  # Kubernetes makes them for others, as Pods for a ReplicaSet


class VolumesLeftOut(msgspec.Struct, frozen=True, omit_defaults=True):
    """The volumes of the namespace that a complete backup has not: how many, and their claims as far as known."""

    count: int = 0
    claims: tuple[str, ...] = ()

    @property
    def all_claims(self) -> frozenset[str] | None:
        """Their claims; None if not all of them are named."""
        return frozenset(self.claims) if len(self.claims) == self.count else None


class RequestStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The status of both kinds; of each pair of fields, one belongs to backups and one to restores."""

    phase: str = ""
    conditions: list[Condition] | None = None
    queue_info: QueueInfo | None = None
    starting_deadline: str = ""
    velero_backup: Reference | None = None
    velero_restore: Reference | None = None
    velero_delete_backup_request: Reference | None = None
    data_mover_data_uploads: dict[str, int] | None = None
    data_mover_data_downloads: dict[str, int] | None = None
    file_system_pod_volume_backups: dict[str, int] | None = None
    file_system_pod_volume_restores: dict[str, int] | None = None
    restored_items: RestoredItems | None = None
    volumes_left_out: VolumesLeftOut | None = None


class FromProtection(msgspec.Struct, frozen=True):
    """The backup of a ProtectionClass that a restore names."""

    backup: str = ""


class RequestSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of a request."""

    backup_spec: msgspec.Raw = _NOTHING
    restore_spec: msgspec.Raw = _NOTHING
    from_protection: FromProtection | None = None
    delete_backup: bool | None = None
    force_delete_backup: bool | None = None


class Request(msgspec.Struct, frozen=True):
    """A NonAdminBackup or a NonAdminRestore."""

    metadata: RequestMetadata
    spec: RequestSpec = RequestSpec()
    status: RequestStatus = RequestStatus()


class ScheduleTemplate(msgspec.Struct, frozen=True, rename="camel"):
    """What each run backs up."""

    backup_spec: msgspec.Raw = _NOTHING


class ScheduleSpec(msgspec.Struct, frozen=True, rename="camel"):
    """When a tenant wants backups, and of what."""

    schedule: str = ""
    paused: bool | None = None
    skip_immediately: bool | None = None
    template: ScheduleTemplate = ScheduleTemplate()


class RecentBackup(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One run as it was last observed."""

    name: str = ""
    velero_backup_name: str = ""
    phase: str = ""
    start_timestamp: str = ""
    completion_timestamp: str = ""
    expiration: str = ""


class ObservedSchedule(msgspec.Struct, frozen=True):
    """What was last observed of a schedule, as far as later decisions depend on it."""

    record: str = ""
    clearing: int = 0


class ScheduleStatus(msgspec.Struct, frozen=True, rename="camel"):
    """When a schedule runs next, and how its last runs went."""

    phase: str = ""
    conditions: list[Condition] | None = None
    next_run: str = ""
    last_backup: datetime | None = None
    last_skipped: datetime | None = None
    recent_backups: list[RecentBackup] | None = None
    observed: ObservedSchedule | None = None


class Schedule(msgspec.Struct, frozen=True):
    """A NonAdminSchedule."""

    metadata: RequestMetadata
    spec: ScheduleSpec = ScheduleSpec()
    status: ScheduleStatus = ScheduleStatus()


class RestoreSource(msgspec.Struct, frozen=True, rename="camel"):
    """The NonAdminBackup that a restoreSpec names, and the namespaces that it maps."""

    backup_name: str | None = None
    namespace_mapping: dict[str, str] | None = None


class DownloadReply(msgspec.Struct, frozen=True):
    """The answer of Velero."""

    status: msgspec.Raw = _NOTHING


class DownloadStatus(msgspec.Struct, frozen=True):
    """The status of a NonAdminDownloadRequest."""

    phase: str = ""
    conditions: list[Condition] | None = None
    velero: DownloadReply | None = None


class Download(msgspec.Struct, frozen=True):
    """A NonAdminDownloadRequest."""

    metadata: RequestMetadata
    spec: velero.DownloadSpec = velero.DownloadSpec()
    status: DownloadStatus = DownloadStatus()


class LocationSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Where a tenant's own bucket is."""

    backup_storage_location_spec: msgspec.Raw = _NOTHING


class LocationStatus(msgspec.Struct, frozen=True, rename="camel"):
    """Whether a tenant's own location can be used."""

    phase: str = ""
    conditions: list[Condition] | None = None
    velero_backup_storage_location: Reference | None = None


class Location(msgspec.Struct, frozen=True):
    """A NonAdminBackupStorageLocation."""

    metadata: RequestMetadata
    spec: LocationSpec = LocationSpec()
    status: LocationStatus = LocationStatus()


class ApprovalSpec(msgspec.Struct, frozen=True, rename="camel"):
    """What the administrator decided."""

    approval_decision: str = ""
    approved_request: str = ""


class RequestedLocation(msgspec.Struct, frozen=True, rename="camel"):
    """What was asked for when the administrator looked at it."""

    requested_spec: msgspec.Raw = _NOTHING
    nacuuid: str = ""
    name: str = ""
    namespace: str = ""
    request_hash: str = ""
    approved_hash: str = ""


class ApprovalStatus(msgspec.Struct, frozen=True, rename="camel"):
    """What is asked for, and how it was decided."""

    phase: str = ""
    non_admin_backup_storage_location: RequestedLocation | None = None


class Approval(msgspec.Struct, frozen=True):
    """A NonAdminBackupStorageLocationRequest."""

    metadata: Metadata
    spec: ApprovalSpec = ApprovalSpec()
    status: ApprovalStatus = ApprovalStatus()
