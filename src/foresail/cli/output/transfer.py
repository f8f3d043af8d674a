"""How much data of volumes was moved, how fast, and how long the rest takes. Nothing here has a clock."""

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from foresail.cli.output.times import short

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
    known = [each for each in counts if each]
    bytes_done = sum(each.get("bytesDone", 0) for each in known)
    total_bytes = sum(each.get("totalBytes", 0) for each in known)
    if total_bytes <= 0 or bytes_done < 0:
        return None
    waiting = sum(each.get(name, 0) for each in known for name in _UNKNOWN_SIZE)
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
            self._first, self._changes = transfer, []
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
    digits = 2 if number < _TEN else 1 if number < _HUNDRED else 0
    text = f"{number:.{digits}f}"
    return text.rstrip("0").rstrip(".") if digits else text
