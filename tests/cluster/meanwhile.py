"""What goes on beside a test until its block ends."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from testbed import TestbedError


@contextmanager
def meanwhile(work: Callable[[], object], *, every: float) -> Iterator[None]:
    """Do this every so many seconds until the block ends; if the cluster does not answer, it is done the next time."""
    enough = threading.Event()

    def again() -> None:
        while not enough.wait(every):
            with suppress(OSError, TestbedError):  # a machine that does much else beside it answers late
                work()

    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()
