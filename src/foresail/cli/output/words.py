"""Words for people: reasons without their capitals, and nouns in the number that they need."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec

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
    if count == 1:
        return "one run"
    return f"{count} runs" if count < _MOST_COUNTED else f"{count} runs or more"


def _fraction(length: int, unit: int) -> str:
    whole, rest = divmod(length, unit)
    digits = f"{rest:0{len(str(unit)) - 1}}".rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)


_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP = 1024
_TEN, _HUNDRED = 10, 100
_UNKNOWN_SIZE = ("new", "accepted", "prepared")

RECENT = timedelta(seconds=30)
"""The throughput is that of the last changes, over at least this long if there were so many."""

_LONGEST = timedelta(days=365)


class Transfer(msgspec.Struct, frozen=True):
    """How far the data of volumes is: those that have ended or are moved now, and those whose size is unknown yet."""

    bytes_done: int
    total_bytes: int
    waiting: int = 0

    @property
    def is_moving(self) -> bool:
        """Whether there is data that has not been moved yet."""
        return self.bytes_done < self.total_bytes or self.waiting > 0


def transfer_of(*counts: Mapping[str, int] | None) -> Transfer | None:
    """Return how far the volumes in the counts of a status are; None without any bytes."""
    known = [progress for progress in counts if progress]
    bytes_done = sum(progress.get("bytesDone", 0) for progress in known)
    total_bytes = sum(progress.get("totalBytes", 0) for progress in known)
    if total_bytes <= 0 or bytes_done < 0:
        return None
    waiting = sum(progress.get(name, 0) for progress in known for name in _UNKNOWN_SIZE)
    return Transfer(min(bytes_done, total_bytes), total_bytes, waiting)


class Throughput:
    """Measures bytes per second from what is observed, between changes that were seen to come.

    What was there at first does not count: it may be of long before.
    """

    def __init__(self) -> None:
        self._first: Transfer | None = None
        self._changes: list[tuple[datetime, int]] = []

    def observe(self, transfer: Transfer | None, at: datetime) -> float | None:
        """Take what is observed at an instant; return the throughput, None if it is not known."""
        if transfer is None or (self._changes and transfer.bytes_done < self._changes[-1][1]):
            self._first = transfer
            self._changes = []
            return None
        if self._first is None:
            self._first = transfer
        if transfer.bytes_done != (self._changes[-1][1] if self._changes else self._first.bytes_done):
            self._changes.append((at, transfer.bytes_done))
        while len(self._changes) > 2 and at - self._changes[1][0] >= RECENT:  # noqa: PLR2004 - two make a difference
            del self._changes[0]
        return self._rate(at)

    def _rate(self, at: datetime) -> float | None:
        if len(self._changes) < 2:  # noqa: PLR2004
            return None
        (began, before), (last, bytes_done) = self._changes[0], self._changes[-1]
        seconds = (last - began).total_seconds()
        is_stalled = at - last > max(RECENT, last - began)
        return (bytes_done - before) / seconds if seconds > 0 and not is_stalled else None


def remaining(transfer: Transfer, rate: float | None) -> timedelta | None:
    """Return how long the rest takes at this throughput; None if that or the size of a volume is not known."""
    left = transfer.total_bytes - transfer.bytes_done
    if rate is None or rate <= 0 or transfer.waiting or left <= 0:
        return None
    seconds = left / rate
    return timedelta(seconds=seconds) if seconds < _LONGEST.total_seconds() else None


def transfer_text(transfer: Transfer, rate: float | None = None) -> str:
    """Return how far the data is, such as `0.8 of 1.66 GiB, 28 MiB/s, 31s left`."""
    unit = _unit(transfer.total_bytes)
    at_least = "at least " if transfer.waiting else ""
    parts = [f"{_figure(transfer.bytes_done, unit)} of {at_least}{size(transfer.total_bytes)}"]
    if rate is not None and rate > 0:
        parts.append(f"{size(rate)}/s")
    left = remaining(transfer, rate)
    if left is not None:
        parts.append(f"{short(left)} left")
    return ", ".join(parts)


def size(count: float) -> str:
    """Return a number of bytes in the largest unit that it fills."""
    unit = _unit(count)
    return f"{_figure(count, unit)} {_UNITS[unit]}"


def _unit(count: float) -> int:
    """Return the index of the largest unit that a number of bytes fills, as it is shown."""
    unit = 0
    while count / _STEP**unit >= _STEP - 0.5 and unit < len(_UNITS) - 1:
        unit += 1
    return unit


def _figure(count: float, unit: int) -> str:
    """Return a number of bytes in a unit, with two digits after the point at most."""
    number = count / _STEP**unit
    digits = (number < _TEN) + (number < _HUNDRED)
    text = f"{number:.{digits}f}"
    return text.rstrip("0").rstrip(".") if digits else text


_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def in_words(reason: str) -> str:
    """Return a reason as people write it: `QuotaExceeded` is quota exceeded."""
    return _CAPITAL.sub(" ", reason).lower()


def counted(number: int, noun: str, nouns: str = "") -> str:
    """Return a number with its noun: 1 copy, 2 copies."""
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"
