"""The schedule language: parse, next and previous fire, shift, describe."""

from foresail.cron.calendar import Calendar
from foresail.cron.chain import Outlook, chain, outlook
from foresail.cron.dialect import Dialect
from foresail.cron.errors import CronError
from foresail.cron.every import Every, Never
from foresail.cron.fields import Fields
from foresail.cron.schedule import Schedule, parse

__all__ = [
    "Calendar",
    "CronError",
    "Dialect",
    "Every",
    "Fields",
    "Never",
    "Outlook",
    "Schedule",
    "chain",
    "outlook",
    "parse",
]
