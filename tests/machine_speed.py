"""How slow this machine is now: its CPU may have a fraction of the speed at which the bounds of tests were set."""

import resource
import subprocess
import sys
import time
from collections.abc import Callable

_STEPS = 1_000_000
_SECONDS = 0.14
"""What the steps take at a speed at which the documented figures are reached: there, the factor is 1."""

_PLAIN = "import argparse, http.client, json, ssl; ssl.create_default_context()"
"""What any command in Python pays that speaks TLS with an API server."""


def slowness() -> float:
    """Return how much longer than there the same work takes here and now; 1 if it is as fast or faster."""
    best = min(_measured() for _ in range(3))
    return max(best / _SECONDS, 1.0)


def cost_beside_plain_python(command: Callable[[], object], times: int = 5) -> tuple[float, float]:
    """Run a command that starts processes, each time beside a plain program in Python: their least CPU seconds."""
    own, plain = [], []
    for _ in range(times):
        plain.append(_cpu_of(lambda: subprocess.run([sys.executable, "-c", _PLAIN], check=True)))
        own.append(_cpu_of(command))
    return min(own), min(plain)


def _cpu_of(command: Callable[[], object]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _measured() -> float:
    began = time.process_time()
    sum(number * number for number in range(_STEPS))
    return time.process_time() - began
