"""How slow this machine is now: its CPU may have a fraction of the speed at which the bounds of tests were set."""

import time

_STEPS = 1_000_000
_SECONDS = 0.14
"""What the steps take at a speed at which the documented figures are reached: there, the factor is 1."""


def slowness() -> float:
    """Return how much longer than there the same work takes here and now; 1 if it is as fast or faster."""
    best = min(_measured() for _ in range(3))
    return max(best / _SECONDS, 1.0)


def _measured() -> float:
    began = time.process_time()
    sum(number * number for number in range(_STEPS))
    return time.process_time() - began
