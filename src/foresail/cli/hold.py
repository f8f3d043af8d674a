"""`foresail hold`: what the Job of a primer CronJob runs; it holds its place, and ends in order."""

import argparse
import os
import signal
import threading

from foresail.api.marks import JOB_VARIABLE
from foresail.kube.clock import now


def add_hold(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `foresail hold` to the command line; it has no `help`, so that people do not see it in the list."""
    hold = commands.add_parser(
        "hold",
        description="Sleeps for SECONDS and ends with exit code 0; ends at once on SIGTERM. "
        f"If {JOB_VARIABLE} names the Job, the time counts from the minute that the Job was due.",
    )
    hold.add_argument("seconds", type=int, metavar="SECONDS")
    hold.set_defaults(run=_run)


def seconds_left(seconds: int, job: str, at: float) -> float:
    """Return how long to hold still: a pod that got its node late must not hold it longer."""
    minutes = job.rpartition("-")[2]
    begun = int(minutes) * 60 if minutes.isdecimal() and job else at
    return max(begun + seconds - at, 0.0)


def _run(args: argparse.Namespace) -> int:
    terminated = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: terminated.set())
    terminated.wait(seconds_left(args.seconds, os.environ.get(JOB_VARIABLE, ""), now().timestamp()))
    return 0
