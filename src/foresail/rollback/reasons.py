"""How a Rollback goes, or why it does not: words in its condition, in Events and in metrics."""

from enum import StrEnum


class Reason(StrEnum):
    """The words; programs know them, so they do not change."""

    IN_PROGRESS = "InProgress"
    """The Rollback runs. `status.steps` says how far it is."""

    PLANNED = "Planned"
    """It was a dry run, and the plan is in `status.plan`. Nothing was changed."""

    COMPLETED = "Completed"
    """The namespace is as the backup has it. It can be undone until `status.undoUntil`."""

    NOT_COMPARED = "NotCompared"
    """The restore is complete, and Velero's list of what it did could not be read: see `foresail backup diff`."""

    UNDONE = "Undone"
    """The undo that was asked for is complete: the namespace is as it was before the Rollback."""

    ROLLED_BACK_NOTHING = "NothingChanged"
    """The Rollback ended before it changed anything. The message says why."""

    FAILED = "Failed"
    """A step failed, and the namespace is as it was before the Rollback. The message names the step."""

    UNDO_WAITS = "UndoWaits"
    """An undo cannot begin, or go on, now. What was suspended is resumed, and the operator tries again; remove what
    the message names.
    """

    UNDO_TOO_LATE = "UndoTooLate"
    """The undo was asked for after `status.undoUntil`, so nothing was changed. Restore the safety backup instead."""

    WAITING = "Waiting"
    """Another Rollback of the namespace runs. This one starts when that has ended."""

    DISABLED = "RollbackDisabled"
    """No SelfServicePolicy with `rollback.enabled` applies to the namespace. Ask a cluster administrator."""

    REQUESTER_UNKNOWN = "RequesterUnknown"
    """The Rollback has no recorded requester, or that is a system account. Create it again as yourself."""

    RESTORED_FROM_BACKUP = "RestoredFromBackup"
    """Velero restored the Rollback from a backup, so nobody has asked for it. Create another one."""

    EXPIRED = "Expired"
    """The Rollback did not begin within `restore.startingDeadline` of its policy. Create another one."""

    IN_THE_WAY = "InTheWay"
    """Something keeps it from beginning: `status.plan.inTheWay` has what, and what to do. Nothing was changed."""

    PLAN_CHANGED = "PlanChanged"
    """The plan is another one than `spec.planDigest` names. Look at the new plan, and create another Rollback."""

    BACKUP_UNUSABLE = "BackupUnusable"
    """The backup in `spec.to` does not exist, is not complete, or its list cannot be read. Choose another one."""

    SAFETY_BACKUP_FAILED = "SafetyBackupFailed"
    """There is no good backup of the namespace as it is, so nothing was changed. The message says why."""
