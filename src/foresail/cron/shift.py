"""Any schedule X minutes earlier, as expressions that Kubernetes and Velero can run by themselves.

`shift` never guesses: what it calls exact was built to be exact, then parsed again from its text and
compared with the original. In a zone of fixed offset the comparison covers all 400 years of the calendar, so
it holds for all time. In a zone whose offset changes (summer time) it covers the next five years, with the
dialect's own behaviour around every change, and holds until then.
"""

import enum
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final, assert_never

from foresail.cron.instant import EPOCH
from foresail.cron.offsets import minutes_east
from foresail.cron.schedule import Calendar, Every, Never, Schedule, parse
from foresail.cron.shift_cover import Unsayable
from foresail.cron.shift_days import DayRule, day_rule
from foresail.cron.shift_instants import compare
from foresail.cron.shift_readings import Original, Reading, in_any_zones, in_own_zone, is_plain
from foresail.cron.shift_text import Writer
from foresail.cron.shift_verify import Reader, difference, instants
from foresail.cron.shift_zone import WHOLE_HOURS, Zone, fixed_zone, zones_ahead

AHEAD: Final = timedelta(days=1826)
"""How far ahead lost and spurious instants are listed: five years."""
LONGEST: Final = 366 * 24 * 60
"""The longest shift in minutes: a year."""
_MINUTE: Final = timedelta(minutes=1)

_ADVICE: Final = (
    "Act on instants: let the operator warm up at each fire minus the lead time (method Placeholder), "
    "which is right on every date."
)


class Inexact(enum.Enum):
    """The only causes for which no expressions are exact."""

    CHANGING_OFFSET = "the zone's offset changes"
    INTERVAL = "@every has no place in the calendar"
    LEAP_YEAR = "the days depend on the leap year"
    WEEKDAYS_OF_MONTHS = "weekdays of some months only"


@dataclass(frozen=True, slots=True)
class ZonedExpression:
    """One CronJob's `schedule` and `timeZone`."""

    schedule: str
    time_zone: str

    @property
    def with_prefix(self) -> str:
        """The same for Velero, whose Schedule has no field for the zone."""
        return f"CRON_TZ={self.time_zone} {self.schedule}"


@dataclass(frozen=True, slots=True)
class Shifted:
    """The expressions that together fire X minutes before each fire of a schedule, never two at one instant.

    If not `exact`, they are the closest that can be said: `lost` lists the warm-ups that they miss and
    `spurious` those that no fire follows, from `since` on for five years; `inexact_dates` are the dates
    of both, in the schedule's zone. `until` ends what was judged; None says for all time.
    """

    exact: bool
    schedules: tuple[ZonedExpression, ...]
    until: datetime | None = None
    cause: Inexact | None = None
    reason: str | None = None
    lost: tuple[datetime, ...] = ()
    spurious: tuple[datetime, ...] = ()
    inexact_dates: tuple[date, ...] = ()
    advice: str | None = None


_CAUSE: Final = {
    Unsayable.LEAP_YEAR: Inexact.LEAP_YEAR,
    Unsayable.WEEKDAYS_OF_MONTHS: Inexact.WEEKDAYS_OF_MONTHS,
}
_UNSAYABLE: Final = {
    Unsayable.LEAP_YEAR: "a day whose date depends on the leap year, which cron cannot say",
    Unsayable.WEEKDAYS_OF_MONTHS: "weekdays of a stretch of days that is not whole months, "
    "which this dialect cannot say: it joins its two day fields by 'or'",
}


def shift(schedule: Schedule, minutes: int, since: datetime) -> Shifted:
    """Say a schedule `minutes` earlier, judged from the instant `since` on, which must be aware."""
    if not 0 <= minutes <= LONGEST:
        raise ValueError(f"cannot shift {schedule.text!r} by {minutes} minutes: allowed are 0 to {LONGEST}")
    since = EPOCH - (EPOCH - since) // _MINUTE * _MINUTE  # a fire is at a full minute: this one or the next
    match schedule:
        case Every():
            return _interval(schedule)
        case Never():
            return Shifted(exact=True, schedules=(), reason=f"{schedule.text!r} fires only by hand")
        case Calendar():
            return _Shift(schedule, minutes, since).result()
        case _:
            assert_never(schedule)


def _interval(schedule: Every) -> Shifted:
    return Shifted(
        exact=False,
        schedules=(),
        cause=Inexact.INTERVAL,
        reason=f"{schedule.text!r} counts from the moment its object was made, or last ran, "
        "and a second object would count from a moment of its own",
        advice=_ADVICE,
    )


