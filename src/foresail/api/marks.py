"""The labels and annotations that Foresail writes; most of them identify its own objects later."""

OBSERVED = "foresail.dev/observed"
"""On a Schedule: the last observed state that later decisions depend on."""

SCHEDULE_UID = "foresail.dev/schedule-uid"
SLOT = "foresail.dev/slot"
"""On a Backup, both together: its Schedule and its slot. On a NonAdminBackup the same, of a NonAdminSchedule."""

VELERO_ANNOTATIONS_LABEL = "foresail.dev/velero-annotations"
FILE_SYSTEM_LABEL = "foresail.dev/file-system-backup"
"""On a namespace with self-service: `refused` or `allowed`. Admission policies select namespaces by them."""

PINNED = "foresail.dev/pinned"
"""On a Backup, with the value "true": retention never deletes it."""

RETENTION = "foresail.dev/retention"
"""On a DeleteBackupRequest: why no rule keeps the Backup."""

RETENTION_APPROVED = "foresail.dev/retention-approved"
"""On a Schedule or NonAdminSchedule: the backups, by digests of their UIDs, that these rules may delete at once."""

DELETE_AFTER = "foresail.dev/delete-after"
DELETE_REASON = "foresail.dev/delete-reason"
"""On a Backup or NonAdminBackup that no rule keeps, both together: from when on it may be deleted, and why."""

KEPT: dict[str, str | None] = {PINNED: "true", DELETE_AFTER: None, DELETE_REASON: None}
"""The annotations that take back a deletion that was announced."""

REQUEST_UID = "foresail.dev/request-uid"
NAMESPACE_UID = "foresail.dev/namespace-uid"
"""On a Velero Backup or Restore, both together: the UIDs of the tenant's object and namespace.

The annotations of the existing controller have the names, which someone else can reuse.
"""

TARGET_NAMESPACE_UID = "foresail.dev/target-namespace-uid"
"""On a Velero Restore into another namespace of its requester: the UID of that namespace."""

RECORD_SIGNATURE = "foresail.dev/record-signature"
"""On a Velero Backup: the signature of the record above, by which it is trusted when it comes back from a bucket."""

ADOPT = "foresail.dev/adopt"
"""On a Velero Backup, by an administrator: adopt it, as this very object and in the namespace with this UID."""

ADOPTED = "foresail.dev/adopted"
"""On a Velero Backup that was adopted, and on the NonAdminBackup that it got: the UID of the Velero Backup."""

REQUESTER = "foresail.dev/requester"
REQUESTER_GROUPS = "foresail.dev/requester-groups"
"""On a request, and on the Velero object made for it: the requester and the requester's groups, one per line.

Admission policies set them and refuse every other value.
"""

REQUEST_HASH = "foresail.dev/request-hash"
"""On a Velero BackupStorageLocation of a tenant: the hash of the spec and the credentials that are in place."""

SUSPENDED = "foresail.dev/suspended"
"""On such a location that is read-only because it is not approved or not allowed any more: the reason."""

CREDENTIALS = "foresail.dev/credentials"
"""On a Velero BackupStorageLocation of a tenant: the tenant's Secret, which the operator must be allowed to read."""

REFRESH = "refresh.foresail.dev/credentials"
"""On a NonAdminBackupStorageLocation, by its owner: any new value makes the operator read the Secret at once."""

BACKUP_UID = "foresail.dev/backup-uid"
"""On a DownloadRequest that the operator reads itself: the Velero Backup whose contents it requests."""

POD_VOLUME_TIMEOUT = "velero.io/pod-volume-timeout"
"""On a Velero Backup or Restore: how long Velero waits for the data of pods' volumes, instead of its own four hours."""

ORPHANED = "foresail.dev/orphaned"
"""On a Velero Backup: since when its namespace is deleted."""

ATTEMPT = "foresail.dev/attempt"
"""On a DeleteBackupRequest: its number among those for this Backup."""

REOPENED = "foresail.dev/reopened"
"""On a Velero Backup: for which refused DeleteBackupRequest, by its UID, Velero was made to end it once more."""

PRIMER_UID = "foresail.dev/primer-uid"
TARGET_UID = "foresail.dev/cronjob-uid"
FIRE = "foresail.dev/fire"
"""On a placeholder: its Primer, its CronJob and the fire.

A primer CronJob has the first two; a CapacityBuffer and its PodTemplate have all three.
"""

RELEASED = "foresail.dev/released"
"""On a CapacityBuffer: since when it is scaled to 0; it is deleted once the autoscaler has observed that."""

PRIMER_LABEL = "foresail.dev/primer"
"""On every object of a Primer: the name of the Primer, to find it."""

