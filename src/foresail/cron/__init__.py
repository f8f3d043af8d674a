"""The schedule language: parse, next and previous fire, shift, describe."""

from foresail.cron.dialect import Dialect
from foresail.cron.errors import CronError
from foresail.cron.fields import Fields
from foresail.cron.fire_sequence import Outlook, fires_after, outlook
from foresail.cron.parser import parse
from foresail.cron.schedule import CalendarSchedule, IntervalSchedule, ManualSchedule, Schedule

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
