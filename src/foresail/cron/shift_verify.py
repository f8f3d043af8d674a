"""Proof, for zones of fixed offset, that expressions fire when the original does, minus X, and only then.

The expressions are parsed again from their text, and laid out as sets of minutes of the UTC day, each with
its set of days over the 400 years of the calendar. Equal layouts are equal for all time; nothing is sampled.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from foresail.cron.schedule import Dialect, Fields
from foresail.cron.shift_days import CYCLE_STARTS, day_rule, days_of, earlier

_DAY: Final = 24 * 60


@dataclass(frozen=True, slots=True)
class Reader:
    """The fields of an expression, and how many minutes to take off its wall clock for the instant meant."""

    fields: Fields
    back: int


Layout = tuple[tuple[int, int], ...]
"""Pairs of minutes of the UTC day and days of the cycle, both as masks."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What is wanted but not fired, fired but not wanted, and fired twice."""

    lost: Layout
    spurious: Layout
    doubled: Layout


def difference(wanted: Reader, fired: Iterable[Reader], dialect: Dialect) -> Difference:
    """Compare expressions with what they shall fire, over all 400 years."""
    target = _placed(wanted, dialect)
    others = [place for reader in fired for place in _placed(reader, dialect)]
    lost, spurious, doubled = [], [], []
    for minutes in _undivided([mask for mask, _ in (*target, *others)]):
        want, fire, twice = _days(target, minutes), 0, 0
        for mask, days in others:
            if mask & minutes:
                twice |= fire & days
                fire |= days
        lost.append((minutes, want & ~fire))
        spurious.append((minutes, fire & ~want))
        doubled.append((minutes, twice))
    return Difference(_some(lost), _some(spurious), _some(doubled))


def _some(layout: list[tuple[int, int]]) -> Layout:
    return tuple((minutes, days) for minutes, days in layout if days)


def _days(places: list[tuple[int, int]], minutes: int) -> int:
    return next((days for mask, days in places if mask & minutes), 0)


def _undivided(masks: list[int]) -> list[int]:
    """Split the minutes of the day so that each mask holds all of a part or none; drop what no mask holds."""
    parts = [0]
    for mask in masks:
        seen = sum(parts)
        halves = [half for part in parts for half in (part & mask, part & ~mask)]
        parts = [part for part in (*halves, mask & ~seen) if part]
    return parts


def _placed(reader: Reader, dialect: Dialect) -> list[tuple[int, int]]:
    """Place an expression on the minutes of the UTC day: those that stay on their day, those that do not."""
    fields = reader.fields
    rule = day_rule(fields, dialect)
    if rule is None:
        return []
    days = days_of(rule, dialect)
    clock = sum(fields.minutes << (60 * hour) for hour in range(24) if fields.hours >> hour & 1)
    by, rest = divmod(reader.back, _DAY)
    borrowing = (clock & ((1 << rest) - 1)) << (_DAY - rest)
    places = ((clock >> rest, by), (borrowing, by + 1))
    return [(minutes, earlier(days, each)) for minutes, each in places if minutes]


def instants(layout: Layout, start: datetime, end: datetime) -> list[datetime]:
    """List the instants of a layout in [start, end), in order."""
    first = (start - CYCLE_STARTS).days
    span = (1 << ((end - start).days + 2)) - 1
    found = [
        CYCLE_STARTS + timedelta(days=first + day, minutes=minute)
        for minutes, days in layout
        for day in _numbers(earlier(days, first) & span)
        for minute in _numbers(minutes)
    ]
    return sorted(at for at in found if start <= at < end)


def _numbers(mask: int) -> list[int]:
    return [number for number in range(mask.bit_length()) if mask >> number & 1]
