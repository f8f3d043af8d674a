"""Lengths of time as Go and kubectl write them, and as users do."""

from datetime import timedelta

from foresail.cli.errors import CommandError
from foresail.cron.duration import nanoseconds

_SECOND = 10**9
_SMALL = ((10**6, "ms"), (10**3, "\u00b5s"), (1, "ns"))
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def go_duration(length: int) -> str:
    """Return nanoseconds as Go's time.Duration writes itself, such as 72h0m0s."""
    sign, length = ("-" if length < 0 else ""), abs(length)
    if length == 0:
        return "0s"
    for unit, name in _SMALL:
        if unit <= length < _SECOND:
            return f"{sign}{_fraction(length, unit)}{name}"
    minutes, rest = divmod(length, _MINUTE * _SECOND)
    seconds = f"{_fraction(rest, _SECOND)}s"
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else f"{sign}{seconds}"


def read_length(text: str, option: str) -> int:
    """Return the length of time that an option was given, in nanoseconds."""
    length = nanoseconds(text)
    if length is None or length < 0:
        raise CommandError(f"{option}: {text!r} is not a duration", "write 72h, 90m or 1h30m")
    return length


def shown_duration(text: object) -> str:
    """Return a duration of an object as Velero shows it; what is no duration is shown as it is."""
    length = nanoseconds(text) if isinstance(text, str) and text else 0
    return str(text) if length is None else go_duration(length)


def short(span: timedelta) -> str:
    """Return a length of time in its largest unit, as Velero shows ages."""
    seconds = int(span.total_seconds())
    for unit, name in ((_YEAR, "y"), (_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m")):
        if seconds >= unit:
            return f"{seconds // unit}{name}"
    return f"{max(seconds, 0)}s"


def _fraction(length: int, unit: int) -> str:
    whole, rest = divmod(length, unit)
    digits = f"{rest:0{len(str(unit)) - 1}}".rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)
