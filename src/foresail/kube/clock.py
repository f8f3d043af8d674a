"""The only module that reads clocks: the wall clock, which can be set, and a monotonic one."""

import time
from datetime import UTC, datetime


def now() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)  # noqa: TID251 - this is the one file


def steady() -> float:
    """Return the seconds of a monotonic clock that also runs while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
