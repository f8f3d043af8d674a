"""Sets of days over the 400 years of the calendar, shifted some days earlier, and expressed as cron day fields.

146,097 days are exactly 20,871 weeks, so the days of a cron expression repeat with the calendar. One Python
integer with a bit per day represents them for all time.

Expressible (by the grammar of the day fields) is:
- robfig: a set in which every day, in its month, has a day of month or a weekday *all* of whose days
  belong to the set; robfig cannot require both fields.
- go-cron: a set that month, day of month and weekday decide; one expression keeps all its weekdays.
So neither can express a day that depends on the leap year ("the day before 1 March").
An inexpressible set is replaced by the closest one that loses no day.

Dates are split into as few boxes ("these days of these months") as possible. Boxes never overlap, because two
CronJobs that fire at one instant would warm up twice. A day that a month never has (30 February) may be in a box or
not, whichever gives fewer boxes.
"""

import enum
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Final

from foresail.cron.civil_time import GREGORIAN_CYCLE_DAYS, MAX_MONTH_LENGTHS, month_length
from foresail.cron.dialect import Dialect
from foresail.cron.fields import ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, Fields, combine_days

CYCLE: Final = GREGORIAN_CYCLE_DAYS
_FIRST_YEAR: Final = 2000
CYCLE_STARTS: Final = datetime(_FIRST_YEAR, 1, 1, tzinfo=UTC)  # day 0
EVERY_DAY: Final = (1 << CYCLE) - 1
_SATURDAY: Final = 6  # the weekday of day 0


@dataclass(frozen=True, slots=True)
class DayRule:
    """The three day fields of an expression as masks: bit i allows the value i, None allows any."""

    months: int
    days: int | None
    weekdays: int | None

    @property
    def is_every_day(self) -> bool:
        """Whether the rule allows every day."""
        return self.months == ALL_MONTHS and self.days is None and self.weekdays is None


@lru_cache(maxsize=1024)
def day_rule(fields: Fields, dialect: Dialect) -> DayRule | None:
    """Return the days that an expression allows in canonical form; None if it allows none."""
    both = fields.requires_both_day_fields(dialect)
    rule = _rule_requiring_both(fields) if both else _rule_requiring_either(fields)
    return rule if day_set(rule, dialect) else None


def _rule_requiring_both(fields: Fields) -> DayRule:
    days = None if fields.days == ALL_DAYS else fields.days
    weekdays = None if fields.weekdays == ALL_WEEKDAYS else fields.weekdays
    return DayRule(fields.months, days, weekdays)


def _rule_requiring_either(fields: Fields) -> DayRule:
    if fields.days == ALL_DAYS or fields.weekdays == ALL_WEEKDAYS:
        return DayRule(fields.months, None, None)
    if not fields.weekdays:
        return DayRule(fields.months, fields.days, None)
    return DayRule(fields.months, fields.days or None, fields.weekdays)


@lru_cache(maxsize=64)
def day_set(rule: DayRule, dialect: Dialect) -> int:
    """Return the days of the 400-year cycle that a rule allows."""
    months = _union(rule.months, month_bits())
    match rule.days, rule.weekdays:
        case None, None:
            return months
        case int(days), None:
            return months & _union(days, day_bits())
        case None, int(weekdays):
            return months & _union(weekdays, weekday_bits())
        case days, weekdays:
            by_date = _union(days or 0, day_bits())
            by_weekday = _union(weekdays or 0, weekday_bits())
            return months & combine_days(by_date, by_weekday, both=dialect.requires_both_day_fields)


def shift_day_set(days: int, by: int) -> int:
    """Shift a set of days `by` days earlier within the cycle (negative: later)."""
    by %= CYCLE
    return (days >> by) | ((days << (CYCLE - by)) & EVERY_DAY) if by else days


def shift_weekdays(weekdays: int, by: int) -> int:
    """Shift a mask of weekdays `by` days earlier."""
    by %= 7
    return ((weekdays >> by) | (weekdays << (7 - by))) & ALL_WEEKDAYS


def _union(mask: int, bits: tuple[int, ...]) -> int:
    if mask.bit_count() > len(bits) // 2:  # excluding the others is cheaper
        left_out = 0
        for value, days in enumerate(bits):
            if days and not mask >> value & 1:
                left_out |= days
        return EVERY_DAY ^ left_out
    union = 0
    for value, days in enumerate(bits):
        if mask >> value & 1:
            union |= days
    return union


