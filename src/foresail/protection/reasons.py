"""What protects a namespace or keeps a class from running: words in conditions, Events and metrics."""

from enum import StrEnum


class Reason(StrEnum):
    """The words; programs know them, so they do not change."""

    PROTECTED = "Protected"
    """The class has a good backup of the namespace, and its Schedule runs. No action is needed."""

    NO_BACKUP_YET = "NoBackupYet"
    """The class has no good backup of the namespace yet. Wait for the next run, or start one with
    `foresail schedule run`.
    """

    LAST_RUN_FAILED = "LastRunFailed"
    """The last backup of the namespace is not good, and an older one is. See `velero backup describe`."""

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
    """The namespace names no class, and no class is the default. It stays in the Schedule that it is in. Choose a
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

    SCHEDULE_PAUSED = "SchedulePaused"
    """The Schedule of the namespace is paused. Resume it with `foresail schedule unpause`."""

    SCHEDULE_INVALID = "ScheduleInvalid"
    """The Schedule of the namespace cannot run. See `foresail schedule explain`."""

    WRITE_REFUSED = "WriteRefused"
    """The API server refused a Schedule of the class. The message has its words; the operator tries again."""

    READY = "Ready"
    """The Schedules of the class run. No action is needed."""
