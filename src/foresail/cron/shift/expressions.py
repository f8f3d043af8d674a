"""Chooses the expressions for a schedule some minutes earlier.

A fire at minute m of hour h on day d, X minutes earlier and written in a zone z minutes further east, is at
minute m - b, perhaps borrowing an hour, of an hour that perhaps borrows a day, where b is what whole hours
leave of X - z. So minutes fall into two classes (borrow or not), each class is shifted as a whole, and the
zone can be chosen for each. In a zone that absorbs all whole hours of X, hours and days stay as they were.

**The choice.** A reader of `kubectl get cronjob` should understand each expression without arithmetic, so:

1. one expression in the job's own zone;
2. two in the own zone with dates and months as the user wrote them: `50 0-22 * * 5` with `50 23 * * 4`
   needs no explanation, whereas `50 * * * 5` in `Etc/GMT-1` has a reversed sign in its zone;
3. one in another zone: `50 0 * 5 1` in `Etc/GMT-1` matches the original field by field, which
   `50 23 1-30 5 0` with `50 23 30 4 0` does not;
4. two, in the own zone rather than others;
5. the fewest expressions, in the own zone if that needs no more.

Ties go to fewer foreign zones, to more fires in the own zone, to hours as the user wrote them, to the
nearer zone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Final

from foresail.cron.dialect import Dialect
from foresail.cron.fields import ALL_HOURS, ALL_MINUTES, ALL_MONTHS, spans_of, values_of
from foresail.cron.schedule import CalendarSchedule
from foresail.cron.shift.candidate_zones import OffsetZone
from foresail.cron.shift.days import DayCover, DayRule, Inexpressible, shift_day_rule

_FIELDS: Final = 5
_WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MONTHS: Final = ("", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_MIN_STAR_STEP: Final = 3  # fewer values are listed, not written as */n
_MIN_RANGE_STEP: Final = 5  # 5,20,35,50 is easy to read; five and more values are written as a-b/n


class ExpressionWriter:
    """Writes expressions for a schedule, easy to read; a field with an unchanged meaning keeps the user's text.

    The text parses in both dialects to exactly the given masks. So Sunday is 0, a range never wraps, a step is
    smaller than its range, and a day field is `*` only if it restricts nothing (the star decides how robfig
    combines the two day fields).
    """

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


_HOUR: Final = 60
_DAY: Final = 24
_PAIR: Final = 2


@dataclass(frozen=True, slots=True)
class DraftExpression:
    """An expression before it is written: minutes and hours as masks, the days, and the zone."""

    zone: OffsetZone
    minutes: int
    hours: int
    rule: DayRule


@dataclass(frozen=True, slots=True)
class ShiftRequest:
    """A schedule to shift `lead` minutes earlier: time of day, days, dialect and own zone."""

    minutes: int
    hours: int
    rule: DayRule
    dialect: Dialect
    zone: OffsetZone
    lead: int

    def with_minutes(self, minutes: int) -> "ShiftRequest":
        """Return the request for only some of the minutes."""
        return replace(self, minutes=minutes)


@dataclass(frozen=True, slots=True)
class ExpressionSet:
    """Expressions that fire exactly when wanted, or also on other days if `inexpressible` is set."""

    drafts: tuple[DraftExpression, ...]
    inexpressible: Inexpressible | None = None


def express_in_own_zone(request: ShiftRequest) -> ExpressionSet:
    """Express it in the own zone; inexpressible days become the closest set that loses none."""
    drafts: list[DraftExpression] = []
    inexpressible = None
    for minutes in _minute_classes(request.minutes, {request.lead % _HOUR}):
        for part in _parts(request.with_minutes(minutes), request.zone):
            inexpressible = inexpressible or part.cover.inexpressible
            drafts += part.drafts()
    return ExpressionSet(_sort(_merge(drafts), request.zone), inexpressible)


def express_in_any_zone(request: ShiftRequest, others: Iterable[OffsetZone]) -> ExpressionSet | None:
    """Express it exactly in the way that is easiest to read; None if no zones make it exact."""
    own = request.zone
    zones = (own, *(zone for zone in others if zone.offset != own.offset))
    borrows = {(request.lead + own.offset - zone.offset) % _HOUR for zone in zones}
    classes = _minute_classes(request.minutes, borrows)
    by_class = [_exact_drafts_by_zone(request.with_minutes(minutes), zones) for minutes in classes]
    if not all(by_class):
        return None
    candidates = [
        _merge([draft for drafts in combination for draft in drafts])
        for combination in _combinations(request, by_class, zones)
    ]
    easiest = min(candidates, key=lambda drafts: _reading_cost(drafts, request))
    return ExpressionSet(_sort(easiest, request.zone))


def _sort(drafts: tuple[DraftExpression, ...], own: OffsetZone) -> tuple[DraftExpression, ...]:
    """Sort by own zone first, then by most fires."""
    return tuple(sorted(drafts, key=lambda draft: (draft.zone != own, -_fires_per_day(draft))))


def _fires_per_day(draft: DraftExpression) -> int:
    return draft.minutes.bit_count() * draft.hours.bit_count()


def is_easy_to_read(drafts: tuple[DraftExpression, ...], request: ShiftRequest) -> bool:
    """Return whether all are in the own zone, and are one, or two with dates and months as written."""
    if len(drafts) > _PAIR or any(draft.zone != request.zone for draft in drafts):
        return False
    as_written = (request.rule.months, request.rule.days)
    return len(drafts) == 1 or all((draft.rule.months, draft.rule.days) == as_written for draft in drafts)


def _reading_cost(drafts: tuple[DraftExpression, ...], request: ShiftRequest) -> tuple[int, ...]:
    """Rank expressions by how hard they are to read, in the order of the module's docstring."""
    foreign = [draft for draft in drafts if draft.zone != request.zone]
    return (
        not is_easy_to_read(drafts, request),
        len(drafts),
        len({draft.zone for draft in foreign}),
        len(foreign),
        sum(_fires_per_day(draft) for draft in foreign),
        sum(draft.hours != request.hours for draft in drafts),
        sum(abs(draft.zone.offset - request.zone.offset) for draft in foreign),
    )


