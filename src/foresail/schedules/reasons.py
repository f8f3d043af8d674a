"""Why a Schedule does not run, or did not: words that appear in Events, metrics and `foresail schedule describe`."""

from dataclasses import dataclass
from enum import StrEnum

from foresail.plan import Level


class Reason(StrEnum):
    """The words; programs know them, so they do not change."""

    PAUSED = "Paused"
    """`spec.paused` is true: `foresail schedule unpause` lets it run again."""

    INVALID = "InvalidSchedule"
    """Velero could not read the expression, so the phase is FailedValidation: correct `spec.schedule`."""

    NEVER_FIRES = "NeverFires"
    """The expression is valid and has no fire, so the phase is FailedValidation: correct `spec.schedule`."""

    NAME_TOO_LONG = "NameTooLong"
    """The name does not fit into the label of a Backup: make the Schedule again under a shorter one."""

    VELERO_SCHEDULES = "VeleroSchedules"
    """Velero's own schedule controller is on, or its Deployment cannot be read: start Velero with
    `--disable-controllers=schedule`, or correct the Deployment.
    """

    DIALECT_UNKNOWN = "DialectUnknown"
    """The two cron dialects differ on the expression, and nothing tells which this Velero has: start Velero, or set
    `--velero-dialect`.
    """

    DIALECT_CHANGED = "DialectChanged"
    """Another Velero reads the expression differently, so runs come at other times: look at them with `foresail cron
    diff-dialects`.
    """

    BUSY = "Busy"
    """A Backup of the Schedule has not ended, `Queued` and `ReadyToStart` included, or cannot be read: wait, or look
    at that Backup.
    """

    LOCATION_UNAVAILABLE = "LocationUnavailable"
    """The storage location is missing, read-only or not Available: mend it, and the run starts by itself."""

    TIME_IN_FUTURE = "TimeInFuture"
    """A recorded time is in the future, because a clock was wrong or somebody wrote it; runs are counted from now:
    check the clocks with `foresail doctor`.
    """

    SKIPPED = "Skipped"
    """`skipImmediately` was applied: nothing is to be done."""

    SKIP_NOT_APPLIED = "SkipNotApplied"
    """`skipImmediately` was set again without a pause in between, so it is ignored until the next unpause: to skip now,
    pause the Schedule and unpause it.
    """

    MISSED = "Missed"
    """Several slots passed while the operator was down or runs were held, and only the last is run: nothing is to be
    done.
    """


BLOCKING = (Reason.VELERO_SCHEDULES, Reason.DIALECT_UNKNOWN, Reason.BUSY, Reason.LOCATION_UNAVAILABLE)
"""What blocks a run that is due; the run starts when nothing blocks it."""


@dataclass(frozen=True, slots=True)
class Because:
    """A reason, and in a sentence what it means here and what to do."""

    reason: Reason
    message: str
    level: Level = Level.WARNING
