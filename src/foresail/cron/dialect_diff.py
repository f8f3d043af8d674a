"""What changes for a schedule when Velero is upgraded to 1.18.3, which uses another cron library."""

import enum
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from foresail.cron.dialect import CronError, Dialect
from foresail.cron.parser import parse
from foresail.cron.schedule import CalendarSchedule, Schedule
from foresail.cron.zones import offset_changes

_AROUND = timedelta(days=2)
_FIVE_YEARS = timedelta(days=1826)


class DialectChange(enum.Enum):
    """What an upgrade does to a schedule."""

    NONE = "same"
    DAYS = "other days"
    CLOCKS = "other fires when clocks change"
    REFUSED = "refused after the upgrade"
    ACCEPTED = "accepted only after the upgrade"
    INVALID = "refused before and after"


@dataclass(frozen=True, slots=True)
class DialectDiff:
    """The change, its reason, and the fires that it removes and adds (the first of each day)."""

    change: DialectChange
    reason: str | None = None
    removed: tuple[datetime, ...] = ()
    added: tuple[datetime, ...] = ()
    zone: str = "UTC"  # of the schedule


def compare_dialects(text: str, zone: str, since: datetime, ahead: timedelta = _FIVE_YEARS) -> DialectDiff:
    """Compare the fires of a schedule in robfig and go-cron from an instant on, by default for five years."""
    old = _parse_or_error(text, Dialect.ROBFIG, zone)
    new = _parse_or_error(text, Dialect.GOCRON, zone)
    match old, new:
        case CronError(), CronError():
            return DialectDiff(DialectChange.INVALID, str(old))
        case _, CronError():
            return DialectDiff(DialectChange.REFUSED, str(new))
        case CronError(), _:
            return DialectDiff(DialectChange.ACCEPTED, f"until then: {old}")
        case CalendarSchedule(), CalendarSchedule():
            return _compare_calendars(old, new, since, since + ahead)
        case _:
            return DialectDiff(DialectChange.NONE)


def _parse_or_error(text: str, dialect: Dialect, zone: str) -> Schedule | CronError:
    try:
        return parse(text, dialect, zone)
    except CronError as error:
        return error


def _compare_calendars(old: CalendarSchedule, new: CalendarSchedule, since: datetime, until: datetime) -> DialectDiff:
    by_old, by_new = (schedule.fields.days_by_first_weekday(schedule.dialect) for schedule in (old, new))
    if by_old != by_new:
        removed, added = _compare_fires(_once_a_day(old), _once_a_day(new), [(since, until)])
        if removed or added:
            reason = "day-of-month and day-of-week must both match; until then one of them is enough"
            return DialectDiff(DialectChange.DAYS, reason, removed, added, old.zone)
    around = [(change.at - _AROUND, change.at + _AROUND) for change in offset_changes(old.zone, since, until)]
    removed, added = _compare_fires(old, new, around)
    if removed or added:
        return DialectDiff(
            DialectChange.CLOCKS,
            f"a time that the clock in {old.zone} jumps over is not skipped",
            removed,
            added,
            old.zone,
        )
    return DialectDiff(DialectChange.NONE)


def _once_a_day(schedule: CalendarSchedule) -> CalendarSchedule:
    """Return the schedule with the first fire of each day only, which is enough to compare days."""
    fields = schedule.fields
    first = replace(fields, minutes=fields.minutes & -fields.minutes, hours=fields.hours & -fields.hours)
    return replace(schedule, fields=first)


def _compare_fires(
    old: CalendarSchedule, new: CalendarSchedule, spans: list[tuple[datetime, datetime]]
) -> tuple[tuple[datetime, ...], tuple[datetime, ...]]:
    before = set(_fires(old, spans))
    after = set(_fires(new, spans))
    return tuple(sorted(before - after)), tuple(sorted(after - before))


def _fires(schedule: CalendarSchedule, spans: list[tuple[datetime, datetime]]) -> Iterator[datetime]:
    for start, end in spans:
        yield from schedule.between(start, end)