NOT_BACKED_UP = "velero.io/exclude-from-backup"
"""The label that excludes an object from Velero's backups, with the value "true"."""

WARM_UP = "foresail.dev/warm-up"
WARM_UP_METHOD = "foresail.dev/warm-up-method"
"""On a CronJob, by its owner: prime it like a Primer with this `warmUp` and `method`."""

WARM_UP_STATUS = "foresail.dev/warm-up-status"
"""On such a CronJob, by the operator: the status that a Primer would have for it, in JSON."""

JOB_VARIABLE = "FORESAIL_JOB"
"""A variable in pods of primer CronJobs: the name of their Job, from which `foresail hold` derives its time."""

SCHEDULES_LEASE = "foresail-schedules"
SELF_SERVICE_LEASE = "foresail-self-service"
PRIMERS_LEASE = "foresail-primers"
CHECKS_LEASE = "foresail-checks"
PROTECTION_LEASE = "foresail-protection"
ROLLBACK_LEASE = "foresail-rollback"
LEASES = (SCHEDULES_LEASE, SELF_SERVICE_LEASE, PRIMERS_LEASE, CHECKS_LEASE, PROTECTION_LEASE, ROLLBACK_LEASE)
"""The Lease of each capability, and the name of its Deployment and ServiceAccount: each runs in its own."""

FACTS = "foresail.dev/facts"
"""On the Lease of self-service: what teams need to know of the cluster and cannot read."""

RETIRED_LEASE = "foresail"
"""The Lease and the Deployment in which earlier versions ran Schedules and self-service together."""

CHECK_LABEL = "foresail.dev/restore-check"
"""On every object of a RestoreCheck: the UID of the RestoreCheck. On a namespace: it is a sandbox."""

CHECK = "foresail.dev/check"
CHECK_RUN = "foresail.dev/check-run"
"""On the same objects: the name of the RestoreCheck, and the ID of the run."""

CHECK_NAMESPACE = "foresail.dev/check-namespace"
"""On the same objects of a tenant's RestoreCheck: its namespace. Without it, that is Velero's."""

CHECK_SOURCE = "foresail.dev/check-source"
"""On a sandbox: the namespace of the backup that is restored into it."""

CHECK_DEPTH = "foresail.dev/restore-check-depth"
"""On a sandbox in which pods may start: Data."""

SANDBOX_ROLE = "foresail-checks-sandbox"
"""The ClusterRole that the operator has in sandboxes of depth Data only."""

CANARY_CLOSED, CANARY_REACHED = 40, 41
"""Exit codes of `foresail canary`; others, and 0 of an image without it, say nothing about the fence."""

CHECK_NOW = "foresail.dev/check-now"
"""On a RestoreCheck, by its owner: any new value starts a check."""

PROTECTION = "foresail.dev/protection"
"""On a Namespace, as a label: the name of its ProtectionClass, or `none`."""

PROTECTION_REASON = "foresail.dev/protection-reason"
PROTECTION_UNTIL = "foresail.dev/protection-until"
"""On a Namespace with the value `none`, both together: why it is not protected, and until when that holds."""

EXEMPT = "none"
"""The value of that label for a namespace without protection; no class has the name."""

PROTECTION_CLASS = "foresail.dev/protection-class"
"""On a Schedule that the operator keeps for a ProtectionClass, as a label and as its mark, and on its Backups."""

SCHEDULE_POLICY_LABEL = "foresail.dev/schedule-policy"
"""On a Schedule, as a label: the SchedulePolicy that applies to it, whatever the selectors of policies say."""

NAMESPACE_UIDS = "foresail.dev/namespace-uids"
"""On a Backup of a ProtectionClass, in JSON: the UIDs of the namespaces that it was taken of, by their names."""

ROLLBACK_UID = "foresail.dev/rollback-uid"
"""The UID of a Rollback: on its NonAdminBackup, NonAdminRestores and NonAdminDownloadRequest, on what it has stopped,
and on a claim that its undo has created; as a label on the old volumes that it keeps.
"""

KEPT_VOLUME = "foresail.dev/kept-volume"
"""On a PersistentVolume that a Rollback keeps, in JSON: the Rollback, the former reclaim policy, and the old claim."""

ROLLBACK_FINALIZER = "foresail.dev/rollback"
"""On a Rollback from before its first change until it has ended: one that is deleted meanwhile is undone first."""

ROLLBACK_IN_PROGRESS = "foresail.dev/rollback-in-progress"
"""The label of a Rollback with the finalizer, and then of its namespace: in others its operator may change nothing."""
