"""Logs a report of the process on SIGUSR1: memory, stores, queues and tasks.

A blocked event loop cannot log. So the stacks of all threads go to stderr first, without the event loop.
"""

import asyncio
import faulthandler
import logging
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from foresail.kube.loop import Loop
from foresail.kube.store import Store

_log = logging.getLogger(__name__)
_KEYS = 10  # of each queue
_FRAMES = 8  # of each task
_SAMPLE = 100  # rows of each store, from which the size of all is estimated
_PAGE = 4096

Fields = dict[str, object]


@contextmanager
def debugging(loops: Sequence[Loop[Any]]) -> Iterator[None]:
    """Report on SIGUSR1 until the block ends."""
    running = asyncio.get_running_loop()
    running.add_signal_handler(signal.SIGUSR1, _report, loops)
    stderr = _has_file(sys.stderr)
    if stderr:
        faulthandler.register(signal.SIGUSR1, all_threads=True, chain=True)
    try:
        yield
    finally:
        if stderr:
            faulthandler.unregister(signal.SIGUSR1)
        running.remove_signal_handler(signal.SIGUSR1)


def _report(loops: Sequence[Loop[Any]]) -> None:
    for message, fields in report(loops):
        _log.info("debug: %s", message, extra={"fields": fields})


def report(loops: Sequence[Loop[Any]]) -> Iterator[tuple[str, Fields]]:
    """Return the lines of a report: memory, stores, queues and tasks."""
    stores: list[Fields] = [
        {
            "controller": loop.controller.name,
            "kind": watch.reflector.spec.kind.name,
            "selector": ",".join(watch.reflector.spec.selectors.values()),
            "phase": watch.reflector.phase.name.lower(),
            "objects": len(watch.reflector.store),
            "unreadable": len(watch.reflector.store.unread),
            "bytes": store_bytes(watch.reflector.store),
            "age_seconds": round(watch.age(), 1),
            "bookmark_age_seconds": watch.bookmark_age(),
        }
        for loop in loops
        for watch in loop.watches
    ]
    rooms: dict[str, int] = {}
    for store in stores:
        name = str(store["controller"])
        rooms[name] = rooms.get(name, 0) + int(str(store["bytes"]))
    yield "memory", {"resident_bytes": _resident(), "store_bytes": rooms}
    for store in stores:
        yield "store", store
    for loop in loops:
        yield "queue", {"controller": loop.controller.name, "is_working": loop.is_working, **loop.queue.contents(_KEYS)}
    for task in sorted(asyncio.all_tasks(), key=asyncio.Task.get_name):
        yield "task", {"task": task.get_name(), "stack": _stack(task)}


def store_bytes(store: Store[Any]) -> int:
    """Estimate the memory of a store's rows from a sample."""
    seen: set[int] = set()
    sample = list(islice(store.rows(), _SAMPLE))
    return sum(_size(row, seen) for row in sample) * len(store) // len(sample) if sample else 0


def _size(value: object, seen: set[int]) -> int:
    if id(value) in seen:
        return 0
    seen.add(id(value))
    return sys.getsizeof(value) + sum(_size(part, seen) for part in _parts(value))


def _parts(value: Any) -> Iterable[object]:  # noqa: ANN401 - anything that a row may have
    if isinstance(value, dict):
        return (*value, *value.values())
    if isinstance(value, tuple | list | set | frozenset):
        return value
    return [getattr(value, name) for name in getattr(value, "__struct_fields__", ())]


def _stack(task: asyncio.Task[Any]) -> list[str]:
    """Return the stack of a task, outermost frame first."""
    return [
        f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_qualname}" for frame in _frames(task)
    ][-_FRAMES:]


def _frames(task: asyncio.Task[Any]) -> Iterator[Any]:
    """Return the frames of a task; asyncio's own method returns only the outermost of a waiting task."""
    awaited: Any = task.get_coro()
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        frame = frame or getattr(awaited, "ag_frame", None)
        if frame is None:
            return
        yield frame
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def _has_file(stream: Any) -> bool:  # noqa: ANN401 - stderr, or what a test has put there
    try:
        stream.fileno()
    except (AttributeError, OSError, ValueError):
        return False
    return True