def _exact_drafts_by_zone(
    request: ShiftRequest, zones: tuple[OffsetZone, ...]
) -> dict[OffsetZone, tuple[DraftExpression, ...]]:
    """Express one class of minutes in each zone in which that is exact."""
    exact = {}
    for zone in zones:
        parts = list(_parts(request, zone))
        if not any(part.cover.inexpressible for part in parts):
            exact[zone] = tuple(draft for part in parts for draft in part.drafts())
    return exact


def _combinations(
    request: ShiftRequest, by_class: list[dict[OffsetZone, tuple[DraftExpression, ...]]], zones: tuple[OffsetZone, ...]
) -> Iterator[tuple[tuple[DraftExpression, ...], ...]]:
    """Yield each zone for all classes, then for each class its own zone or the best foreign one."""
    for zone in zones:
        if all(zone in exact for exact in by_class):
            yield tuple(exact[zone] for exact in by_class)
    options = []
    for exact in by_class:
        foreign = [drafts for zone, drafts in exact.items() if zone != request.zone]
        best = [min(foreign, key=lambda drafts: _reading_cost(drafts, request))] if foreign else []
        options.append([*best, *([exact[request.zone]] if request.zone in exact else [])])
    yield from product(*options)


@dataclass(frozen=True, slots=True)
class _Part:
    """Minutes and hours that borrow alike, so that they share one set of days."""

    zone: OffsetZone
    minutes: int
    hours: int
    cover: DayCover

    def drafts(self) -> tuple[DraftExpression, ...]:
        return tuple(DraftExpression(self.zone, self.minutes, self.hours, rule) for rule in self.cover.rules)


def _parts(request: ShiftRequest, zone: OffsetZone) -> Iterator[_Part]:
    """Split one class of minutes in one zone: a part that stays on its days, and one that borrows a day."""
    whole, rest = divmod(request.lead + request.zone.offset - zone.offset, _HOUR)
    lowest = (request.minutes & -request.minutes).bit_length() - 1
    borrow = lowest < rest
    minutes = request.minutes << (_HOUR - rest) if borrow else request.minutes >> rest
    days, hours = divmod(whole + borrow, _DAY)
    stay = request.hours >> hours
    wrap = request.hours & ((1 << hours) - 1)
    if stay:
        yield _Part(zone, minutes, stay, shift_day_rule(request.rule, days, request.dialect))
    if wrap:
        cover = shift_day_rule(request.rule, days + 1, request.dialect)
        yield _Part(zone, minutes, wrap << (_DAY - hours), cover)


def _minute_classes(minutes: int, borrows: set[int]) -> list[int]:
    """Split minutes at the points from which on they need not borrow."""
    edges = [0, *sorted(borrows), _HOUR]
    spans = [((1 << high) - 1) & ~((1 << low) - 1) for low, high in pairwise(edges)]
    return [minutes & span for span in spans if minutes & span]


def _merge(drafts: list[DraftExpression]) -> tuple[DraftExpression, ...]:
    """Merge expressions that differ in one time field only; the order of the fields can matter."""
    hours_first = _merge_minutes(_merge_hours(drafts))
    minutes_first = _merge_hours(_merge_minutes(drafts))
    return tuple(minutes_first if len(minutes_first) < len(hours_first) else hours_first)


def _merge_hours(drafts: list[DraftExpression]) -> list[DraftExpression]:
    hours: dict[tuple[OffsetZone, int, DayRule], int] = {}
    for draft in drafts:
        rest = (draft.zone, draft.minutes, draft.rule)
        hours[rest] = hours.get(rest, 0) | draft.hours
    return [DraftExpression(zone, minutes, mask, rule) for (zone, minutes, rule), mask in hours.items()]


def _merge_minutes(drafts: list[DraftExpression]) -> list[DraftExpression]:
    minutes: dict[tuple[OffsetZone, int, DayRule], int] = {}
    for draft in drafts:
        rest = (draft.zone, draft.hours, draft.rule)
        minutes[rest] = minutes.get(rest, 0) | draft.minutes
    return [DraftExpression(zone, mask, hours, rule) for (zone, hours, rule), mask in minutes.items()]
