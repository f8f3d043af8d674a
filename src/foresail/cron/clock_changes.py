"""What a change of clocks does to a schedule: which of its fires are lost, doubled or moved."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from foresail.cron.calendar import Calendar
from foresail.cron.offsets import changes
from foresail.cron.wallclock import wall_clock

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A date on which the clock changes, with what the schedule does otherwise than on a plain date."""

    day: date
    lost: tuple[time, ...]  # wall times that the fields ask for and at which nothing fires
    doubled: tuple[time, ...]  # wall times at which it fires more than once
    moved: tuple[time, ...]  # wall times at which it fires although the fields do not ask for them


@dataclass(frozen=True, slots=True)
class Jump:
    """A stretch of a date, in minutes from midnight, that the clock jumps over or shows twice."""

    day: date
    begin: int
    end: int
    repeated: bool


def jumps(name: str, since: datetime, until: datetime) -> Iterator[Jump]:
    """Yield what the clock of a zone jumps over or repeats; a stretch that spans midnight is cut there."""
    for change in changes(name, since, until):
        utc = change.at.replace(tzinfo=None)
        before, after = (utc + timedelta(minutes=east) for east in (change.before, change.after))
        first, last = min(before, after), max(before, after)
        while first < last:
            midnight = datetime.combine(first.date(), time()) + _DAY
            end = min(last, midnight)
            minutes = (end - datetime.combine(first.date(), time())) // timedelta(minutes=1)
            yield Jump(first.date(), first.hour * 60 + first.minute, minutes, repeated=after < before)
            first = end


def clock_changes(schedule: Calendar, since: datetime, until: datetime) -> tuple[ClockChange, ...]:
    """Return the dates of clock changes on which the schedule does not do what its fields say, oldest first."""
    found: list[ClockChange] = []
    wall = wall_clock(schedule.zone)
    for each in changes(schedule.zone, since, until):
        for day in sorted({(each.at + side).astimezone(wall).date() for side in (-_DAY, timedelta(0), _DAY)}):
            change = _on(schedule, day)
            if change is not None and (not found or found[-1].day < day):
                found.append(change)
    return tuple(found)


def _on(schedule: Calendar, day: date) -> ClockChange | None:
    wall = wall_clock(schedule.zone)
    begin = datetime.combine(day, time(), wall) - _DAY
    local = (fire.astimezone(wall) for fire in schedule.between(begin, begin + 3 * _DAY))
    fired = Counter(at.time() for at in local if at.date() == day)
    wanted = set(_wanted(schedule, day))
    lost = tuple(sorted(wanted - fired.keys()))
    doubled = tuple(sorted(at for at, times in fired.items() if times > 1))
    moved = tuple(sorted(fired.keys() - wanted))
    return ClockChange(day, lost, doubled, moved) if lost or doubled or moved else None


def _wanted(schedule: Calendar, day: date) -> Iterator[time]:
    fields = schedule.fields
    if fields.day_matches(day.month, day.day, day.isoweekday() % 7, schedule.dialect):
        for hour in range(24):
            if fields.hours >> hour & 1:
                yield from (time(hour, minute) for minute in range(60) if fields.minutes >> minute & 1)
