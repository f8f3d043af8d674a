"""The result of a shift: expressions, and where they are not exact."""

import enum
from dataclasses import dataclass
from datetime import date, datetime


class InexactCause(enum.Enum):
    """Why no expressions are exact."""

    CHANGING_OFFSET = "the zone's offset changes"
    INTERVAL = "@every has no place in the calendar"
    LEAP_YEAR = "the days depend on the leap year"
    WEEKDAYS_OF_MONTHS = "weekdays of some months only"


@dataclass(frozen=True, slots=True)
class ZonedExpression:
    """The `schedule` and `timeZone` of one CronJob."""

    schedule: str
    time_zone: str

    @property
    def with_prefix(self) -> str:
        """The expression for Velero, whose Schedule has no field for the zone."""
        return f"CRON_TZ={self.time_zone} {self.schedule}"


@dataclass(frozen=True, slots=True)
class Shifted:
    """The expressions that together fire X minutes before each fire of a schedule, never two at one instant.

    If not `exact`, they are the closest possible: `lost` lists the warm-ups that they miss and `spurious`
    those that no fire follows, for five years; `inexact_dates` has the dates of both in the schedule's zone.
    The result is valid until `until`; None means for all time.
    """

    exact: bool
    schedules: tuple[ZonedExpression, ...]
    until: datetime | None = None
    cause: InexactCause | None = None
    reason: str | None = None
    lost: tuple[datetime, ...] = ()
    spurious: tuple[datetime, ...] = ()
    inexact_dates: tuple[date, ...] = ()
    advice: str | None = None
