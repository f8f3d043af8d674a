"""Whether the memory of a process grows: the slope of its samples by least squares, while nothing new begins in it.

A process warms up twice: after its start it reads everything, and after it became leader it parses every Schedule and
opens a connection for each write in flight. What the second takes is judged by a bound of its own.
"""

from collections.abc import Iterator, Sequence
from math import inf

WARM = 600.0
"""Seconds after its start, and after it became leader, in which a process warms up."""

STRETCH = 600.0
"""Seconds of samples that tell a slope."""

GROWTH = 10.0
"""MiB per hour that a warm process may grow by."""

LEADING = 12.0
"""MiB that a process may take more once it leads.

64 requests in flight take 105 KiB each for TLS, which malloc keeps after they are closed: 6.6 MiB. 2,000 parsed
Schedules take 1.2 KiB each: 2.4 MiB. The rest is for timers, figures and what malloc cannot reuse.
"""

_SEEN_LATE = 60.0  # seconds after which a leader is seen to lead, at the latest

PEAK = 256
"""MiB that no process may exceed."""

Samples = Sequence[tuple[float, float]]
"""Seconds of a life, and MiB."""


def slopes(samples: Samples, led: float | None) -> Iterator[tuple[str, float]]:
    """Return by how many MiB per hour a warm process grows, while it follows and while it leads."""
    until = inf if led is None else led
    following = [each for each in samples if WARM <= each[0] < until]
    leading = [each for each in samples if led is not None and each[0] >= max(led, 0.0) + WARM]
    for role, found in (("following", following), ("leading", leading)):
        if found and found[-1][0] - found[0][0] >= STRETCH:
            yield role, slope(found)


def slope(samples: Samples) -> float:
    """Return by how many MiB per hour samples grow."""
    if len(samples) < 2:
        return 0.0
    middle = sum(at for at, _ in samples) / len(samples)
    level = sum(held for _, held in samples) / len(samples)
    spread = sum((at - middle) ** 2 for at, _ in samples)
    return 3600 * sum((at - middle) * (held - level) for at, held in samples) / spread if spread else 0.0


def taken_by_leading(samples: Samples, led: float | None) -> float | None:
    """Return how many MiB more a process holds once it leads and is warm; None if it was not warm before or after."""
    if led is None:
        return None
    before = [held for at, held in samples if WARM / 2 <= at <= led - _SEEN_LATE]
    after = [held for at, held in samples if at >= led + WARM]
    return after[0] - before[-1] if before and after else None
