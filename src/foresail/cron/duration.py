"""Parses a Go duration such as `1h30m`, to the nanosecond as Go does."""

import re
from datetime import timedelta

_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,  # micro sign
    "\u03bcs": 10**3,  # Greek letter mu
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_LIMIT = 1 << 63
_WORD = 1 << 64
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^.0-9]*)")


def nanoseconds(text: str) -> int | None:
    """Return the length of a Go duration in nanoseconds, or None where Go refuses the text."""
    at = 1 if text.startswith(("-", "+")) else 0
    if text[at:] == "0":
        return 0
    if at == len(text):
        return None
    total = 0
    while at < len(text):
        part = _PART.match(text, at)
        value = _length(part) if part else None
        if part is None or value is None:
            return None
        # Go adds in 64 bits before it compares: twice the limit is zero to it.
        total = (total + value) % _WORD
        if total > _LIMIT:
            return None
        at = part.end()
    if text.startswith("-"):
        return -total
    return total if total < _LIMIT else None


def length_of(text: str) -> timedelta | None:
    """Return the length of a Go duration, cut to microseconds, or None where Go refuses the text."""
    length = nanoseconds(text)
    return None if length is None else timedelta(microseconds=length // 1000)


def _length(part: re.Match[str]) -> int | None:
    whole, fraction, unit_name = part.groups("")
    unit = _NANOSECONDS.get(unit_name)
    value = _bounded(whole)
    if unit is None or value is None or value > _LIMIT // unit or not (whole or fraction):
        return None
    value = value * unit + _fraction_of(unit, fraction)
    return value if value <= _LIMIT else None


def _bounded(digits: str) -> int | None:
    digits = digits.lstrip("0")
    if len(digits) > len(str(_LIMIT)):
        return None
    value = int(digits or "0")
    return value if value <= _LIMIT else None


def _fraction_of(unit: int, digits: str) -> int:
    # Go keeps as many digits as fit in 63 bits, then multiplies in floating point.
    value = 0
    scale = 1.0
    for digit in digits:
        if value > (_LIMIT - 1) // 10:
            break
        longer = value * 10 + int(digit)
        if longer > _LIMIT:
            break
        value = longer
        scale *= 10
    return int(float(value) * (unit / scale)) if value else 0
