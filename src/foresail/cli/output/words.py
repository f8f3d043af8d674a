"""Words for people: reasons without their capitals, and nouns in the number that they need."""

import re

_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def in_words(reason: str) -> str:
    """Return a reason as people write it: `QuotaExceeded` is quota exceeded."""
    return _CAPITAL.sub(" ", reason).lower()


def counted(number: int, noun: str, nouns: str = "") -> str:
    """Return a number with its noun: 1 copy, 2 copies."""
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"
