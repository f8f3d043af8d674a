"""Parses a schedule in either dialect."""

import re
from datetime import timedelta

from foresail.cron.dialect import Dialect
from foresail.cron.duration import nanoseconds
from foresail.cron.errors import CronError
from foresail.cron.field_parser import DAY, HOUR, MINUTE, MONTH, WEEKDAY, FieldParser
from foresail.cron.fields import Fields
from foresail.cron.schedule import CalendarSchedule, IntervalSchedule, ManualSchedule, Schedule
from foresail.cron.tz.zone_name import split_zone_prefix, validate_zone_name

# The characters of Go's unicode.IsSpace; Python's str.isspace has four more.
_BLANK = "\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_FIELD = re.compile(f"[^{_BLANK}]+")
_TRIMMED = re.compile(f"[^{_BLANK}](?:.*[^{_BLANK}])?", re.DOTALL)
_FIELDS = 5
_MAX_BYTES = 1024
_SECOND = 10**9
_EVERY = "@every "
_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MANUAL_MACROS = frozenset({"@triggered", "@manual", "@none"})


def parse(text: str, dialect: Dialect = Dialect.ROBFIG, zone: str = "UTC") -> Schedule:
    """Return the schedule; raise CronError, and nothing else, if the dialect refuses the text.

    `zone` is the controller's time zone; a `TZ=` or `CRON_TZ=` prefix overrides it.
    """
    zone = validate_zone_name(zone)
    if not text:
        raise CronError("the schedule is empty", text=text, allowed=_allowed(dialect))
    if dialect is Dialect.GOCRON and len(text.encode(errors="surrogatepass")) > _MAX_BYTES:
        raise CronError("the schedule is too long", text=text, allowed=f"up to {_MAX_BYTES} bytes")
    zone, begin = split_zone_prefix(text, dialect, zone)
    at = begin
    spec = text
    if begin:
        trimmed = _TRIMMED.search(text, begin)
        at, spec = (trimmed.start(), trimmed[0]) if trimmed else (len(text), "")
    if spec.startswith("@"):
        return _parse_macro(text, at, spec, dialect, zone)
    return CalendarSchedule(text, dialect, zone, _parse_fields(text, at, spec, dialect))


def _parse_macro(text: str, at: int, spec: str, dialect: Dialect, zone: str) -> Schedule:
    if spec in _MACROS:
        return CalendarSchedule(text, dialect, zone, _parse_fields(text, at, _MACROS[spec], dialect))
    if spec in _MANUAL_MACROS and dialect is Dialect.GOCRON:
        return ManualSchedule(text, dialect, zone)
    if not spec.startswith(_EVERY):
        raise CronError(f"{spec!r} is not a macro", text=text, column=at + 1, allowed=_allowed(dialect))
    period = nanoseconds(spec[len(_EVERY) :])
    if period is None or (period < _SECOND and dialect is Dialect.GOCRON):
        problem = "is not a duration" if period is None else "is shorter than a second"
        raise CronError(
            f"{spec[len(_EVERY) :]!r} {problem}",
            text=text,
            column=at + len(_EVERY) + 1,
            allowed="a Go duration of a second or more, such as 90s, 15m or 1h30m (h is the largest unit)",
        )
    return IntervalSchedule(text, dialect, zone, timedelta(seconds=max(period // _SECOND, 1)))


def _parse_fields(text: str, at: int, spec: str, dialect: Dialect) -> Fields:
    words = list(_FIELD.finditer(spec))
    if len(words) != _FIELDS:
        found = "there is 1 field" if len(words) == 1 else f"there are {len(words)} fields"
        raise CronError(
            f"{found} instead of five",
            text=text,
            column=at + 1,
            allowed=_allowed(dialect),
        )
    sets: list[tuple[int, bool]] = []
    for field, word in zip((MINUTE, HOUR, DAY, MONTH, WEEKDAY[dialect]), words, strict=True):
        sets.append(FieldParser(text, field, dialect).parse(word[0], at + word.start() + 1))
    (minutes, _), (hours, _), (days, any_day), (months, _), (weekdays, any_weekday) = sets
    return Fields(minutes, hours, days, months, weekdays, any_day, any_weekday)


def _allowed(dialect: Dialect) -> str:
    macros = [*_MACROS, "@every DURATION"]
    if dialect is Dialect.GOCRON:
        macros += sorted(_MANUAL_MACROS)
    return f"MINUTE HOUR DAY-OF-MONTH MONTH DAY-OF-WEEK, or {', '.join(macros)}"