@cache
def _month_starts() -> tuple[int, ...]:
    """Return the first day of each month of the cycle, and the day after the cycle."""
    starts = [0]
    day = 0
    for year in range(_FIRST_YEAR, _FIRST_YEAR + 400):
        for month in range(1, 13):
            day += month_length(year, month)
            starts.append(day)
    return tuple(starts)


def _bits(days: tuple[int, ...]) -> int:
    buffer = bytearray(CYCLE // 8 + 1)
    for day in days:
        buffer[day >> 3] |= 1 << (day & 7)
    return int.from_bytes(buffer, "little")


@cache
def month_bits() -> tuple[int, ...]:
    """Return the days of each month, by month number."""
    starts = _month_starts()
    # 2^end - 2^start is a run of ones; the difference of the sums gives all runs of a month at once.
    return (0, *(_bits(starts[m + 1 :: 12]) - _bits(starts[m:-1:12]) for m in range(12)))


@cache
def day_bits() -> tuple[int, ...]:
    """Return the days with each day-of-month number."""
    first = _bits(_month_starts()[:-1])
    bits = [0, *(first << day for day in range(28))]
    months = month_bits()
    # The 29th to the 31st must not reach into the next month.
    for day in (29, 30, 31):
        long_enough = sum(months[m] for m in range(1, 13) if MAX_MONTH_LENGTHS[m] >= day)
        bits.append((first << (day - 1)) & long_enough & ~(bits[1] | bits[2] | bits[3]))
    return tuple(bits)


@cache
def weekday_bits() -> tuple[int, ...]:
    """Return the days of each weekday, Sunday first."""
    weekly = EVERY_DAY // ALL_WEEKDAYS  # a bit every seventh day
    return tuple(weekly << ((weekday - _SATURDAY) % 7) for weekday in range(7))


_MAX_STEPS: Final = 4_000  # after this many the search for fewer boxes keeps the best result so far


@dataclass(frozen=True, slots=True)
class Box:
    """Every day of `days` in every month of `months`, both as masks by number."""

    months: int
    days: int


@dataclass(frozen=True, slots=True)
class BoxSplit:
    """Boxes that never overlap, and whether fewer were proved impossible."""

    boxes: tuple[Box, ...]
    is_minimal: bool


def split_into_boxes(rows: dict[int, int]) -> BoxSplit:
    """Split the wanted days of each month (by month number) into the fewest boxes that can be found."""
    rows = {month: days for month, days in rows.items() if days}
    lower_bound = _lower_bound(rows)
    boxes = min((_group_by_month(rows), _group_by_day(rows)), key=len)
    is_minimal = len(boxes) == lower_bound
    while not is_minimal:
        search = _BoxSearch(rows)
        better = search.find(len(boxes) - 1)
        if better is None:
            is_minimal = not search.gave_up
            break
        boxes = better
        is_minimal = len(boxes) == lower_bound
    return BoxSplit(tuple(_widen_to_all_months(box) for box in boxes), is_minimal)


def existing_days(month: int) -> int:
    """Return the mask of the days that a month has in at least one year."""
    return (1 << (MAX_MONTH_LENGTHS[month] + 1)) - 2


def _widen_to_all_months(box: Box) -> Box:
    """Return the box with all months if the other months have none of its days, such as the 31st."""
    others = (month for month in range(1, 13) if not box.months >> month & 1)
    return box if any(box.days & existing_days(month) for month in others) else Box(ALL_MONTHS, box.days)


def _group_by_month(rows: dict[int, int]) -> list[Box]:
    """Put months with the same days into one box."""
    boxes: list[Box] = []
    for month in sorted(rows, key=lambda m: -MAX_MONTH_LENGTHS[m]):
        for at, box in enumerate(boxes):
            if box.days & existing_days(month) == rows[month]:
                boxes[at] = Box(box.months | 1 << month, box.days)
                break
        else:
            boxes.append(Box(1 << month, rows[month]))
    return boxes


def _group_by_day(rows: dict[int, int]) -> list[Box]:
    """Put days with the same months into one box."""
    boxes: list[Box] = []
    for day in range(1, 32):
        months_with_day = sum(1 << m for m in range(1, 13) if MAX_MONTH_LENGTHS[m] >= day)
        months = sum(1 << m for m, days in rows.items() if days >> day & 1)
        if not months:
            continue
        for at, box in enumerate(boxes):
            if box.months & months_with_day == months:
                boxes[at] = Box(box.months, box.days | 1 << day)
                break
        else:
            boxes.append(Box(months, 1 << day))
    return boxes


def _lower_bound(rows: dict[int, int]) -> int:
    """Return a lower bound on the number of boxes: k disjoint boxes make a matrix of rank k at most.

    Only months that have all of the days in question count.
    """
    return max(
        _rank(
            [days & existing_days(month) & upto for month, days in rows.items() if MAX_MONTH_LENGTHS[month] >= length]
        )
        for length, upto in ((29, existing_days(2)), (30, existing_days(4)), (31, existing_days(1)))
    )


def _rank(rows: list[int]) -> int:
    """Return the rank over the field of two elements, which never exceeds the number of boxes."""
    rank = 0
    while rows:
        pivot = rows.pop()
        if pivot:
            rank += 1
            low = pivot & -pivot
            rows = [row ^ pivot if row & low else row for row in rows]
    return rank


class _BoxSearch:
    """Searches for a split into a given number of boxes: complete unless it reaches the step limit."""

    def __init__(self, rows: dict[int, int]) -> None:
        alike: dict[tuple[int, int], int] = {}  # months with the same wanted and the same missing days
        for month, days in rows.items():
            key = (days, existing_days(month))
            alike[key] = alike.get(key, 0) | 1 << month
        self._months = list(alike.values())
        patterns: dict[tuple[tuple[bool, bool], ...], int] = {}  # days that are equal in every month
        for day in range(1, 32):
            pattern = tuple((bool(days >> day & 1), bool(has >> day & 1)) for days, has in alike)
            if any(wanted for wanted, _ in pattern):
                patterns[pattern] = patterns.get(pattern, 0) | 1 << day
        self._days = list(patterns.values())
        self._wanted = [sum(1 << i for i, group in enumerate(self._days) if days & group) for days, _ in alike]
        self._free = [sum(1 << i for i, group in enumerate(self._days) if not has & group) for _, has in alike]
        self._steps = 0
        self.gave_up = False

    def find(self, boxes: int) -> list[Box] | None:
        """Return a split into at most `boxes` boxes, or None."""
        found = self._extend(boxes, self._wanted)
        return None if found is None else [self._box(rows, columns) for rows, columns in found]

    def _box(self, rows: int, columns: int) -> Box:
        months = sum(months for at, months in enumerate(self._months) if rows >> at & 1)
        days = sum(days for at, days in enumerate(self._days) if columns >> at & 1)
        return Box(months, days)

    def _extend(self, boxes: int, open_: list[int]) -> list[tuple[int, int]] | None:
        at = next((i for i, columns in enumerate(open_) if columns), None)
        if at is None:
            return []
        if not boxes or self.gave_up:
            return None
        must = open_[at] & -open_[at]
        rest = (open_[at] | self._free[at]) & ~must
        choice = rest
        while True:  # every set of columns with `must` in it, the widest first
            columns = choice | must
            joinable = self._joinable(open_, at, columns)
            for subset in range((1 << len(joinable)) - 1, -1, -1):
                self._steps += 1
                if self._steps > _MAX_STEPS:
                    self.gave_up = True
                    return None
                members = [at, *(i for bit, i in enumerate(joinable) if subset >> bit & 1)]
                left = list(open_)
                for i in members:
                    left[i] &= ~columns
                found = self._extend(boxes - 1, left)
                if found is not None:
                    return [(sum(1 << i for i in members), columns), *found]
            if not choice:
                return None
            choice = (choice - 1) & rest

    def _joinable(self, open_: list[int], at: int, columns: int) -> list[int]:
        """Return the other rows that can have all of these columns in a box, and need some of them."""
        return [
            i
            for i, columns_open in enumerate(open_)
            if i != at and not columns & ~(columns_open | self._free[i]) and columns & columns_open
        ]


class Inexpressible(enum.Enum):
    """Why no day fields express a set of days."""

    LEAP_YEAR = "leap year"
    WEEKDAYS_OF_MONTHS = "weekdays of some months"


@dataclass(frozen=True, slots=True)
class DayCover:
    """Disjoint rules for the shifted days: exact, or with some more days if `inexpressible` is set."""

    rules: tuple[DayRule, ...]
    inexpressible: Inexpressible | None = None
    is_minimal: bool = True


@dataclass(frozen=True, slots=True)
class _MonthCover:
    """The dates and weekdays (robfig only) that cover one month, and whether they include unwanted days."""

    days: int
    weekdays: int
    has_unwanted: bool = False


@lru_cache(maxsize=2048)
def shift_day_rule(rule: DayRule, by: int, dialect: Dialect) -> DayCover:
    """Express the days of a rule shifted `by` days earlier, with as few rules as can be found."""
    if by == 0 or rule.is_every_day:
        return DayCover((rule,))
    weekdays = None if rule.weekdays is None else shift_weekdays(rule.weekdays, by)
    if rule.months == ALL_MONTHS and rule.days is None:
        return DayCover((DayRule(ALL_MONTHS, None, weekdays),))
    wanted = shift_day_set(day_set(rule, dialect), by)
    if dialect.requires_both_day_fields:
        return _cover_requiring_both(wanted, weekdays)
    cover = _cover_requiring_either(wanted)
    if cover.inexpressible and weekdays is not None and rule.months != ALL_MONTHS:
        return replace(cover, inexpressible=Inexpressible.WEEKDAYS_OF_MONTHS)
    return cover


def _cover_requiring_both(wanted: int, weekdays: int | None) -> DayCover:
    """Cover days that are all on `weekdays`: these stay one field, and the dates are split into boxes."""
    among = EVERY_DAY if weekdays is None else _union(weekdays, weekday_bits())
    months = {m: _cover_month(m, wanted, among, by_weekday=False) for m in range(1, 13)}
    split = split_into_boxes({m: month.days for m, month in months.items()})
    rules = tuple(_rule(box.months, box.days, weekdays) for box in split.boxes)
    return DayCover(rules, _inexpressible(months), split.is_minimal)


def _cover_requiring_either(wanted: int) -> DayCover:
    """Cover days by date, by weekday or by either; a month that needs both must be in one rule."""
    months = {m: _cover_month(m, wanted, EVERY_DAY, by_weekday=True) for m in range(1, 13)}
    by_date = split_into_boxes({m: month.days for m, month in months.items() if not month.weekdays})
    groups: dict[tuple[int, int], int] = {}
    for m in sorted((m for m, month in months.items() if month.weekdays), key=lambda m: -existing_days(m)):
        days = months[m].days
        weekdays = months[m].weekdays
        alike = next((k for k in groups if k[1] == weekdays and k[0] & existing_days(m) == days), (days, weekdays))
        groups[alike] = groups.get(alike, 0) | 1 << m
    rules = [_rule(box.months, box.days, None) for box in by_date.boxes]
    rules += [_rule(in_months, days, weekdays) for (days, weekdays), in_months in groups.items()]
    return DayCover(tuple(rules), _inexpressible(months), by_date.is_minimal)


def _rule(months: int, days: int, weekdays: int | None) -> DayRule:
    whole = all(not existing_days(m) & ~days for m in range(1, 13) if months >> m & 1)
    return DayRule(months, None if whole or not days else days, weekdays)


def _inexpressible(months: dict[int, _MonthCover]) -> Inexpressible | None:
    return Inexpressible.LEAP_YEAR if any(month.has_unwanted for month in months.values()) else None


def _cover_month(month: int, wanted: int, among: int, *, by_weekday: bool) -> _MonthCover:
    here = month_bits()[month] & among
    missing = here & ~wanted
    wanted &= here
    if not missing:
        return _MonthCover(existing_days(month), 0)
    if not wanted:
        return _MonthCover(0, 0)
    days = _values(day_bits(), touching=wanted, avoiding=missing)
    weekdays = _values(weekday_bits(), touching=wanted, avoiding=missing) if by_weekday else 0
    left = wanted & ~_union(days, day_bits()) & ~_union(weekdays, weekday_bits())
    if not left:
        return _MonthCover(days, weekdays)
    # Not expressible: add the dates or the weekdays of what is left, whichever adds fewer unwanted days.
    more_days = _values(day_bits(), touching=left)
    more_weekdays = _values(weekday_bits(), touching=left)
    unwanted_by_date = (_union(more_days, day_bits()) & missing).bit_count()
    unwanted_by_week = (_union(more_weekdays, weekday_bits()) & missing).bit_count()
    if by_weekday and unwanted_by_week < unwanted_by_date:
        return _MonthCover(days, weekdays | more_weekdays, has_unwanted=True)
    days |= more_days
    # With every date of the month the weekdays add nothing.
    return _MonthCover(days, 0 if days == existing_days(month) else weekdays, has_unwanted=True)


def _values(bits: tuple[int, ...], *, touching: int, avoiding: int = 0) -> int:
    """Return the mask of the values with a day in `touching` and none in `avoiding`."""
    return sum(1 << value for value, days in enumerate(bits) if days & touching and not days & avoiding)
