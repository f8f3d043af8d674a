"""What changes for a schedule when Velero is upgraded to 1.18.3, which reads it by another cron library."""

import enum
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from foresail.cron.calendar import Calendar
from foresail.cron.dialect import Dialect
from foresail.cron.errors import CronError
from foresail.cron.offsets import changes
from foresail.cron.schedule import Schedule, parse

_AROUND = timedelta(days=2)
_FIVE_YEARS = timedelta(days=1826)


class Change(enum.Enum):
    """What an upgrade does to a schedule."""

    NONE = "same"
    DAYS = "other days"
    CLOCKS = "other fires when clocks change"
    REFUSED = "refused after the upgrade"
    ACCEPTED = "accepted only after the upgrade"
    INVALID = "refused before and after"


@dataclass(frozen=True, slots=True)
class Difference:
    """The change, why it comes, and which fires of the time compared go and come (the first of each day)."""

    change: Change
    reason: str | None = None
    gone: tuple[datetime, ...] = ()
    new: tuple[datetime, ...] = ()
    zone: str = "UTC"  # in which the schedule is read


def difference(text: str, zone: str, since: datetime, ahead: timedelta = _FIVE_YEARS) -> Difference:
    """Compare what robfig and go-cron make of a schedule over the time from an instant on, five years by default."""
    old, new = _parsed(text, Dialect.ROBFIG, zone), _parsed(text, Dialect.GOCRON, zone)
    match old, new:
        case CronError(), CronError():
            return Difference(Change.INVALID, str(old))
        case _, CronError():
            return Difference(Change.REFUSED, str(new))
        case CronError(), _:
            return Difference(Change.ACCEPTED, f"until then: {old}")
        case Calendar(), Calendar():
            return _of_calendars(old, new, since, since + ahead)
        case _:
            return Difference(Change.NONE)


def _parsed(text: str, dialect: Dialect, zone: str) -> Schedule | CronError:
    try:
        return parse(text, dialect, zone)
    except CronError as error:
        return error


def _of_calendars(old: Calendar, new: Calendar, since: datetime, until: datetime) -> Difference:
    by_old, by_new = (each.fields.days_by_first_weekday(each.dialect) for each in (old, new))
    if by_old != by_new:
        gone, come = _compared(_once_a_day(old), _once_a_day(new), [(since, until)])
        if gone or come:
            reason = "day-of-month and day-of-week must both match; until then one of them is enough"
            return Difference(Change.DAYS, reason, gone, come, old.zone)
    around = [(each.at - _AROUND, each.at + _AROUND) for each in changes(old.zone, since, until)]
    gone, come = _compared(old, new, around)
    if gone or come:
        return Difference(
            Change.CLOCKS, f"a time that the clock in {old.zone} jumps over is not skipped", gone, come, old.zone
        )
    return Difference(Change.NONE)


def _once_a_day(schedule: Calendar) -> Calendar:
    """Return the schedule with the first fire of each day only: enough to tell days apart, and quick."""
    fields = schedule.fields
    first = replace(fields, minutes=fields.minutes & -fields.minutes, hours=fields.hours & -fields.hours)
    return replace(schedule, fields=first)


def _compared(
    old: Calendar, new: Calendar, stretches: list[tuple[datetime, datetime]]
) -> tuple[tuple[datetime, ...], tuple[datetime, ...]]:
    before, after = set(_fires(old, stretches)), set(_fires(new, stretches))
    return tuple(sorted(before - after)), tuple(sorted(after - before))


def _fires(schedule: Calendar, stretches: list[tuple[datetime, datetime]]) -> Iterator[datetime]:
    for start, end in stretches:
        yield from schedule.between(start, end)
