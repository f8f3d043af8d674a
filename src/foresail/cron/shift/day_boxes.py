"""Splits a set of dates into as few boxes ("these days of these months") as possible.

Boxes never overlap, because two CronJobs that fire at one instant would warm up twice.
A day that a month never has (30 February) may be in a box or not, whichever gives fewer boxes.
"""

from dataclasses import dataclass
from typing import Final

from foresail.cron.civil_time import MAX_MONTH_LENGTHS
from foresail.cron.fields import ALL_MONTHS

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
