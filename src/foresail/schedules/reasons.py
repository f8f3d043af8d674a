"""Why a Schedule does not run, or did not: words that appear in Events, metrics and `foresail schedule describe`."""

from enum import StrEnum


class Reason(StrEnum):
    """The words; programs know them, so they do not change."""

    PAUSED = "Paused"
    """`spec.paused` is true. Resume it with `foresail schedule unpause`."""

    INVALID = "InvalidSchedule"
    """Velero cannot parse the expression, or a duration or selector of the template, so the phase is FailedValidation.
    Correct `spec.schedule`, or the field of `spec.template` that the message names.
    """

    NEVER_FIRES = "NeverFires"
    """The expression is valid and never fires, so the phase is FailedValidation. Correct `spec.schedule`."""

    NAME_TOO_LONG = "NameTooLong"
    """The name does not fit into the label of a Backup. Create the Schedule again with a shorter name."""

    VELERO_SCHEDULES = "VeleroSchedules"
    """Velero's own schedule controller is on, in its Deployment or in a pod that has not ended, or its Deployment
    cannot be read, or nothing is recognised as a Velero server. Start Velero with `--disable-controllers=schedule`,
    correct the Deployment, or start the operator with `--velero-schedules-off`.
    """

    DIALECT_UNKNOWN = "DialectUnknown"
    """The two cron dialects differ on the expression, and the dialect of this Velero is unknown. Start Velero, or set
    `--velero-dialect`.
    """

    DIALECT_CHANGED = "DialectChanged"
    """The installed Velero reads the expression differently, so run times change. See `foresail cron diff-dialects`.
    """

    BUSY = "Busy"
    """A Backup of the Schedule has not finished (also `Queued` and `ReadyToStart`), or cannot be read. Wait, or check
    that Backup.
    """

    BACKUP_STUCK = "BackupStuck"
    """A Backup of the Schedule has been unfinished for 24 hours. It no longer counts in the group of its
    SchedulePolicy, so other Schedules run. Delete it if Velero does not work on it.
    """

    CONCURRENCY_LIMIT = "ConcurrencyLimit"
    """As many Backups of the group are unfinished as the SchedulePolicy allows at once. The run that waits
    longest starts first. Wait, or raise `concurrency.max`.
    """

    LOCATION_UNAVAILABLE = "LocationUnavailable"
    """The storage location is missing, read-only or not Available. Fix it; the run then starts automatically."""

    HOOKS_NOT_ALLOWED = "HooksNotAllowed"
    """The template has hooks, and `schedules.withHooks` of the chart does not list the Schedule. List it there, or run
    `foresail install` again; the run then starts automatically.
    """

    TIME_IN_FUTURE = "TimeInFuture"
    """A recorded time is in the future, because a clock was wrong or someone wrote it. Runs count from now. Check the
    clocks with `foresail doctor`.
    """

    SKIPPED = "Skipped"
    """`skipImmediately` was applied, or an edit dropped a slot that had not run. No action is needed."""

    SKIP_NOT_APPLIED = "SkipNotApplied"
    """`skipImmediately` was set again without a pause in between, so it is ignored until the next unpause. To skip now,
    pause the Schedule and unpause it.
    """

    POLICY_INVALID = "PolicyInvalid"
    """The SchedulePolicy that applies cannot be used, so the phase is FailedValidation. Correct the policy."""

    OUTSIDE_WINDOW = "OutsideWindow"
    """Slots were outside the windows of the SchedulePolicy, so they are skipped, merged into one run at the next
    opening, or wait for it. No action is needed.
    """

    DEADLINE_EXCEEDED = "DeadlineExceeded"
    """A run could not start within `startingDeadline` of the SchedulePolicy, so it is recorded as missed. Find out what
    blocked it with `foresail schedule explain`.
    """

    NEVER_IN_WINDOW = "NeverInWindow"
    """No slot of the Schedule is inside the windows of its SchedulePolicy, so the phase is FailedValidation. Correct
    `spec.windows`, or the expression.
    """

    RETENTION_DELETED = "RetentionDeleted"
    """A Backup was deleted because no rule of the SchedulePolicy keeps it. No action is needed."""

    RETENTION_NOT_APPROVED = "RetentionNotApproved"
    """New rules would delete many Backups at once, so none is deleted. Look at them with `foresail schedule retention`,
    then approve with `--approve`, or change the SchedulePolicy.
    """

    RETENTION_IN_DOUBT = "RetentionInDoubt"
    """A Backup or a SchedulePolicy cannot be read, a storage location is not Available, or a clock is wrong. Nothing is
    deleted until that is fixed.
    """

    RETENTION_FAILED = "RetentionFailed"
    """Velero could not delete a Backup, or was stopped amid it: Foresail tries again after Velero has removed the
    request, within a day. Or a request of that name cannot be read or is for another Backup: delete it.
    """

    RETRYING = "Retrying"
    """A run failed, and the SchedulePolicy repeats it for the same slot. Check the failed Backup."""

    RETRIES_ENDED = "RetriesEnded"
    """A failed run is not repeated: its attempts are used up or too late, or the next slot, a pause, an edit or a
    deletion ended them. Check the failed Backup.
    """

    MISSED = "Missed"
    """Several slots passed while the operator was down or runs were blocked. Only the last one runs. No action is
    needed.
    """


BLOCKING = (
    Reason.VELERO_SCHEDULES,
    Reason.DIALECT_UNKNOWN,
    Reason.BUSY,
    Reason.OUTSIDE_WINDOW,
    Reason.LOCATION_UNAVAILABLE,
    Reason.HOOKS_NOT_ALLOWED,
    Reason.CONCURRENCY_LIMIT,
)
"""What blocks a run that is due; the run starts when nothing blocks it."""
