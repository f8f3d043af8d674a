"""The tenants' kinds with all fields: backups, restores, downloads, schedules, storage locations and approvals.

Group, names and fields are those of the existing controller, plus `forceDeleteBackup`. Velero's status is mirrored
without a schema: a phase that a later Velero adds must not make a status invalid.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from foresail.api.specs import BackupSpec, BackupStorageLocationSpec, RestoreSpec, Wire

Phase = Literal["New", "BackingOff", "Created", "Deleting"]
DownloadTarget = Literal[
    "BackupLog",
    "BackupContents",
    "BackupVolumeSnapshots",
    "BackupItemOperations",
    "BackupResourceList",
    "BackupResults",
    "RestoreLog",
    "RestoreResults",
    "RestoreResourceList",
    "RestoreItemOperations",
    "CSIBackupVolumeSnapshots",
    "CSIBackupVolumeSnapshotContents",
    "BackupVolumeInfos",
    "RestoreVolumeInfo",
]
"""All targets of Velero, so that the operator refuses unsupported ones with a reason."""

Mirror = dict[str, Any]


class Condition(Wire, frozen=True):
    """A condition."""

    type: Annotated[str, msgspec.Meta(min_length=1, max_length=316)]
    status: Literal["True", "False", "Unknown"]
    reason: Annotated[
        str, msgspec.Meta(min_length=1, max_length=1024, pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    ]
    message: Annotated[str, msgspec.Meta(max_length=32768)]
    last_transition_time: Annotated[datetime, msgspec.Meta(description="When the status last changed.")]
    observed_generation: Annotated[
        int, msgspec.Meta(ge=0, description="Generation of the spec that this condition describes.")
    ] = 0


Conditions = Annotated[
    tuple[Condition, ...],
    msgspec.Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
]


class QueueInfo(Wire, frozen=True):
    """The position in Velero's queue."""

    estimated_queue_position: Annotated[
        int,
        msgspec.Meta(
            ge=0, description="0: finished. 1: running, or next to run. Larger numbers: the position in the queue."
        ),
    ]


class Movements(Wire, frozen=True):
    """Number of volumes by phase; other phases of Velero count only in the total.

    While it runs, also bytes: how many were moved, and how many the volumes that have begun have, by Velero's estimate.
    """

    total: int = 0
    new: int = 0
    accepted: int = 0
    prepared: int = 0
    in_progress: int = 0
    canceling: int = 0
    canceled: int = 0
    failed: int = 0
    completed: int = 0
    bytes_done: int = 0
    total_bytes: int = 0


class VeleroBackup(Wire, frozen=True):
    """The Velero Backup of the request, as last observed."""

    nacuuid: str = ""
    name: str = ""
    namespace: str = ""
    spec: Mirror = msgspec.field(default_factory=dict)
    status: Mirror = msgspec.field(default_factory=dict)


class VeleroObject(Wire, frozen=True):
    """A Velero object of the request, as last observed."""

    nacuuid: str = ""
    name: str = ""
    namespace: str = ""
    status: Mirror = msgspec.field(default_factory=dict)


class NonAdminBackupSpec(Wire, frozen=True):
    """What to back up, and whether to delete the backup."""

    backup_spec: Annotated[BackupSpec, msgspec.Meta(description="What to back up; empty means the whole namespace.")]
    delete_backup: Annotated[
        bool, msgspec.Meta(description="Deletes the backup with its data, and then this object. Cannot be undone.")
    ] = False
    force_delete_backup: Annotated[
        bool,
        msgspec.Meta(description="Deletes this object at once; data in the bucket may stay. Cannot be undone."),
    ] = False


class VolumesLeftOut(Wire, frozen=True):
    """The volumes of the namespace whose data a complete backup has not."""

    count: int = 0
    claims: Annotated[
        tuple[Annotated[str, msgspec.Meta(max_length=253)], ...],
        msgspec.Meta(max_length=20, description="The first of their claims; none where only their number is known."),
    ] = ()


class NonAdminBackupStatus(Wire, frozen=True):
    """The status of the backup."""

    phase: Phase = "New"
    conditions: Conditions = ()
    queue_info: QueueInfo = QueueInfo(0)
    velero_backup: VeleroBackup = VeleroBackup()
    velero_delete_backup_request: VeleroObject = VeleroObject()
    data_mover_data_uploads: Movements = Movements()
    file_system_pod_volume_backups: Movements = Movements()
    volumes_left_out: VolumesLeftOut | None = None


