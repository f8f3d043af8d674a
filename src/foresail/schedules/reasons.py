"""Why a Schedule does not run, or did not: words that stand in Events, metrics and `foresail schedule describe`."""

from dataclasses import dataclass
from enum import StrEnum

from foresail.plan import Level


class Reason(StrEnum):
    """The words; programs know them, so they do not change."""

    PAUSED = "Paused"
    INVALID = "InvalidSchedule"
    NEVER_FIRES = "NeverFires"
    NAME_TOO_LONG = "NameTooLong"
    VELERO_SCHEDULES = "VeleroSchedules"
    DIALECT_UNKNOWN = "DialectUnknown"
    DIALECT_CHANGED = "DialectChanged"
    BUSY = "Busy"
    LOCATION_UNAVAILABLE = "LocationUnavailable"
    SKIPPED = "Skipped"
    MISSED = "Missed"


HELD = (Reason.VELERO_SCHEDULES, Reason.DIALECT_UNKNOWN, Reason.BUSY, Reason.LOCATION_UNAVAILABLE)
"""What holds a run that is due; the run starts when the reason is gone."""


@dataclass(frozen=True, slots=True)
class Because:
    """A reason, and in a sentence what it means here and what to do."""

    reason: Reason
    message: str
    level: Level = Level.WARNING
