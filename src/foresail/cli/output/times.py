"""Instants and durations as Go, Velero and kubectl write them."""

from datetime import UTC, datetime, timedelta

_SECOND = 10**9
_SMALL = ((10**6, "ms"), (10**3, "\u00b5s"), (1, "ns"))
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400
_MOST_COUNTED = 100

_AGES = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)
"""Up to which length which unit is shown, and which smaller one beside it, as `kubectl get` does."""


def go_duration(length: int) -> str:
    """Return nanoseconds as Go's time.Duration writes itself, such as 72h0m0s."""
    sign = "-" if length < 0 else ""
    length = abs(length)
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


def shown_duration(text: object) -> str:
    """Return a duration of an object as Velero shows it; what is no duration is shown as it is."""
    from foresail.cron.duration import nanoseconds  # noqa: PLC0415 - few commands need the package of cron

    length = nanoseconds(text) if isinstance(text, str) and text else 0
    return str(text) if length is None else go_duration(length)


def short(span: timedelta) -> str:
    """Return a length of time as kubectl shows ages: 25h, 107m, or 3h5m."""
    seconds = max(int(span.total_seconds()), 0)
    for limit, unit, name, smaller, smaller_name in _AGES:
        if seconds < limit:
            whole, rest = divmod(seconds, unit)
            rest = rest // smaller if smaller else 0
            return f"{whole}{name}{rest}{smaller_name}" if rest else f"{whole}{name}"
    return f"{seconds // _YEAR}y"


def compact(span: timedelta) -> str:
    """Return a length of time without units that are zero, such as 7m or 1h30m."""
    seconds = max(int(span.total_seconds()), 0)
    text = ""
    for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m"), (1, "s")):
        count, seconds = divmod(seconds, unit)
        text += f"{count}{name}" if count else ""
    return text or "0s"


def go_time(at: datetime) -> str:
    """Return an instant as Velero shows it where its clock is in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} +0000 UTC"


def ago(at: datetime | None, now: datetime) -> str:
    """Return how long ago an instant was, as Velero says it."""
    return "n/a" if at is None else f"{short(now - at)} ago"


def moment(at: datetime, now: datetime) -> str:
    """Return an instant with how far away it is, in either direction."""
    seconds = f":{at:%S}" if at.second else ""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}{seconds} UTC ({distance(at, now)})"


def distance(at: datetime, now: datetime) -> str:
    """Return how far away an instant is, in either direction."""
    return f"in {short(at - now)}" if at > now else f"{short(now - at)} ago"


def runs(count: int) -> str:
    """Return a number of runs that the rules have counted; they stop at a hundred."""
    return "one run" if count == 1 else f"{count} runs" if count < _MOST_COUNTED else f"{count} runs or more"


def _fraction(length: int, unit: int) -> str:
    whole, rest = divmod(length, unit)
    digits = f"{rest:0{len(str(unit)) - 1}}".rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)
