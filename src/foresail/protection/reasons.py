"""What protects a namespace or keeps a class from running: words in conditions, Events and metrics."""

from enum import StrEnum


class Reason(StrEnum):
    """The words; programs know them, so they do not change."""

    PROTECTED = "Protected"
    """A good backup exists, its location is available, and Velero and the Schedule run. No action is needed."""

    NO_BACKUP_YET = "NoBackupYet"
    """The class has no good backup of the namespace yet. Wait for the next run, or start one with
    `foresail schedule run`.
    """

    LAST_RUN_FAILED = "LastRunFailed"
    """The last backup of the namespace is not good. See `velero backup describe`."""

    EXEMPT = "Exempt"
    """The label is `none`, with a reason and a date that is to come. No action is needed."""

    EXEMPTION_INCOMPLETE = "ExemptionIncomplete"
    """The label is `none` without a reason, or without a date until which. Add both annotations; until then the
    namespace is treated as if it had no label.
    """

    EXEMPTION_EXPIRED = "ExemptionExpired"
    """The label is `none`, and its date has passed. Choose a class, or a later date; until then the namespace is
    treated as if it had no label.
    """

    EXCLUDED = "Excluded"
    """The namespace has the label `velero.io/exclude-from-backup`, by which Velero refuses every backup that names it.
    Remove that label.
    """

    UNKNOWN_CLASS = "UnknownClass"
    """No ProtectionClass has the name in the label. Correct the label, or create the class; until then the namespace
    is treated as if it had no label.
    """

    NO_CLASS = "NoClass"
    """The namespace names no class, and no class is the default. If it is in a Schedule, it stays there. Choose a
    class, or `none` with a reason and a date.
    """

    CLASS_UNREADABLE = "ClassUnreadable"
    """The ProtectionClass cannot be read, so its Schedules stay as they are. Correct the field that its Event names."""

    CLASS_INVALID = "ClassInvalid"
    """The expression of the class cannot be used, so its Schedules stay as they are. Correct `spec.schedule`."""

    POLICY_MISSING = "PolicyMissing"
    """The SchedulePolicy that the class names does not exist, so its Schedules run without one. Create it, or correct
    `spec.schedulePolicy`.
    """

    LOCATION_UNUSABLE = "LocationUnusable"
    """The storage location of the class does not exist or is read-only, so no backup can run. Correct it."""

    LOCATION_UNAVAILABLE = "LocationUnavailable"
    """Velero has not reached the storage location of the class, or of the newest good backup, for ten minutes, or the
    latter does not exist, so it can neither back up nor restore there. `velero backup-location get` shows it.
    """

    VELERO_NOT_READY = "VeleroNotReady"
    """No pod of the Velero server has been ready for ten minutes, so no backup runs and nothing can be restored.
    `foresail doctor` shows why.
    """

    RUNNER_UNKNOWN = "RunnerUnknown"
    """No Deployment is recognised as a Velero server, and no location was validated lately, so it is unknown whether
    Velero runs. `foresail doctor` shows the next step.
    """

    RUNS_MISSED = "RunsMissed"
    """There is no objective, and no backup of the namespace is good since the last three times at which its Schedule
    was due. `foresail schedule explain` shows why.
    """

    OBJECTIVE_MISSED = "ObjectiveMissed"
    """The newest good backup of the namespace is older than the objective of its SchedulePolicy, or none is good for
    that long. `foresail schedule explain` shows why.
    """

    VOLUMES_UNPROVEN = "VolumesUnproven"
    """The namespace has volumes, and the newest good backup has fewer snapshots than volumes. Copies of files are not
    counted. `foresail coverage` judges volume by volume.
    """

    SCHEDULE_PAUSED = "SchedulePaused"
    """The Schedule of the namespace, or one of the class, is paused. Resume it with `foresail schedule unpause`."""

    SCHEDULE_INVALID = "ScheduleInvalid"
    """The Schedule of the namespace, or one of the class, cannot run or be read. See `foresail schedule explain`."""

    WRITE_REFUSED = "WriteRefused"
    """The API server refused a Schedule of the class. The message has its words; the operator tries again."""

    READY = "Ready"
    """The Schedules of the class run. No action is needed."""
