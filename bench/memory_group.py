"""A control group with a memory limit, as a container has one: who exceeds it is killed by the kernel."""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

_MOUNTED = Path("/sys/fs/cgroup")
_ENTER = 'echo $$ > "$0" && exec "$@"'
_MIB = 1 << 20
_SECONDS = 10.0


class MemoryGroup:
    """One group, removed at the end; where none can be made, `is_limited` is false and nothing is limited."""

    def __init__(self, name: str, limit_mib: float) -> None:
        self._is_unified = (_MOUNTED / "cgroup.controllers").exists()
        self._folder = (_MOUNTED if self._is_unified else _MOUNTED / "memory") / name
        self.is_limited = os.access(self._folder.parent, os.W_OK)
        if not self.is_limited:
            return
        self._folder.mkdir(exist_ok=True)
        limit = "memory.max" if self._is_unified else "memory.limit_in_bytes"
        (self._folder / limit).write_text(str(round(limit_mib * _MIB)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        deadline = time.monotonic() + _SECONDS
        while self.is_limited and self._folder.exists() and time.monotonic() < deadline:
            with suppress(OSError):  # a process that has just ended may hold it for a moment
                self._folder.rmdir()
            time.sleep(0.02)

    def command(self, command: Sequence[str]) -> list[str]:
        """Return a command that runs in the group from its first page of memory on."""
        if not self.is_limited:
            return list(command)
        return ["/bin/sh", "-c", _ENTER, str(self._folder / "cgroup.procs"), *command]

    def kills(self) -> int:
        """Return how many processes the kernel has killed for want of memory."""
        if not self.is_limited:
            return 0
        file = self._folder / ("memory.events" if self._is_unified else "memory.oom_control")
        rows = dict(line.split() for line in file.read_text().splitlines())
        return int(rows.get("oom_kill", 0))
