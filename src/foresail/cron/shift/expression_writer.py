"""Writes masks as cron expressions in the form that is easiest to read.

The text parses in both dialects to exactly the given masks. So Sunday is 0, a range never wraps, a step is
smaller than its range, and a day field is `*` only if it restricts nothing (the star decides how robfig
combines the two day fields).
"""

from itertools import pairwise
from typing import Final

from foresail.cron.fields import ALL_HOURS, ALL_MINUTES, ALL_MONTHS, spans_of, values_of
from foresail.cron.schedule import CalendarSchedule
from foresail.cron.shift.day_sets import DayRule

_FIELDS: Final = 5
_WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MONTHS: Final = ("", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_MIN_STAR_STEP: Final = 3  # fewer values are listed, not written as */n
_MIN_RANGE_STEP: Final = 5  # 5,20,35,50 is easy to read; five and more values are written as a-b/n


class ExpressionWriter:
    """Writes expressions for a schedule; a field with an unchanged meaning keeps the user's text."""

    def __init__(self, original: CalendarSchedule, rule: DayRule) -> None:
        body = original.text.split()
        if body and body[0].startswith(("TZ=", "CRON_TZ=")):
            body = body[1:]
        self._words = tuple(body) if len(body) == _FIELDS else None  # a macro has no fields to keep
        self._fields = original.fields
        self._rule = rule

    def write(self, minutes: int, hours: int, rule: DayRule) -> str:
        """Write one expression."""
        words = self._words
        if words and minutes == self._fields.minutes:
            minute = words[0]
        else:
            minute = _numbers(minutes, ALL_MINUTES, stepped_star=True)
        as_written = words[1] if words and hours == self._fields.hours else None
        hour = as_written or _numbers(hours, ALL_HOURS, stepped_star=True)
        return f"{minute} {hour} {self._days(rule)}"

    def _days(self, rule: DayRule) -> str:
        words = self._words
        if words and rule == self._rule:
            return " ".join(words[2:])
        day = "*" if rule.days is None else _numbers(rule.days)
        if words and rule.months == self._fields.months:
            month = words[3]
        else:
            month = _numbers(rule.months, ALL_MONTHS, names=_names(words, 3, _MONTHS))
        weekday = "*" if rule.weekdays is None else _numbers(rule.weekdays, names=_names(words, 4, _WEEKDAYS))
        return f"{day} {month} {weekday}"


def _names(words: tuple[str, ...] | None, at: int, names: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the names if the original field used names."""
    return names if words and any(c.isalpha() for c in words[at]) else None


def _numbers(
    mask: int, everything: int = 0, *, stepped_star: bool = False, names: tuple[str, ...] | None = None
) -> str:
    """Write a mask as `*`, `*/n`, `a-b/n`, or a list of values and ranges."""
    if mask == everything:
        return "*"
    values = values_of(mask)
    step = _step(values)
    if (
        stepped_star
        and len(values) >= _MIN_STAR_STEP
        and step > 1
        and not values[0]
        and values[-1] + step > _top(everything)
    ):
        return f"*/{step}"
    if len(values) >= _MIN_RANGE_STEP and step > 1:
        return f"{_word(values[0], names)}-{_word(values[-1], names)}/{step}"
    return ",".join(
        _word(first, names) if first == last else f"{_word(first, names)}-{_word(last, names)}"
        for first, last in spans_of(values)
    )


def _step(values: list[int]) -> int:
    """Return the distance between neighbours, or 0 if it differs."""
    steps = {after - before for before, after in pairwise(values)}
    return steps.pop() if len(steps) == 1 else 0


def _top(everything: int) -> int:
    return everything.bit_length() - 1


def _word(value: int, names: tuple[str, ...] | None) -> str:
    return names[value] if names else str(value)
