"""Parses a schedule in either dialect, field by field."""

import re
from datetime import timedelta

from foresail.cron.dialect import CronError, Dialect
from foresail.cron.duration import nanoseconds
from foresail.cron.fields import Fields
from foresail.cron.schedule import CalendarSchedule, IntervalSchedule, ManualSchedule, Schedule
from foresail.cron.zone_names import split_zone_prefix, validate_zone_name

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_WORD = 1 << 64
_INT_MAX = (1 << 63) - 1
_INT_DIGITS = 19


class FieldSpec:
    """One of the five fields: its name, bounds and names for values."""

    __slots__ = ("high", "hint", "low", "name", "names")

    def __init__(self, name: str, low: int, high: int, names: dict[str, int], hint: str = "") -> None:
        self.name = name
        self.low = low
        self.high = high
        self.names = names
        self.hint = hint


MINUTE = FieldSpec("minute", 0, 59, {})
HOUR = FieldSpec("hour", 0, 23, {})
DAY = FieldSpec("day-of-month", 1, 31, {})
MONTH = FieldSpec("month", 1, 12, {name: i + 1 for i, name in enumerate(_MONTHS)}, " or JAN-DEC")
_SUNDAY_FIRST = {name: i for i, name in enumerate(_WEEKDAYS)}
WEEKDAY = {
    Dialect.ROBFIG: FieldSpec("day-of-week", 0, 6, _SUNDAY_FIRST, " or SUN-SAT"),
    Dialect.GOCRON: FieldSpec("day-of-week", 0, 7, _SUNDAY_FIRST, " or SUN-SAT"),
}


def whole_number(text: str) -> int | None:
    """Return the number that Go's `Atoi` parses, or None: ASCII digits, perhaps after a plus."""
    digits = text.removeprefix("+")
    if not (digits.isascii() and digits.isdigit()):
        return None
    digits = digits.lstrip("0")
    if len(digits) > _INT_DIGITS:
        return None
    number = int(digits or "0")
    return number if number <= _INT_MAX else None


class FieldParser:
    """Parses the list in one field; each error names the column of the item that caused it."""

    __slots__ = ("_column", "_dialect", "_spec", "_text")

    def __init__(self, text: str, spec: FieldSpec, dialect: Dialect) -> None:
        self._text = text
        self._spec = spec
        self._dialect = dialect
        self._column = 0

    def parse(self, field: str, column: int) -> tuple[int, bool]:
        """Return the allowed values as bits, and whether they include a star without a step above 1."""
        bits = 0
        star = False
        self._column = column
        self._refuse_extensions(field)
        for item in field.split(","):
            if item:  # both libraries drop empty items, so "," alone is an empty set
                values, whole = self._item(item)
                bits |= values
                star |= whole
            self._column += len(item) + 1
        return bits, star

    def _refuse_extensions(self, field: str) -> None:
        # go-cron looks for its extended syntax before it splits, so that even "*-L" is refused.
        if self._dialect is not Dialect.GOCRON:
            return
        extended = ""
        if self._spec is DAY:
            extended = "LlWw"
        elif self._spec.high == WEEKDAY[Dialect.GOCRON].high:
            extended = "#"
        for i, letter in enumerate(field):
            if letter in extended:
                self._column += i
                raise self._error(f"{letter!r} is not part of the standard syntax")

    def _item(self, item: str) -> tuple[int, bool]:
        spec = self._spec
        span, *steps = item.split("/")
        if len(steps) > 1:
            raise self._error(f"{item!r} has more than one slash")
        ends = span.split("-")
        star = ends[0] in {"*", "?"}
        if star:
            start = spec.low
            end = spec.high
        elif len(ends) > 2:  # noqa: PLR2004  a range has two ends
            raise self._error(f"{item!r} has more than one hyphen")
        else:
            start = self._value(ends[0], item)
            end = self._value(ends[-1], item)
        step = 1
        if steps:
            number = whole_number(steps[0])
            if number is None:
                raise self._error(f"the step {steps[0]!r} in {item!r} is not a whole number")
            step = number
            if len(ends) == 1:
                end = spec.high  # "5/15" means "from 5 to the end, each 15"
        self._check(item, start, end, step)
        return self._bits(start, end, step), star and step <= 1

    def _value(self, word: str, item: str) -> int:
        # Go lowers the dotted capital I to a plain i, Python to an i with a combining dot.
        named = self._spec.names.get(word.replace("\u0130", "i").lower())
        if named is not None:
            return named
        number = whole_number(word)
        if number is None:
            where = f" in {item!r}" if item != word else ""
            what = "a value is missing" if not word else f"{word!r} is not a value of this field"
            raise self._error(what + where)
        return number

    def _check(self, item: str, start: int, end: int, step: int) -> None:
        spec = self._spec
        wraps = self._dialect is Dialect.GOCRON
        is_range = start != end
        if start < spec.low:
            raise self._error(f"{item!r} {'starts' if is_range else 'is'} below {spec.low}")
        if end > spec.high:
            raise self._error(f"{item!r} {'ends' if is_range else 'is'} above {spec.high}")
        if start > end and not wraps:
            raise self._error(f"{item!r} starts after its end")
        if step == 0:
            raise self._error(f"the step in {item!r} is 0")
        if wraps and step > 1:
            size = end - start + 1
            if start > end:
                # go-cron does not bound the start of a range that wraps: its unsigned size runs round.
                size = (size + spec.high - spec.low + 1) % _WORD
            if step >= size:
                raise self._error(f"the step in {item!r} is not smaller than its range of {size}")

    def _bits(self, start: int, end: int, step: int) -> int:
        spec = self._spec
        if start <= end and step == 1:
            bits = (2 << end) - (1 << start)
        elif start <= end:
            bits = sum(1 << value for value in range(start, end + 1, step))
        else:
            size = spec.high - spec.low + 1
            bits = 0
            for value in range(start, end + size + 1, step):
                bits |= 1 << (value if value <= spec.high else (value - spec.low) % size + spec.low)
        if bits >> 7 & 1 and spec.names is _SUNDAY_FIRST:
            bits = bits & 0x7F | 1  # 7 is another name for Sunday
        return bits

    def _error(self, problem: str) -> CronError:
        spec = self._spec
        ranges = "a-b" if self._dialect is Dialect.ROBFIG else "a-b (which may wrap)"
        return CronError(
            problem,
            text=self._text,
            field=spec.name,
            column=self._column,
            allowed=f"{spec.low}-{spec.high}{spec.hint}, * or ?, ranges {ranges}, steps /n, lists a,b",
        )


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
