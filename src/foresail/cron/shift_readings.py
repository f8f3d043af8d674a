"""The ways to say a schedule some minutes earlier, and the choice among them.

A fire at minute m of hour h on day d, X minutes earlier and read in a zone z minutes further east, is at
minute m - b, perhaps borrowing an hour, of an hour that perhaps borrows a day, where b is what whole hours
leave of X - z. So minutes fall into two classes (borrow or not), each class is shifted as a whole, and for
each the zone may be chosen. In a zone that takes all whole hours of X, hours and days stay as they were.

**The choice.** Whoever reads `kubectl get cronjob` should understand each line without arithmetic, so:

1. one expression in the job's own zone;
2. two in the own zone with dates and months as the user wrote them: `50 0-22 * * 5` with `50 23 * * 4`
   needs no explanation, whereas `50 * * * 5` in `Etc/GMT-1` must be read with the sign of that name turned
   round, by everyone, every time;
3. one in another zone: `50 0 * 5 1` in `Etc/GMT-1` can be held against the original field by field, which
   `50 23 1-30 5 0` with `50 23 30 4 0` cannot;
4. two, in the own zone before others;
5. the fewest expressions, in the own zone if that costs none more.

Ties go to fewer foreign zones, to more fires in the own zone, to hours left as the user wrote them, to the
nearer zone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Final

from foresail.cron.schedule import Dialect
from foresail.cron.shift_cover import Cover, Unsayable, days_earlier
from foresail.cron.shift_days import DayRule
from foresail.cron.shift_zone import Zone

_HOUR: Final = 60
_DAY: Final = 24
_PAIR: Final = 2


@dataclass(frozen=True, slots=True)
class Line:
    """One expression to be: masks of minutes and hours, the days, and the zone to read them in."""

    zone: Zone
    minutes: int
    hours: int
    rule: DayRule


@dataclass(frozen=True, slots=True)
class Original:
    """What is to be said earlier: time of day, days, dialect, own zone, and by how many minutes."""

    minutes: int
    hours: int
    rule: DayRule
    dialect: Dialect
    zone: Zone
    back: int

    def part(self, minutes: int) -> "Original":
        """Take only some of the minutes."""
        return replace(self, minutes=minutes)


@dataclass(frozen=True, slots=True)
class Reading:
    """Lines that fire exactly when wanted or, with `unsayable` given, also on days that none leaves out."""

    lines: tuple[Line, ...]
    unsayable: Unsayable | None = None


def in_own_zone(original: Original) -> Reading:
    """Say it in the own zone, with days that cannot be said replaced by the closest set that loses none."""
    lines: list[Line] = []
    unsayable = None
    for minutes in _classes(original.minutes, {original.back % _HOUR}):
        for piece in _pieces(original.part(minutes), original.zone):
            unsayable = unsayable or piece.cover.why
            lines += piece.lines()
    return Reading(_in_order(_joined(lines), original.zone), unsayable)


def in_any_zones(original: Original, others: Iterable[Zone]) -> Reading | None:
    """Say it exactly with the fewest lines, the own zone before others; None where no zones make it exact."""
    own = original.zone
    zones = (own, *(zone for zone in others if zone.east != own.east))
    borrows = {(original.back + own.east - zone.east) % _HOUR for zone in zones}
    ways = [_ways(original.part(minutes), zones) for minutes in _classes(original.minutes, borrows)]
    if not all(ways):
        return None
    choices = [_joined([line for way in choice for line in way]) for choice in _choices(original, ways, zones)]
    easiest = min(choices, key=lambda lines: _strain(lines, original))
    return Reading(_in_order(easiest, original.zone))


def _in_order(lines: tuple[Line, ...], own: Zone) -> tuple[Line, ...]:
    """Put the own zone first, and the line with most fires before the one that borrows."""
    return tuple(sorted(lines, key=lambda line: (line.zone != own, -_fires_a_day(line))))


def _fires_a_day(line: Line) -> int:
    return line.minutes.bit_count() * line.hours.bit_count()


def is_plain(lines: tuple[Line, ...], original: Original) -> bool:
    """Tell whether lines explain themselves: own zone, one, or two with the dates and months as written."""
    if len(lines) > _PAIR or any(line.zone != original.zone for line in lines):
        return False
    as_written = (original.rule.months, original.rule.days)
    return len(lines) == 1 or all((line.rule.months, line.rule.days) == as_written for line in lines)


def _strain(lines: tuple[Line, ...], original: Original) -> tuple[int, ...]:
    """Rank lines by how hard they are to read: the module's order of choice."""
    foreign = [line for line in lines if line.zone != original.zone]
    return (
        not is_plain(lines, original),
        len(lines),
        len({line.zone for line in foreign}),
        len(foreign),
        sum(_fires_a_day(line) for line in foreign),
        sum(line.hours != original.hours for line in lines),
        sum(abs(line.zone.east - original.zone.east) for line in foreign),
    )


