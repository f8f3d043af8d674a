"""The schedule language: parse, next and previous fire, shift, describe."""

from foresail.cron.dialect import CronError, Dialect
from foresail.cron.fields import Fields
from foresail.cron.parser import parse
from foresail.cron.schedule import (
    CalendarSchedule,
    IntervalSchedule,
    ManualSchedule,
    Outlook,
    Schedule,
    fires_after,
    outlook,
)

__all__ = [
    "CalendarSchedule",
    "CronError",
    "Dialect",
    "Fields",
    "IntervalSchedule",
    "ManualSchedule",
    "Outlook",
    "Schedule",
    "fires_after",
    "outlook",
    "parse",
]