class NonAdminBackup(Wire, frozen=True):
    """Backs up its namespace."""

    spec: NonAdminBackupSpec
    status: NonAdminBackupStatus = NonAdminBackupStatus()


class ScheduleTemplate(Wire, frozen=True):
    """What each run backs up; labels and annotations of its backups are not a tenant's to choose."""

    backup_spec: Annotated[BackupSpec, msgspec.Meta(description="What to back up; empty means the whole namespace.")]


class NonAdminScheduleSpec(Wire, frozen=True):
    """When to back up, and what."""

    schedule: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=1024,
            description="A cron expression as CronJobs have it, in UTC; CRON_TZ=ZONE before it names another zone.",
        ),
    ]
    template: ScheduleTemplate
    paused: Annotated[bool, msgspec.Meta(description="Whether no run starts.")] = False
    skip_immediately: Annotated[
        bool,
        msgspec.Meta(
            description="Skips a run that is due at this moment; removed from the spec as soon as it is applied."
        ),
    ] = False


class RecentBackup(Wire, frozen=True):
    """One run as it was last seen."""

    name: Annotated[str, msgspec.Meta(description="The NonAdminBackup.")] = ""
    velero_backup_name: str = ""
    phase: Annotated[str, msgspec.Meta(description="Of the Velero Backup; before there is one, of the request.")] = ""
    start_timestamp: datetime | None = None
    completion_timestamp: datetime | None = None
    expiration: datetime | None = None


class ObservedSchedule(Wire, frozen=True):
    """What the operator remembers of a schedule between two runs."""

    record: str = ""
    clearing: int = 0


class NonAdminScheduleStatus(Wire, frozen=True):
    """When the schedule runs next, and how its last runs went."""

    phase: Phase = "New"
    conditions: Conditions = ()
    next_run: Annotated[datetime, msgspec.Meta(description="With the delay of the policy.")] | None = None
    last_backup: Annotated[datetime, msgspec.Meta(description="The slot of the last run.")] | None = None
    last_skipped: Annotated[datetime, msgspec.Meta(description="When skipImmediately was last applied.")] | None = None
    recent_backups: Annotated[tuple[RecentBackup, ...], msgspec.Meta(max_length=5)] = ()
    velero_schedule: Annotated[
        VeleroObject, msgspec.Meta(description="Always unset: there is no Velero Schedule behind it.")
    ] = VeleroObject()
    observed: ObservedSchedule = ObservedSchedule()


class NonAdminSchedule(Wire, frozen=True):
    """Backs up its namespace on a schedule."""

    spec: NonAdminScheduleSpec
    status: NonAdminScheduleStatus = NonAdminScheduleStatus()


class FromProtection(Wire, frozen=True):
    """A point in time that the Protection of the namespace lists."""

    backup: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=253,
            description="A Velero Backup of a ProtectionClass with restore.byTenants, taken of this namespace.",
        ),
    ]


class NonAdminRestoreSpec(Wire, frozen=True):
    """What to restore."""

    restore_spec: Annotated[
        RestoreSpec,
        msgspec.Meta(
            description="What to restore; backupName is a NonAdminBackup of this namespace, unset with fromProtection."
        ),
    ]
    from_protection: (
        Annotated[
            FromProtection,
            msgspec.Meta(description="Restores this namespace from a backup that its ProtectionClass made."),
        ]
        | None
    ) = None
    retried_at: (
        Annotated[
            datetime,
            msgspec.Meta(
                description="Any new value asks again for a restore that was refused or has expired.",
                extra_json_schema={"maxLength": 64},
            ),
        ]
        | None
    ) = None


class RestoredGroup(Wire, frozen=True):
    """Objects that the restore treated alike."""

    count: int = 0
    names: Annotated[
        tuple[Annotated[str, msgspec.Meta(max_length=320)], ...],
        msgspec.Meta(max_length=5, description="The first of them, each with its kind."),
    ] = ()


class RestoredItems(Wire, frozen=True):
    """What the restore did to the objects of the namespace, by Velero's list of them."""

    created: RestoredGroup = RestoredGroup()
    changed_back: Annotated[
        RestoredGroup, msgspec.Meta(description="Objects that existed and were changed to what they were.")
    ] = RestoredGroup()
    left: Annotated[
        RestoredGroup, msgspec.Meta(description="Objects that exist and differ; they were left as they are.")
    ] = RestoredGroup()
    failed: RestoredGroup = RestoredGroup()
    unchanged: Annotated[int, msgspec.Meta(description="Objects that are what they were, or need no restore.")] = 0
    following: Annotated[
        int, msgspec.Meta(description="Objects that Kubernetes makes for others, such as Pods of a ReplicaSet.")
    ] = 0


