"""The reasons of a tenant's request in conditions, Events and metrics."""

from enum import StrEnum

import msgspec


class Reason(StrEnum):
    """The words; programs know them, so they do not change. The first three groups are the existing controller's."""

    INVALID_BACKUP_SPEC = "InvalidBackupSpec"
    BACKUP_ACCEPTED = "BackupAccepted"
    BACKUP_SCHEDULED = "BackupScheduled"
    VELERO_BACKUP_NOT_FOUND = "VeleroBackupNotFound"
    DELETION_PENDING = "DeletionPending"

    INVALID_RESTORE_SPEC = "InvalidRestoreSpec"
    RESTORE_ACCEPTED = "RestoreAccepted"
    RESTORE_SCHEDULED = "RestoreScheduled"
    VELERO_RESTORE_NOT_FOUND = "VeleroRestoreNotFound"

    INVALID_SCHEDULE_SPEC = "InvalidScheduleSpec"
    SCHEDULE_ACCEPTED = "ScheduleAccepted"

    BSL_SPEC_VALIDATION = "BslSpecValidation"
    BSL_SPEC_APPROVAL_PENDING = "BslSpecApprovalPending"
    BSL_SPEC_APPROVED = "BslSpecApproved"
    BSL_SPEC_REJECTED = "BslSpecRejected"
    SECRET_CREATED = "SecretCreated"  # noqa: S105 - a reason
    SECRET_UPDATED = "SecretUpdated"  # noqa: S105 - a reason
    SECRET_SYNC_FAILED = "SecretSyncFailed"  # noqa: S105 - a reason
    BSL_CREATED = "BackupStorageLocationCreated"
    BSL_SYNC_ERROR = "BackupStorageLocationSyncError"

    RETENTION_APPLIES = "RetentionApplies"
    RETENTION_IN_DOUBT = "RetentionInDoubt"
    RETENTION_NOT_APPROVED = "RetentionNotApproved"
    NO_POLICY = "NoPolicy"
    QUOTA_EXCEEDED = "QuotaExceeded"
    BACKUP_NOT_READY = "BackupNotReady"
    LOCATION_UNAVAILABLE = "LocationUnavailable"
    LOCATION_NAME_TAKEN = "LocationNameTaken"
    POLICY_VIOLATION = "PolicyViolation"
    RESTORED_FROM_BACKUP = "RestoredFromBackup"

    WAITING_FOR_TURN = "WaitingForTurn"
    RESTORE_HISTORY = "RestoreHistory"
    REQUESTER_UNKNOWN = "RequesterUnknown"
    CHECKING_ACCESS = "CheckingAccess"
    NAMESPACE_UNLABELLED = "NamespaceUnlabelled"
    ALL_KINDS_ALLOWED = "AllKindsAllowed"
    KINDS_LEFT_OUT = "KindsLeftOut"
    SNAPSHOT_TIMEOUT_SHORTENED = "SnapshotTimeoutShortened"
    ACCESS_DENIED = "AccessDenied"
    VOLUME_NOT_BACKED_UP = "VolumeNotBackedUp"
    VOLUME_NOT_NEW = "VolumeNotNew"
    BACKUP_TOO_LARGE = "BackupTooLarge"
    RESTORE_WITHDRAWN = "RestoreWithdrawn"
    EXPIRED = "Expired"

    WAITING = "Waiting"
    RUNNING = "Running"
    COMPLETED = "Completed"
    PARTIALLY_FAILED = "PartiallyFailed"
    FAILED = "Failed"
    FAILED_VALIDATION = "FailedValidation"
    KINDS_NOT_SERVED = "KindsNotServed"
    NOTHING_BACKED_UP = "NothingBackedUp"
    VOLUMES_LEFT_OUT = "VolumesLeftOut"

    ERROR = "Error"
    SUCCESS = "Success"
    TARGET_NOT_SERVED = "TargetNotServed"
    CONTENTS_DENIED = "ContentsDenied"
    VELERO_SILENT = "VeleroSilent"
    DOWNLOAD_EXPIRED = "DownloadExpired"

    SCHEDULED = "Scheduled"
    PAUSED = "Paused"
    BUSY = "Busy"
    NAME_TAKEN = "NameTaken"
    TOO_MANY_SCHEDULES = "TooManySchedules"
    SKIPPED = "Skipped"
    SKIP_NOT_APPLIED = "SkipNotApplied"
    MISSED = "Missed"
    POLICY_INVALID = "PolicyInvalid"
    OUTSIDE_WINDOW = "OutsideWindow"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    NEVER_IN_WINDOW = "NeverInWindow"
    TIME_IN_FUTURE = "TimeInFuture"

    DELETION_FAILED = "DeletionFailed"
    FORCE_DELETED = "ForceDeleted"
    DELETION_PROTECTED = "DeletionProtected"
    BACKUP_EXPIRED = "BackupExpired"
    BACKUP_ORPHANED = "BackupOrphaned"
    NAMESPACE_GONE = "NamespaceGone"
    OWNER_GONE = "OwnerGone"

    BACKUP_ADOPTED = "BackupAdopted"
    BACKUPS_ADOPTABLE = "BackupsAdoptable"


class Refused(msgspec.Struct, frozen=True):
    """Why something is not done for a tenant, and in a sentence what the tenant can do about it."""

    reason: Reason
    message: str
