"""Describes in plain words when a schedule fires."""

from collections.abc import Callable, Sequence

from foresail.cron.dialect import Dialect
from foresail.cron.fields import (
    ALL_DAYS,
    ALL_HOURS,
    ALL_MINUTES,
    ALL_MONTHS,
    ALL_WEEKDAYS,
    Fields,
    spans_of,
    values_of,
)

_WORK_DAYS = 0b0111110
_MONTHS = (
    "",
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_FEW_TIMES = 6


def describe_calendar(fields: Fields, dialect: Dialect, zone: str) -> str:
    """Return one sentence without its full stop: the times of day, the days, the months and the zone."""
    reason = fields.never_fires(dialect)
    if reason:
        return f"never: {reason}"
    days = _days(fields, both=fields.requires_both_day_fields(dialect))
    months = "" if fields.months == ALL_MONTHS else " in " + _list(fields.months, lambda month: _MONTHS[month])
    return f"{_times(fields)}, {days}{months} ({zone})"


def describe_period(seconds: int) -> str:
    """Return the period in its largest units and what it is counted from."""
    parts = []
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        number, seconds = divmod(seconds, size)
        if number:
            parts.append(f"{number} {unit}" + ("s" if number > 1 else ""))
    words = parts[0].removeprefix("1 ") if len(parts) == 1 else _and(parts)
    return f"every {words}, counted from the last run"


def _times(fields: Fields) -> str:
    minutes = values_of(fields.minutes)
    hours = values_of(fields.hours)
    if len(minutes) * len(hours) <= _FEW_TIMES:
        return "at " + _and([f"{hour:02}:{minute:02}" for hour in hours for minute in minutes])
    step = _step(minutes, 60)
    if fields.minutes == ALL_MINUTES:
        within = "every minute"
    elif step:
        within = f"every {step} minutes"
    elif minutes == [0]:
        within = "on the hour"
    else:
        within = f"at minute{'s' if len(minutes) > 1 else ''} {_list(fields.minutes, str)}"
    if fields.hours == ALL_HOURS:
        return "every hour, " + within if not within.startswith("every") else within
    hour_step = _step(hours, 24)
    if hour_step:
        return f"{within} in every {_ordinal(hour_step)} hour from midnight"
    return f"{within} in the hours {_list(fields.hours, lambda hour: f'{hour:02}')}"


def _days(fields: Fields, *, both: bool) -> str:
    all_days = fields.days == ALL_DAYS
    all_weekdays = fields.weekdays == ALL_WEEKDAYS
    if (all_days and all_weekdays) or (not both and (all_days or all_weekdays)):
        return "every day"
    on_days = f"on the {_list(fields.days, _ordinal)}"
    if fields.weekdays == _WORK_DAYS:
        weekdays = "Monday to Friday"
    else:
        weekdays = _list(fields.weekdays, lambda weekday: _WEEKDAYS[weekday])
    if all_weekdays or (not both and not fields.weekdays):
        return on_days
    if all_days or (not both and not fields.days):
        return f"every {weekdays}"
    if both:
        return f"{on_days} if that is a {weekdays.replace(' and ', ' or ')}"
    return f"{on_days} and also every {weekdays}"


def _step(values: Sequence[int], size: int) -> int | None:
    """Return n if the values are each n-th of the whole cycle, counted from 0."""
    if len(values) <= 1 or len(values) == size:
        return None
    step = values[1] - values[0]
    return step if size % step == 0 and list(values) == list(range(0, size, step)) else None


def _list(bits: int, word: Callable[[int], str]) -> str:
    """Return the values as words, three or more in a row as `first to last`."""
    spans = spans_of(values_of(bits))
    return _and([word(first) if first == last else f"{word(first)} to {word(last)}" for first, last in spans])


def _and(words: Sequence[str]) -> str:
    start = ", ".join(words[:-1])
    return f"{start} and {words[-1]}" if start else "".join(words)


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
