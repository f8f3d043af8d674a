"""Waits until something holds on the cluster that is measured."""

import time
from collections.abc import Callable

from bench import MeasurementError


def until(holds: Callable[[], bool], seconds: float, every: float = 0.5) -> None:
    """Return when it holds; fail if it does not in that time."""
    if not holds_within(holds, seconds, every):
        raise MeasurementError(f"it did not come to that within {seconds:g} s")


def holds_within(holds: Callable[[], bool], seconds: float, every: float = 0.5) -> bool:
    """Return True when it holds; False if it does not in that time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True
