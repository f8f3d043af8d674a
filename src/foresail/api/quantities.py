"""Quantities as Kubernetes writes them, such as 250m, 1.5 or 2Gi: parsed exactly, and formatted again."""

import re
from fractions import Fraction
from functools import lru_cache

_QUANTITY = re.compile(
    r"([+-]?[0-9]{1,24}(?:\.[0-9]{0,9})?|[+-]?\.[0-9]{1,9})(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,2}))?"
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = "KMGTPE"
LARGEST = 2**63 - 1
"""The API server caps quantities at this value."""

_KEPT = 10_000  # a cluster has few sizes, and every reconcile parses them again


@lru_cache(_KEPT)
def quantity(text: str) -> Fraction:
    """Parse a quantity; raise ValueError if it is invalid."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no quantity")
    number, unit, exponent = match.groups("")
    return _capped(Fraction(number) * _factor(unit, exponent))


def _factor(unit: str, exponent: str) -> Fraction:
    if exponent:
        return _power(int(exponent))
    if unit.endswith("i"):
        return Fraction(1024 ** (_BINARY.index(unit[0]) + 1))
    return _power(_DECIMAL.get(unit, 0))


def _capped(value: Fraction) -> Fraction:
    return max(Fraction(-LARGEST), min(value, Fraction(LARGEST)))


def _power(exponent: int) -> Fraction:
    return Fraction(10**exponent) if exponent >= 0 else Fraction(1, 10**-exponent)


def text_of(value: Fraction) -> str:
    """Return a quantity as text: whole if it is, else in thousandths, rounded up as the API server does.

    `quantity` parses every result.
    """
    value = _capped(value)
    if value.denominator == 1:
        return str(value.numerator)
    return f"{-(-value.numerator * 1000 // value.denominator)}m"
