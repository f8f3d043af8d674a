"""Commands that wait: how long, and what somebody hears who tires of it."""

import sys
from collections.abc import Callable
from datetime import datetime, timedelta

from foresail.cli.spans import read_length
from foresail.kube.clock import now


def deadline(text: str | None) -> datetime | None:
    """Return when the waiting ends; None if it has no end."""
    if text is None:
        return None
    return now() + timedelta(microseconds=read_length(text, "--timeout") / 1000)


def interruptible(work: Callable[[], int], said: str = "Nobody waits any more; what was asked for goes on.") -> int:
    """Return the exit code of work that somebody may tire of, who is then told what becomes of it."""
    try:
        return work()
    except KeyboardInterrupt:
        print(f"\n{said}", file=sys.stderr)
        return 130
