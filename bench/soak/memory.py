"""Whether the memory of a process grows: the slope of its samples by least squares."""

from collections.abc import Sequence

LONG_LIFE = 1200.0
"""Seconds that a process must live to tell."""

WARM = 600.0
"""Seconds of a life that do not count: it reads everything, and its pools fill."""

GROWTH = 10.0
"""MiB per hour that a life may grow by."""

PEAK = 256
"""MiB that no process may exceed."""


def slope(samples: Sequence[tuple[float, float]]) -> float:
    """Return by how many MiB per hour the samples of a life grow once it is warm; they are seconds and MiB."""
    warm = [each for each in samples if each[0] >= WARM]
    if len(warm) < 2:
        return 0.0
    middle = sum(at for at, _ in warm) / len(warm)
    level = sum(held for _, held in warm) / len(warm)
    spread = sum((at - middle) ** 2 for at, _ in warm)
    return 3600 * sum((at - middle) * (held - level) for at, held in warm) / spread if spread else 0.0
