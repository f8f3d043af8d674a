"""The one place where the clocks are read: the wall's, which may be set, and a steady one, which may not."""

import time
from datetime import UTC, datetime


def now() -> datetime:
    """Return the present instant."""
    return datetime.now(UTC)  # noqa: TID251 - this is the one file


def steady() -> float:
    """Return seconds that only go forward, and that pass while the process or the whole machine is asleep."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
