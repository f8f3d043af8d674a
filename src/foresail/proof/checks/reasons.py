"""Words about RestoreChecks that users and programs read."""

from enum import StrEnum

import msgspec


class Reason(StrEnum):
    """Why a check has its result, or why none starts; programs know the words, so they do not change."""

    COMPLETE = "Complete"
    """The sandbox took every object that it had to."""

    BACKUP_EMPTY = "BackupEmpty"
    """The backup has no object that can be checked. Compare the schedule's namespaces with those of the cluster."""

    NAMESPACE_MISSING = "NamespaceMissing"
    """The backup has no object of a namespace in spec.namespaces. Correct the list, or the schedule."""

    KIND_NOT_SERVED = "KindNotServed"
    """This cluster does not serve the API version of objects in the backup. Install the CRD, or convert the objects."""

    STORAGE_CLASS_MISSING = "StorageClassMissing"
    """The backup has claims, and this cluster has none of the StorageClasses that it lists. Create the missing one."""

    ITEMS_REFUSED = "ItemsRefused"
    """The API server, a webhook, a policy or a quota refused objects of the backup. The message has the first ones."""

    ITEMS_MISSING = "ItemsMissing"
    """Velero restored fewer objects than the backup lists. The archive and the list of the backup differ."""

    RESTORE_PARTIALLY_FAILED = "RestorePartiallyFailed"
    """Velero reported errors of the restore that concern no single object. The message has the first ones."""

    RESTORE_FAILED = "RestoreFailed"
    """Velero could not restore the backup at all. The message has its reason."""

    CONTENTS_UNREADABLE = "ContentsUnreadable"
    """The list of the backup's objects is not in Velero's format, or too large."""

    TOO_MANY_NAMESPACES = "TooManyNamespaces"
    """The backup has more namespaces than one check takes. Set spec.namespaces, and use several RestoreChecks."""

    TOO_MANY_OBJECTS = "TooManyObjects"
    """The backup has more objects than one check takes. Set spec.namespaces, and use several RestoreChecks."""

    DATA_MISSING = "DataMissing"
    """The bucket has no data of claims, so their volumes would be empty: move their snapshots, back up their files, or
    set spec.assertion, which then decides. Or the backup has no PersistentVolumes, so its claims would wait for theirs:
    include them."""

    NOT_FENCED = "NotFenced"
    """A pod in the sandbox reached what a NetworkPolicy forbids, so no pod of the backup started. Use a network plugin
    that enforces NetworkPolicies, or set spec.allowUnfenced."""

    CANARY_FAILED = "CanaryFailed"
    """The canary pod did not run, so nobody knows whether the sandbox is closed. The message says why."""

    VOLUME_NOT_PROVISIONED = "VolumeNotProvisioned"
    """A claim in the sandbox has a PersistentVolume that was not provisioned for it, so it may be somebody's. It is
    left as it is. See whose it is."""

    PODS_NOT_READY = "PodsNotReady"
    """Pods of the backup did not become ready within spec.deadline. The message has the first ones."""

    ASSERTION_FAILED = "AssertionFailed"
    """The command of spec.assertion did not run, or ended with another exit code than 0. The message has its output."""

    DATA_DISABLED = "DataDisabled"
    """spec.depth is Data, and the operator may not start pods. Set proof.data.enabled in the chart's values."""

    DEADLINE_EXCEEDED = "DeadlineExceeded"
    """The check did not end within spec.deadline. Velero may be busy or down."""

    WAITING = "Waiting"
    """The check waits for its next run or the next backup."""

    RUNNING = "Running"
    """A check is running."""

    SUSPENDED = "Suspended"
    """spec.suspend is true, so no check starts. Set it to false."""

    INVALID_SCHEDULE = "InvalidSchedule"
    """spec.schedule cannot be used. Correct it; the message says why."""

    NOT_ALLOWED = "NotAllowed"
    """The SelfServicePolicy of the namespace does not allow the check or one of its fields. See the message."""

    QUOTA_EXCEEDED = "QuotaExceeded"
    """The namespace has more RestoreChecks than its SelfServicePolicy serves. Delete one, or ask for more."""

    TOO_SOON = "TooSoon"
    """The SelfServicePolicy asks for more time between checks. The check starts by itself."""

    WAITING_FOR_TURN = "WaitingForTurn"
    """Another tenant's check is running. The check starts by itself."""

    SANDBOX_TERMINATING = "SandboxTerminating"
    """A sandbox of an earlier run is not deleted yet, so no run starts. Its conditions name what blocks that."""

    NO_BACKUP = "NoBackup"
    """No Completed Backup is selected. Check spec.backups, and whether the Schedule runs."""

    NOT_CHECKED = "NotChecked"
    """No check has ended yet. The condition Ready says why none starts."""


class Problem(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One thing that a check has found."""

    reason: Reason
    message: str
    refused_by: str = ""
