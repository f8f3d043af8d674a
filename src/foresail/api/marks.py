"""The names that Foresail writes on objects: by most of them it knows later what it did."""

OBSERVED = "foresail.dev/observed"
"""On a Schedule: what was last seen of it, as far as a later decision depends on that."""

SCHEDULE_UID = "foresail.dev/schedule-uid"
SLOT = "foresail.dev/slot"
"""On a Backup, both together: which Schedule it was made for, and the instant at which it was due."""

PINNED = "foresail.dev/pinned"
"""On a Backup, with the value "true": retention never deletes it."""

RETENTION = "foresail.dev/retention"
"""On a DeleteBackupRequest: why no rule keeps the Backup."""

RETENTION_APPROVED = "foresail.dev/retention-approved"
"""On a Schedule: the rules, by their digest, that may delete many Backups at once."""

REQUEST_UID = "foresail.dev/request-uid"
NAMESPACE_UID = "foresail.dev/namespace-uid"
"""On a Velero Backup or Restore, both together: for which tenant's object it was made, and in which namespace.

The names are in the annotations of the existing controller; but a name can be taken again by someone else.
"""

RECORD_SIGNATURE = "foresail.dev/record-signature"
"""On a Velero Backup: the signature of the record above, by which it is trusted when it comes back from a bucket."""

REQUESTER = "foresail.dev/requester"
REQUESTER_GROUPS = "foresail.dev/requester-groups"
"""On a request, and on the Velero object made for it: the user who asked, and that user's groups, one per line.

Admission policies set them and refuse every other value.
"""

BACKUP_UID = "foresail.dev/backup-uid"
"""On a DownloadRequest that the operator reads itself: the Velero Backup whose contents it is for."""

POD_VOLUME_TIMEOUT = "velero.io/pod-volume-timeout"
"""On a Velero Backup or Restore: how long Velero waits for the data of pods' volumes, instead of its own four hours."""

ORPHANED = "foresail.dev/orphaned"
"""On a Velero Backup: since when the namespace is gone that it was made for."""

ATTEMPT = "foresail.dev/attempt"
"""On a DeleteBackupRequest: how many there were for this Backup, this one included."""

REOPENED = "foresail.dev/reopened"
"""On a Velero Backup: for which refused DeleteBackupRequest, by its UID, Velero was made to end it once more."""

PRIMER_UID = "foresail.dev/primer-uid"
TARGET_UID = "foresail.dev/cronjob-uid"
FIRE = "foresail.dev/fire"
"""On a placeholder: for which Primer it was made, for which CronJob, and for which of its fires.

The first two stand on a primer CronJob too, all three on a CapacityBuffer and on its PodTemplate.
"""

RELEASED = "foresail.dev/released"
"""On a CapacityBuffer: since when it is to hold nothing; it is deleted once the autoscaler has taken that in."""

PRIMER_LABEL = "foresail.dev/primer"
"""On everything that is made for a Primer, with the name of the Primer: how it is found."""

NOT_BACKED_UP = "velero.io/exclude-from-backup"
"""The label by which Velero leaves an object out of backups, with the value "true"."""

WARM_UP = "foresail.dev/warm-up"
WARM_UP_METHOD = "foresail.dev/warm-up-method"
"""On a CronJob, by its owner: prime it as a Primer with this `warmUp` and `method` would."""

WARM_UP_STATUS = "foresail.dev/warm-up-status"
"""On such a CronJob, by the operator: what the status of a Primer has for it, in JSON."""

JOB_VARIABLE = "FORESAIL_JOB"
"""In pods of primer CronJobs, a variable with the name of their Job: it tells `foresail hold` when the Job was due."""

OPERATORS_LEASE = "foresail"
"""The name of the Lease that the leading replica of the operator holds."""

PRIMERS_LEASE = "foresail-primers"
"""The same of the operator of primers, which runs apart under its own ServiceAccount."""
