"""Why nothing is held for a CronJob: words that stand in conditions, Events and `foresail primer explain`."""

from dataclasses import dataclass
from enum import StrEnum

from foresail.plan import Level


class Reason(StrEnum):
    """The words; programs know them, so they do not change."""

    READY = "Ready"
    WARMING = "Warming"
    WAITING = "Waiting"
    INSTANTS = "Instants"
    EXACT = "Exact"
    SUSPENDED = "Suspended"
    NO_CRON_JOB = "NoCronJob"
    TOO_MANY = "TooManyCronJobs"
    NOT_WARM = "NotWarmed"
    INVALID = "InvalidSchedule"
    NEVER_FIRES = "NeverFires"
    TAKEN = "PrimedByAnother"
    IS_OURS = "MadeByPrimer"
    TOO_LONG = "WarmUpTooLong"
    STANDING = "NeedsAllowStanding"
    NOTHING_TO_RESERVE = "NothingToReserve"
    NOT_WARMABLE = "NotWarmable"
    QUOTA_TOO_SMALL = "QuotaTooSmall"
    CANNOT_PREEMPT = "CannotPreempt"
    TOO_MANY_PLACEHOLDERS = "TooManyPlaceholders"
    INEXACT = "Inexact"
    REFUSED = "Refused"
    NO_HOLD_IMAGE = "NoHoldImage"
    LOST = "Lost"
    NO_FIRE = "NoFire"
    NOT_ON_A_WARM_NODE = "NotOnAWarmNode"


class Loss(StrEnum):
    """Why a placeholder was lost before its fire."""

    PREEMPTED = "Preempted"
    DISRUPTED = "Disrupted"
    NEVER_SCHEDULED = "NeverScheduled"


@dataclass(frozen=True, slots=True)
class Because:
    """A reason, and in a sentence what it means here and what to do."""

    reason: Reason
    message: str
    level: Level = Level.WARNING
