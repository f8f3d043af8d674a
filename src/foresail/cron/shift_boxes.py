"""Which days of which months, said in as few "these days of these months" boxes as possible.

The boxes never overlap, because two CronJobs that fire at one instant would warm up twice.
A day that a month never has (30 February) belongs to a box or not, whichever makes it shorter.
"""

from dataclasses import dataclass
from typing import Final

from foresail.cron.civil import LONGEST
from foresail.cron.fields import ALL_MONTHS

_PATIENCE: Final = 4_000  # steps of the search for fewer boxes before the best found so far stands


@dataclass(frozen=True, slots=True)
class Box:
    """Every day of `days` in every month of `months`, both as masks by number."""

    months: int
    days: int


@dataclass(frozen=True, slots=True)
class Boxes:
    """Boxes that never overlap, and whether fewer were proved impossible."""

    boxes: tuple[Box, ...]
    fewest: bool


def boxes_for(rows: dict[int, int]) -> Boxes:
    """Split the wanted days of each month (by month number) into the fewest boxes that can be found."""
    rows = {month: days for month, days in rows.items() if days}
    floor = _at_least(rows)
    found = min((_by_month(rows), _by_day(rows)), key=len)
    fewest = len(found) == floor
    while not fewest:
        search = _Search(rows)
        better = search.within(len(found) - 1)
        if better is None:
            fewest = not search.gave_up
            break
        found = better
        fewest = len(found) == floor
    return Boxes(tuple(_widened(box) for box in found), fewest)


def existing(month: int) -> int:
    """Mask the days that a month has in at least one year."""
    return (1 << (LONGEST[month] + 1)) - 2


def _widened(box: Box) -> Box:
    """Say "every month" where the months left out have none of the days anyway: the 31st."""
    others = (month for month in range(1, 13) if not box.months >> month & 1)
    return box if any(box.days & existing(month) for month in others) else Box(ALL_MONTHS, box.days)


def _by_month(rows: dict[int, int]) -> list[Box]:
    """Put months with the same days into one box."""
    boxes: list[Box] = []
    for month in sorted(rows, key=lambda m: -LONGEST[m]):
        for at, box in enumerate(boxes):
            if box.days & existing(month) == rows[month]:
                boxes[at] = Box(box.months | 1 << month, box.days)
                break
        else:
            boxes.append(Box(1 << month, rows[month]))
    return boxes


def _by_day(rows: dict[int, int]) -> list[Box]:
    """Put days with the same months into one box."""
    boxes: list[Box] = []
    for day in range(1, 32):
        has_it = sum(1 << m for m in range(1, 13) if LONGEST[m] >= day)
        months = sum(1 << m for m, days in rows.items() if days >> day & 1)
        if not months:
            continue
        for at, box in enumerate(boxes):
            if box.months & has_it == months:
                boxes[at] = Box(box.months, box.days | 1 << day)
                break
        else:
            boxes.append(Box(months, 1 << day))
    return boxes


def _at_least(rows: dict[int, int]) -> int:
    """Bound the number of boxes from below: k boxes that never overlap make a matrix of rank k at most.

    Only months that have all of the days looked at count, so that no choice is left open.
    """
    return max(
        _rank([days & existing(month) & upto for month, days in rows.items() if LONGEST[month] >= length])
        for length, upto in ((29, existing(2)), (30, existing(4)), (31, existing(1)))
    )


def _rank(rows: list[int]) -> int:
    """Rank over the field of two elements, which is never above the number of boxes."""
    rank = 0
    while rows:
        pivot = rows.pop()
        if pivot:
            rank += 1
            low = pivot & -pivot
            rows = [row ^ pivot if row & low else row for row in rows]
    return rank


class _Search:
    """Looks for a split into a given number of boxes: complete unless its patience ends."""

    def __init__(self, rows: dict[int, int]) -> None:
        alike: dict[tuple[int, int], int] = {}  # months with the same wanted and the same missing days
        for month, days in rows.items():
            key = (days, existing(month))
            alike[key] = alike.get(key, 0) | 1 << month
        self._months = list(alike.values())
        patterns: dict[tuple[tuple[bool, bool], ...], int] = {}  # days that no month tells apart
        for day in range(1, 32):
            pattern = tuple((bool(days >> day & 1), bool(has >> day & 1)) for days, has in alike)
            if any(wanted for wanted, _ in pattern):
                patterns[pattern] = patterns.get(pattern, 0) | 1 << day
        self._days = list(patterns.values())
        self._wanted = [sum(1 << i for i, group in enumerate(self._days) if days & group) for days, _ in alike]
        self._free = [sum(1 << i for i, group in enumerate(self._days) if not has & group) for _, has in alike]
        self._steps = 0
        self.gave_up = False

    def within(self, boxes: int) -> list[Box] | None:
        """Find a split into at most so many boxes."""
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
            joinable = [
                i
                for i, columns_open in enumerate(open_)
                if i != at and not columns & ~(columns_open | self._free[i]) and columns & columns_open
            ]
            for subset in range((1 << len(joinable)) - 1, -1, -1):
                self._steps += 1
                if self._steps > _PATIENCE:
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