def _ways(original: Original, zones: tuple[Zone, ...]) -> dict[Zone, tuple[Line, ...]]:
    """Say one class of minutes in each zone in which that is exact."""
    ways = {}
    for zone in zones:
        pieces = list(_pieces(original, zone))
        if not any(piece.cover.why for piece in pieces):
            ways[zone] = tuple(line for piece in pieces for line in piece.lines())
    return ways


def _choices(
    original: Original, ways: list[dict[Zone, tuple[Line, ...]]], zones: tuple[Zone, ...]
) -> Iterator[tuple[tuple[Line, ...], ...]]:
    """Offer one zone for all classes, and for each class its own zone or the best foreign one."""
    for zone in zones:
        if all(zone in way for way in ways):
            yield tuple(way[zone] for way in ways)
    options = []
    for way in ways:
        foreign = [lines for zone, lines in way.items() if zone != original.zone]
        best = [min(foreign, key=lambda lines: _strain(lines, original))] if foreign else []
        options.append([*best, *([way[original.zone]] if original.zone in way else [])])
    yield from product(*options)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Minutes and hours that borrow alike, so that one set of days goes with them."""

    zone: Zone
    minutes: int
    hours: int
    cover: Cover

    def lines(self) -> tuple[Line, ...]:
        return tuple(Line(self.zone, self.minutes, self.hours, rule) for rule in self.cover.rules)


def _pieces(original: Original, zone: Zone) -> Iterator[_Piece]:
    """Say one class of minutes in one zone: one piece that stays on its days, one that borrows a day."""
    whole, rest = divmod(original.back + original.zone.east - zone.east, _HOUR)
    lowest = (original.minutes & -original.minutes).bit_length() - 1
    borrow = lowest < rest
    minutes = original.minutes << (_HOUR - rest) if borrow else original.minutes >> rest
    days, hours = divmod(whole + borrow, _DAY)
    stay, wrap = original.hours >> hours, original.hours & ((1 << hours) - 1)
    if stay:
        yield _Piece(zone, minutes, stay, days_earlier(original.rule, days, original.dialect))
    if wrap:
        cover = days_earlier(original.rule, days + 1, original.dialect)
        yield _Piece(zone, minutes, wrap << (_DAY - hours), cover)


def _classes(minutes: int, borrows: set[int]) -> list[int]:
    """Split minutes at the points from which on they need not borrow."""
    edges = [0, *sorted(borrows), _HOUR]
    spans = [((1 << high) - 1) & ~((1 << low) - 1) for low, high in pairwise(edges)]
    return [minutes & span for span in spans if minutes & span]


def _joined(lines: list[Line]) -> tuple[Line, ...]:
    """Make one line of lines that differ in one time field only; which field comes first can matter."""
    hours_first = _join_minutes(_join_hours(lines))
    minutes_first = _join_hours(_join_minutes(lines))
    return tuple(minutes_first if len(minutes_first) < len(hours_first) else hours_first)


def _join_hours(lines: list[Line]) -> list[Line]:
    hours: dict[tuple[Zone, int, DayRule], int] = {}
    for line in lines:
        alike = (line.zone, line.minutes, line.rule)
        hours[alike] = hours.get(alike, 0) | line.hours
    return [Line(zone, minutes, mask, rule) for (zone, minutes, rule), mask in hours.items()]


def _join_minutes(lines: list[Line]) -> list[Line]:
    minutes: dict[tuple[Zone, int, DayRule], int] = {}
    for line in lines:
        alike = (line.zone, line.hours, line.rule)
        minutes[alike] = minutes.get(alike, 0) | line.minutes
    return [Line(zone, mask, hours, rule) for (zone, hours, rule), mask in minutes.items()]
