"""A second opinion on cron, by brute force: it imports nothing of ours and shares no idea with the compiler.

It reads an expression with a parser of its own, walks through the calendar with `datetime.date`, and lays out
every single minute of eight years, of which two (2024 and 2028) are leap years.
"""

from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache, lru_cache
from itertools import compress
from typing import Final

FIRST: Final = date(2023, 1, 1)
AFTER_LAST: Final = date(2031, 1, 1)
_MARGIN: Final = 10  # days on either side, so that nothing is cut off by a lead time and two offsets
_DAY: Final = 1440
_NAMES: Final = {
    name: number
    for names, low in (
        ("sun mon tue wed thu fri sat", 0),
        ("jan feb mar apr may jun jul aug sep oct nov dec", 1),
    )
    for number, name in enumerate(names.split(), low)
}


@dataclass(frozen=True)
class Brute:
    """An expression as plain sets of numbers."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool  # one of the two day fields is enough

    def on(self, month: int, day: int, weekday: int) -> bool:
        """Tell whether it fires on a date."""
        if month not in self.months:
            return False
        if self.either:
            return day in self.days or weekday in self.weekdays
        return day in self.days and weekday in self.weekdays


def read(text: str, dialect: str) -> Brute:
    """Read five fields that are known to be valid."""
    minute, hour, day, month, weekday = text.split()
    starred = any(_stars(item) for field in (day, weekday) for item in field.split(","))
    return Brute(
        _set(minute, 0, 59),
        _set(hour, 0, 23),
        _set(day, 1, 31),
        _set(month, 1, 12),
        frozenset(value % 7 for value in _set(weekday, 0, 7 if dialect == "go-cron" else 6)),  # 7 is Sunday too
        dialect == "robfig" and not starred,
    )


def _stars(item: str) -> bool:
    head, _, step = item.partition("/")
    return head in ("*", "?") and step in ("", "1")


def _set(field: str, low: int, high: int) -> frozenset[int]:
    values: set[int] = set()
    for item in field.split(","):
        span, _, step = item.partition("/")
        ends = [low, high] if span in ("*", "?") else [_number(end) for end in span.split("-")]
        if len(ends) == 1:
            ends.append(high if step else ends[0])
        first, last = ends
        if last < first:  # only go-cron wraps, and only its tests come here
            last += high - low + 1
        values.update(low + (value - low) % (high - low + 1) for value in range(first, last + 1, int(step or 1)))
    return frozenset(values)


def _number(word: str) -> int:
    return _NAMES[word.lower()] if word.lower() in _NAMES else int(word)


@cache
def _calendar() -> list[tuple[int, int, int]]:
    start = FIRST - timedelta(days=_MARGIN)
    days = ((start + timedelta(days=i)) for i in range((AFTER_LAST - FIRST).days + 2 * _MARGIN))
    return [(day.month, day.day, day.isoweekday() % 7) for day in days]


def minutes_of(text: str, dialect: str, east: int, lead: int = 0) -> int:
    """Lay out the fires of an expression, `lead` minutes earlier: bit i is the i-th minute from 2023 on."""
    brute = read(text, dialect)
    pattern = 0
    for hour in brute.hours:
        for minute in brute.minutes:
            pattern |= 1 << (hour * 60 + minute)
    fires, idle = pattern.to_bytes(_DAY // 8, "little"), bytes(_DAY // 8)
    wall = int.from_bytes(b"".join([fires if brute.on(*day) else idle for day in _calendar()]), "little")
    inner = (1 << (_DAY * (AFTER_LAST - FIRST).days)) - 1
    return wall >> (_MARGIN * _DAY + east + lead) & inner


@lru_cache(maxsize=4096)
def fires_a_day(text: str, dialect: str) -> float:
    """Give the mean number of fires a day over the eight years."""
    brute = read(text, dialect)
    days = sum(brute.on(*day) for day in _calendar())
    return len(brute.hours) * len(brute.minutes) * days / len(_calendar())


@cache
def _cycle() -> list[int]:
    """Give the (month, day, weekday) of each day of 400 years as one number."""
    days = (date(2001, 1, 1) + timedelta(days=i) for i in range(146_097))
    return [day.month * 1000 + day.day * 10 + day.isoweekday() % 7 for day in days]


@lru_cache(maxsize=4096)
def expressible(rule: Brute, dialect: str, earlier: int) -> bool:
    """Decide over 400 years, day by day, whether any union of expressions says a rule's days so much earlier.

    robfig: each day has a date or a weekday all of whose days in that month are wanted.
    go-cron: month, date and weekday decide.
    """
    cells = _cycle()
    on = {cell for cell in set(cells) if rule.on(cell // 1000, cell // 10 % 100, cell % 10)}
    wanted = bytes([cell in on for cell in cells])
    wanted = wanted[earlier:] + wanted[:earlier]
    inside = set(compress(cells, wanted))
    outside = set(compress(cells, wanted.translate(bytes([1, 0, *range(2, 256)]))))
    if dialect == "go-cron":
        return not inside & outside
    dates_broken = {cell // 10 for cell in outside}
    weekdays_broken = {(cell // 1000, cell % 10) for cell in outside}
    return not any(cell // 10 in dates_broken and (cell // 1000, cell % 10) in weekdays_broken for cell in inside)


def inexpressible(text: str, dialect: str, east: int, lead: int) -> bool:
    """Find a fire whose day no expression can say, in the schedule's own or any whole-hour zone."""
    brute = read(text, dialect)
    rule = Brute(frozenset(), frozenset(), brute.days, brute.months, brute.weekdays, brute.either)
    zones = [east, *(60 * hours for hours in range(-12, 15))]
    chances = {
        frozenset(-((hour * 60 + minute - lead - east + zone) // _DAY) for zone in zones)
        for hour in brute.hours
        for minute in brute.minutes
    }
    return any(not any(expressible(rule, dialect, days) for days in chance) for chance in chances)
