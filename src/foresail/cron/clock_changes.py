"""What a clock change does to a schedule: which of its fires are lost, doubled or moved."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from foresail.cron.schedule import CalendarSchedule
from foresail.cron.zones import load_zoneinfo, offset_changes

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ClockChangeEffect:
    """How the fires of a schedule on the date of a clock change differ from its fields."""

    day: date
    lost: tuple[time, ...]  # wall times in the fields at which it does not fire
    doubled: tuple[time, ...]  # wall times at which it fires more than once
    moved: tuple[time, ...]  # wall times outside the fields at which it fires


@dataclass(frozen=True, slots=True)
class ClockJump:
    """A part of a date, in minutes from midnight, that the clock skips or repeats."""

    day: date
    begin: int
    end: int
    repeated: bool


def clock_jumps(name: str, since: datetime, until: datetime) -> Iterator[ClockJump]:
    """Yield what the clock of a zone skips or repeats, split at midnight."""
    for change in offset_changes(name, since, until):
        utc = change.at.replace(tzinfo=None)
        before, after = (utc + timedelta(minutes=east) for east in (change.before, change.after))
        first = min(before, after)
        last = max(before, after)
        while first < last:
            midnight = datetime.combine(first.date(), time()) + _DAY
            end = min(last, midnight)
            minutes = (end - datetime.combine(first.date(), time())) // timedelta(minutes=1)
            yield ClockJump(first.date(), first.hour * 60 + first.minute, minutes, repeated=after < before)
            first = end


def clock_change_effects(schedule: CalendarSchedule, since: datetime, until: datetime) -> tuple[ClockChangeEffect, ...]:
    """Return the effects of clock changes on a schedule, oldest first."""
    effects: list[ClockChangeEffect] = []
    local = load_zoneinfo(schedule.zone)
    for change in offset_changes(schedule.zone, since, until):
        for day in sorted({(change.at + side).astimezone(local).date() for side in (-_DAY, timedelta(0), _DAY)}):
            effect = _effect_on(schedule, day)
            if effect is not None and (not effects or effects[-1].day < day):
                effects.append(effect)
    return tuple(effects)


def _effect_on(schedule: CalendarSchedule, day: date) -> ClockChangeEffect | None:
    wall = load_zoneinfo(schedule.zone)
    begin = datetime.combine(day, time(), wall) - _DAY
    local = (fire.astimezone(wall) for fire in schedule.between(begin, begin + 3 * _DAY))
    fired = Counter(at.time() for at in local if at.date() == day)
    wanted = set(_times_in_fields(schedule, day))
    lost = tuple(sorted(wanted - fired.keys()))
    doubled = tuple(sorted(at for at, times in fired.items() if times > 1))
    moved = tuple(sorted(fired.keys() - wanted))
    return ClockChangeEffect(day, lost, doubled, moved) if lost or doubled or moved else None


def _times_in_fields(schedule: CalendarSchedule, day: date) -> Iterator[time]:
    fields = schedule.fields
    if fields.day_matches(day.month, day.day, day.isoweekday() % 7, schedule.dialect):
        for hour in range(24):
            if fields.hours >> hour & 1:
                yield from (time(hour, minute) for minute in range(60) if fields.minutes >> minute & 1)