class _Shift:
    """One schedule on its way: its rule, its words, its zone and the time to judge."""

    def __init__(self, schedule: Calendar, minutes: int, since: datetime) -> None:
        self._schedule = schedule
        self._minutes = minutes
        self._since = since
        self._until = since + AHEAD

    def result(self) -> Shifted:
        """Choose the expressions, prove them, and say what they miss."""
        schedule = self._schedule
        rule = day_rule(schedule.fields, schedule.dialect)
        never = schedule.never_fires
        if rule is None or never:
            return Shifted(exact=True, schedules=(), reason=f"{schedule.text!r} never fires: {never}")
        zone = fixed_zone(schedule.zone, self._since)
        if zone is None:
            return self._with_changing_offset(rule)
        return self._with_fixed_offset(rule, zone)

    def _with_fixed_offset(self, rule: DayRule, zone: Zone) -> Shifted:
        original = self._original(rule, zone)
        reading = in_own_zone(original)
        if reading.unsayable or not is_plain(reading.lines, original):
            reading = in_any_zones(original, WHOLE_HOURS) or reading
        expressions = self._expressions(reading, rule)
        wanted = Reader(self._schedule.fields, zone.east + self._minutes)
        fired = [
            Reader(self._parsed(each).fields, line.zone.east)
            for each, line in zip(expressions, reading.lines, strict=True)
        ]
        found = difference(wanted, fired, self._schedule.dialect)
        if found.doubled or bool(found.lost or found.spurious) != bool(reading.unsayable):
            raise AssertionError(f"{self._schedule.text!r} shifted by {self._minutes} became {expressions}")
        if not reading.unsayable:
            return Shifted(exact=True, schedules=expressions)
        lost = instants(found.lost, self._since, self._until)
        spurious = instants(found.spurious, self._since, self._until)
        return self._inexact(_CAUSE[reading.unsayable], reading, lost, spurious, expressions)

    def _with_changing_offset(self, rule: DayRule) -> Shifted:
        zone = Zone(self._schedule.zone, 0)
        original = self._original(rule, zone)
        reading = in_own_zone(original)
        if reading.unsayable or not is_plain(reading.lines, original):
            ahead = zones_ahead(zone.name, self._since.date(), self._until.date())
            elsewhere = in_any_zones(original, ahead)
            if elsewhere and not any(self._compared(expressions := self._expressions(elsewhere, rule))):
                return Shifted(exact=True, schedules=expressions, until=self._until)
        expressions = self._expressions(reading, rule)
        lost, spurious = self._compared(expressions)
        if reading.unsayable or lost or spurious:
            return self._inexact(Inexact.CHANGING_OFFSET, reading, lost, spurious, expressions)
        return Shifted(exact=True, schedules=expressions, until=self._until)

    def _original(self, rule: DayRule, zone: Zone) -> Original:
        schedule = self._schedule
        fields = schedule.fields
        return Original(fields.minutes, fields.hours, rule, schedule.dialect, zone, self._minutes)

    def _compared(self, expressions: tuple[ZonedExpression, ...]) -> tuple[list[datetime], list[datetime]]:
        fired = [self._parsed(each) for each in expressions]
        return compare(self._schedule, self._minutes, fired, self._since, self._until)

    def _expressions(self, reading: Reading, rule: DayRule) -> tuple[ZonedExpression, ...]:
        writer = Writer(self._schedule, rule)
        return tuple(
            ZonedExpression(writer.write(line.minutes, line.hours, line.rule), line.zone.name) for line in reading.lines
        )

    def _parsed(self, expression: ZonedExpression) -> Calendar:
        parsed = parse(expression.schedule, self._schedule.dialect, expression.time_zone)
        if not isinstance(parsed, Calendar):
            raise TypeError(f"{expression.schedule!r} must be five fields")
        return parsed

    def _inexact(
        self,
        cause: Inexact,
        reading: Reading,
        lost: list[datetime],
        spurious: list[datetime],
        expressions: tuple[ZonedExpression, ...],
    ) -> Shifted:
        zone = self._schedule.zone
        dates = {(at + minutes_east(zone, at) * _MINUTE).date() for at in (*lost, *spurious)}
        return Shifted(
            exact=False,
            schedules=expressions,
            until=self._until,
            cause=cause,
            reason=self._reason(cause, reading.unsayable),
            lost=tuple(lost),
            spurious=tuple(spurious),
            inexact_dates=tuple(sorted(dates)),
            advice=_ADVICE,
        )

    def _reason(self, cause: Inexact, unsayable: Unsayable | None) -> str:
        zone = self._schedule.zone
        if unsayable is None:
            return f"the clock in {zone} changes between a warm-up and its fire, or skips or repeats one"
        days = f"{self._schedule.text!r} that much earlier falls on {_UNSAYABLE[unsayable]}"
        if cause is Inexact.CHANGING_OFFSET:
            return f"{days}, and no zone further east that keeps pace with {zone} takes the day over"
        return f"{days}, and no zone is far enough east to take the day over"
