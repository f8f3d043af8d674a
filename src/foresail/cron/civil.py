"""Days since 1970 and calendar dates, over all time and not just the years that `datetime` knows."""

from datetime import date

EPOCH = date(1970, 1, 1).toordinal()
CYCLE_DAYS = 146_097
"""After so many days the calendar repeats, weekdays included: they are 400 years."""
LONGEST = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
"""Days of each month at its longest, by month number; a day beyond them exists in no year."""
_CYCLE_YEARS = 400
_FEBRUARY = 2
_from_ordinal = date.fromordinal


def civil(day: int) -> tuple[int, int, int]:
    """Return year, month and day of the month of a day since 1970."""
    try:
        found = _from_ordinal(day + EPOCH)
    except (ValueError, OverflowError):
        cycles = day // CYCLE_DAYS
        year, month, day = civil(day - cycles * CYCLE_DAYS)
        return year + cycles * _CYCLE_YEARS, month, day
    return found.year, found.month, found.day


def month_length(year: int, month: int) -> int:
    """Return how many days a month has."""
    if month == _FEBRUARY and (year % 4 or (year % 100 == 0 and year % 400)):
        return 28
    return LONGEST[month]