class NonAdminRestoreStatus(Wire, frozen=True):
    """The status of the restore."""

    phase: Phase = "New"
    conditions: Conditions = ()
    queue_info: QueueInfo = QueueInfo(0)
    starting_deadline: (
        Annotated[datetime, msgspec.Meta(description="Until when the restore starts; after that it has expired.")]
        | None
    ) = None
    velero_restore: VeleroObject = VeleroObject()
    data_mover_data_downloads: Movements = Movements()
    file_system_pod_volume_restores: Movements = Movements()
    restored_items: RestoredItems | None = None


class NonAdminRestore(Wire, frozen=True):
    """Restores its namespace from a NonAdminBackup of the same namespace."""

    spec: NonAdminRestoreSpec
    status: NonAdminRestoreStatus = NonAdminRestoreStatus()


class Target(Wire, frozen=True):
    """One file that Velero keeps about a backup or a restore."""

    kind: Annotated[
        DownloadTarget,
        msgspec.Meta(description="The file. Files with backed-up objects need a policy that allows contents."),
    ]
    name: Annotated[
        str,
        msgspec.Meta(
            min_length=1, max_length=253, description="The NonAdminBackup or NonAdminRestore, in this namespace."
        ),
    ]


class NonAdminDownloadRequestSpec(Wire, frozen=True):
    """What to download."""

    target: Target


class DownloadReply(Wire, frozen=True):
    """The status of Velero's DownloadRequest, with `downloadURL` and `expiration`."""

    status: Mirror = msgspec.field(default_factory=dict)


class NonAdminDownloadRequestStatus(Wire, frozen=True):
    """The status of the download."""

    phase: Phase = "New"
    conditions: Conditions = ()
    velero: DownloadReply = DownloadReply()


class NonAdminDownloadRequest(Wire, frozen=True):
    """Requests a file that Velero keeps about the tenant's own backup or restore."""

    spec: NonAdminDownloadRequestSpec
    status: NonAdminDownloadRequestStatus = NonAdminDownloadRequestStatus()


class NonAdminBackupStorageLocationSpec(Wire, frozen=True):
    """Where the tenant's own bucket is."""

    backup_storage_location_spec: Annotated[
        BackupStorageLocationSpec,
        msgspec.Meta(description="The bucket; credential names a Secret of this namespace."),
    ]


class NonAdminBackupStorageLocationStatus(Wire, frozen=True):
    """Whether the location can be used."""

    phase: Phase = "New"
    conditions: Conditions = ()
    velero_backup_storage_location: VeleroObject = VeleroObject()


class NonAdminBackupStorageLocation(Wire, frozen=True):
    """Lets the backups of this namespace go to a bucket of the tenant."""

    spec: NonAdminBackupStorageLocationSpec
    status: NonAdminBackupStorageLocationStatus = NonAdminBackupStorageLocationStatus()


Decision = Literal["approve", "reject", "pending"]
RequestPhase = Literal["Pending", "Approved", "Rejected"]


class NonAdminBackupStorageLocationRequestSpec(Wire, frozen=True):
    """What the administrator decides."""

    approval_decision: Annotated[
        Decision, msgspec.Meta(description="approve, reject or pending; pending and reject also revoke an approval.")
    ] = "pending"
    approved_request: Annotated[
        str,
        msgspec.Meta(
            max_length=64,
            description="requestHash of the request that was approved; if set, approves nothing else.",
        ),
    ] = ""


class RequestedLocation(Wire, frozen=True):
    """What the tenant asks for."""

    requested_spec: BackupStorageLocationSpec
    nacuuid: str = ""
    name: str = ""
    namespace: str = ""
    request_hash: Annotated[
        str, msgspec.Meta(description="Hash of the requested spec and of the credentials, which it does not reveal.")
    ] = ""
    approved_hash: Annotated[str, msgspec.Meta(description="requestHash that the current approval is for.")] = ""


class NonAdminBackupStorageLocationRequestStatus(Wire, frozen=True):
    """What is asked for, and how it was decided."""

    phase: RequestPhase = "Pending"
    non_admin_backup_storage_location: RequestedLocation | None = None


class NonAdminBackupStorageLocationRequest(Wire, frozen=True):
    """Asks the administrator to approve a tenant's location; the operator creates it in Velero's namespace."""

    spec: NonAdminBackupStorageLocationRequestSpec = NonAdminBackupStorageLocationRequestSpec()
    status: NonAdminBackupStorageLocationRequestStatus = NonAdminBackupStorageLocationRequestStatus()
