"""Shifts a schedule X minutes earlier and verifies the result.

Each result is parsed again from its text and compared with the original. In a zone of fixed offset the
comparison covers all 400 years of the calendar, so it is valid for all time. In a zone whose offset changes
(daylight saving time) it covers the next five years, with the dialect's behaviour around each change.
"""

import enum
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final, assert_never

from foresail.cron.civil_time import EPOCH
from foresail.cron.parser import parse
from foresail.cron.schedule import CalendarSchedule, IntervalSchedule, ManualSchedule, Schedule
from foresail.cron.shift.candidate_zones import WHOLE_HOUR_ZONES, OffsetZone, fixed_offset_zone, parallel_zones_east
from foresail.cron.shift.days import DayRule, Inexpressible, day_rule
from foresail.cron.shift.expressions import (
    ExpressionSet,
    ExpressionWriter,
    ShiftRequest,
    express_in_any_zone,
    express_in_own_zone,
    is_easy_to_read,
)
from foresail.cron.shift.verify import OffsetFields, compare, diff_fires, instants
from foresail.cron.zones import utc_offset_minutes


class InexactCause(enum.Enum):
    """Why no expressions are exact."""

    CHANGING_OFFSET = "the zone's offset changes"
    INTERVAL = "@every has no place in the calendar"
    LEAP_YEAR = "the days depend on the leap year"
    WEEKDAYS_OF_MONTHS = "weekdays of some months only"


@dataclass(frozen=True, slots=True)
class ZonedExpression:
    """The `schedule` and `timeZone` of one CronJob."""

    schedule: str
    time_zone: str

    @property
    def with_prefix(self) -> str:
        """The expression for Velero, whose Schedule has no field for the zone."""
        return f"CRON_TZ={self.time_zone} {self.schedule}"


@dataclass(frozen=True, slots=True)
class Shifted:
    """The expressions that together fire X minutes before each fire of a schedule, never two at one instant.

    If not `exact`, they are the closest possible: `lost` lists the warm-ups that they miss and `spurious`
    those that no fire follows, for five years; `inexact_dates` has the dates of both in the schedule's zone.
    The result is valid until `until`; None means for all time.
    """

    exact: bool
    schedules: tuple[ZonedExpression, ...]
    until: datetime | None = None
    cause: InexactCause | None = None
    reason: str | None = None
    lost: tuple[datetime, ...] = ()
    spurious: tuple[datetime, ...] = ()
    inexact_dates: tuple[date, ...] = ()
    advice: str | None = None


AHEAD: Final = timedelta(days=1826)
"""How far ahead lost and spurious instants are listed: five years."""
MAX_MINUTES: Final = 366 * 24 * 60
"""The longest shift: a year."""
_MINUTE: Final = timedelta(minutes=1)

_ADVICE: Final = (
    "Act on instants: let the operator warm up at each fire minus the lead time (method Placeholder), "
    "which is right on every date."
)
_CAUSE: Final = {
    Inexpressible.LEAP_YEAR: InexactCause.LEAP_YEAR,
    Inexpressible.WEEKDAYS_OF_MONTHS: InexactCause.WEEKDAYS_OF_MONTHS,
}
_INEXPRESSIBLE: Final = {
    Inexpressible.LEAP_YEAR: "a day whose date depends on the leap year, which cron cannot express",
    Inexpressible.WEEKDAYS_OF_MONTHS: "weekdays of a part of a month, "
    "which this dialect cannot express: it combines its two day fields with 'or'",
}


def shift(schedule: Schedule, minutes: int, since: datetime) -> Shifted:
    """Return a schedule `minutes` earlier, verified from the aware instant `since` on."""
    if not 0 <= minutes <= MAX_MINUTES:
        raise ValueError(f"cannot shift {schedule.text!r} by {minutes} minutes: allowed are 0 to {MAX_MINUTES}")
    since = EPOCH - (EPOCH - since) // _MINUTE * _MINUTE  # a fire is at a full minute: round up
    match schedule:
        case IntervalSchedule():
            return _refuse_interval(schedule)
        case ManualSchedule():
            return Shifted(exact=True, schedules=(), reason=f"{schedule.text!r} fires only by hand")
        case CalendarSchedule():
            return _CalendarShift(schedule, minutes, since).result()
        case _:
            assert_never(schedule)


def _refuse_interval(schedule: IntervalSchedule) -> Shifted:
    return Shifted(
        exact=False,
        schedules=(),
        cause=InexactCause.INTERVAL,
        reason=f"{schedule.text!r} counts from the creation or the last run of its object, "
        "and a second object would count from its own",
        advice=_ADVICE,
    )


