"""Conversions between calendar dates, days since 1970, aware datetimes and Unix seconds.

Dates reach beyond the years 1 to 9999 of `datetime`.
"""

from datetime import UTC, date, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_ORDINAL = EPOCH.toordinal()
GREGORIAN_CYCLE_DAYS = 146_097
"""The calendar repeats, weekdays included, after this many days: 400 years."""
MAX_MONTH_LENGTHS = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
"""Days of each month in a leap year, by month number."""
_CYCLE_YEARS = 400
_FEBRUARY = 2
_from_ordinal = date.fromordinal


def civil_date(day: int) -> tuple[int, int, int]:
    """Return year, month and day of the month of a day since 1970."""
    try:
        found = _from_ordinal(day + EPOCH_ORDINAL)
    except (ValueError, OverflowError):
        cycles = day // GREGORIAN_CYCLE_DAYS
        year, month, day = civil_date(day - cycles * GREGORIAN_CYCLE_DAYS)
        return year + cycles * _CYCLE_YEARS, month, day
    return found.year, found.month, found.day


def month_length(year: int, month: int) -> int:
    """Return how many days a month has."""
    if month == _FEBRUARY and (year % 4 or (year % 100 == 0 and year % 400)):
        return 28
    return MAX_MONTH_LENGTHS[month]


def unix_floor(instant: datetime) -> int:
    """Return the last whole second not after an instant; a naive datetime raises TypeError."""
    since = instant - EPOCH
    return since.days * 86400 + since.seconds


def unix_ceiling(instant: datetime) -> int:
    """Return the first whole second not before an instant; a naive datetime raises TypeError."""
    since = instant - EPOCH
    return since.days * 86400 + since.seconds + (since.microseconds > 0)


def from_unix(seconds: int) -> datetime | None:
    """Return the instant in UTC, None outside the years 1 to 9999."""
    try:
        return EPOCH + timedelta(0, seconds)
    except OverflowError:
        return None
