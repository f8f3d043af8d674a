"""A cache for calls with small arguments alone: a tenant can write 1 MB into a CronJob, and another 1 MB at once."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar, TypeVarTuple

LARGEST = 4_096
"""In bytes or characters: what the arguments of a call that is cached have together."""

_Arguments = TypeVarTuple("_Arguments")
_Result = TypeVar("_Result")


def small_cache(
    most: int, *, largest: int = LARGEST
) -> Callable[[Callable[[*_Arguments], _Result]], Callable[[*_Arguments], _Result]]:
    """Cache the results of a pure function for the most recent calls whose arguments are small."""

    def decorate(function: Callable[[*_Arguments], _Result]) -> Callable[[*_Arguments], _Result]:
        cached = lru_cache(most)(function)

        @wraps(function)
        def call(*args: *_Arguments) -> _Result:
            return cached(*args) if _length(args) <= largest else function(*args)

        return call

    return decorate


def _length(value: object) -> int:
    if isinstance(value, tuple):
        return sum(map(_length, value))
    return len(value) if isinstance(value, bytes | str) else 0