class _CalendarShift:
    """The shift of one calendar schedule."""

    def __init__(self, schedule: CalendarSchedule, minutes: int, since: datetime) -> None:
        self._schedule = schedule
        self._minutes = minutes
        self._since = since
        self._until = since + AHEAD

    def result(self) -> Shifted:
        """Choose the expressions, verify them, and list what they miss."""
        schedule = self._schedule
        rule = day_rule(schedule.fields, schedule.dialect)
        never = schedule.never_fires
        if rule is None or never:
            return Shifted(exact=True, schedules=(), reason=f"{schedule.text!r} never fires: {never}")
        zone = fixed_offset_zone(schedule.zone, self._since)
        if zone is None:
            return self._with_changing_offset(rule)
        return self._with_fixed_offset(rule, zone)

    def _with_fixed_offset(self, rule: DayRule, zone: OffsetZone) -> Shifted:
        request = self._request(rule, zone)
        chosen = express_in_own_zone(request)
        if chosen.inexpressible or not is_easy_to_read(chosen.drafts, request):
            chosen = express_in_any_zone(request, WHOLE_HOUR_ZONES) or chosen
        expressions = self._write(chosen, rule)
        wanted = OffsetFields(self._schedule.fields, zone.offset + self._minutes)
        fired = [
            OffsetFields(self._parse(expression).fields, draft.zone.offset)
            for expression, draft in zip(expressions, chosen.drafts, strict=True)
        ]
        diff = diff_fires(wanted, fired, self._schedule.dialect)
        if diff.doubled or bool(diff.lost or diff.spurious) != bool(chosen.inexpressible):
            raise AssertionError(f"{self._schedule.text!r} shifted by {self._minutes} became {expressions}")
        if not chosen.inexpressible:
            return Shifted(exact=True, schedules=expressions)
        lost = instants(diff.lost, self._since, self._until)
        spurious = instants(diff.spurious, self._since, self._until)
        return self._inexact(_CAUSE[chosen.inexpressible], chosen, lost, spurious, expressions)

    def _with_changing_offset(self, rule: DayRule) -> Shifted:
        zone = OffsetZone(self._schedule.zone, 0)
        request = self._request(rule, zone)
        chosen = express_in_own_zone(request)
        if chosen.inexpressible or not is_easy_to_read(chosen.drafts, request):
            further_east = parallel_zones_east(zone.name, self._since.date(), self._until.date())
            elsewhere = express_in_any_zone(request, further_east)
            if elsewhere and not any(self._compare(expressions := self._write(elsewhere, rule))):
                return Shifted(exact=True, schedules=expressions, until=self._until)
        expressions = self._write(chosen, rule)
        lost, spurious = self._compare(expressions)
        if chosen.inexpressible or lost or spurious:
            return self._inexact(InexactCause.CHANGING_OFFSET, chosen, lost, spurious, expressions)
        return Shifted(exact=True, schedules=expressions, until=self._until)

    def _request(self, rule: DayRule, zone: OffsetZone) -> ShiftRequest:
        schedule = self._schedule
        fields = schedule.fields
        return ShiftRequest(fields.minutes, fields.hours, rule, schedule.dialect, zone, self._minutes)

    def _compare(self, expressions: tuple[ZonedExpression, ...]) -> tuple[list[datetime], list[datetime]]:
        fired = [self._parse(expression) for expression in expressions]
        return compare(self._schedule, self._minutes, fired, self._since, self._until)

    def _write(self, chosen: ExpressionSet, rule: DayRule) -> tuple[ZonedExpression, ...]:
        writer = ExpressionWriter(self._schedule, rule)
        return tuple(
            ZonedExpression(writer.write(draft.minutes, draft.hours, draft.rule), draft.zone.name)
            for draft in chosen.drafts
        )

    def _parse(self, expression: ZonedExpression) -> CalendarSchedule:
        parsed = parse(expression.schedule, self._schedule.dialect, expression.time_zone)
        if not isinstance(parsed, CalendarSchedule):
            raise TypeError(f"{expression.schedule!r} must be five fields")
        return parsed

    def _inexact(
        self,
        cause: InexactCause,
        chosen: ExpressionSet,
        lost: list[datetime],
        spurious: list[datetime],
        expressions: tuple[ZonedExpression, ...],
    ) -> Shifted:
        zone = self._schedule.zone
        dates = {(at + utc_offset_minutes(zone, at) * _MINUTE).date() for at in (*lost, *spurious)}
        return Shifted(
            exact=False,
            schedules=expressions,
            until=self._until,
            cause=cause,
            reason=self._reason(cause, chosen.inexpressible),
            lost=tuple(lost),
            spurious=tuple(spurious),
            inexact_dates=tuple(sorted(dates)),
            advice=_ADVICE,
        )

    def _reason(self, cause: InexactCause, inexpressible: Inexpressible | None) -> str:
        zone = self._schedule.zone
        if inexpressible is None:
            return f"the clock in {zone} changes between a warm-up and its fire, or skips or repeats one"
        days = f"{self._schedule.text!r} shifted earlier falls on {_INEXPRESSIBLE[inexpressible]}"
        if cause is InexactCause.CHANGING_OFFSET:
            return f"{days}, and no zone further east follows the clock changes of {zone}"
        return f"{days}, and no zone is far enough east to keep the day"
