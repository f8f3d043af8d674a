"""Says in plain words when a schedule fires."""

from foresail.cron.dialect import Dialect
from foresail.cron.fields import Fields


def describe_calendar(fields: Fields, dialect: Dialect, zone: str) -> str:
    return f"{fields} {dialect} {zone}"


def describe_period(seconds: int) -> str:
    return f"every {seconds} seconds"
