"""A measured process: looked at from outside, told to end, and asked what it found."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench import MeasurementError

_TICKS = os.sysconf("SC_CLK_TCK")
_IDLE_SHARE, _IDLE_SECONDS = 0.05, 2.0
_LONGEST = 1800.0


class Process:
    """One process that answers on a port; what it prints, if that is kept, is one JSON object at its end."""

    def __init__(
        self,
        command: Sequence[str],
        port: int,
        variables: Mapping[str, str] | None = None,
        *,
        keep: bool = True,
        log: Path | None = None,
    ) -> None:
        self.port = port
        self.began = time.monotonic()
        self.idle_after = 0.0
        out = subprocess.PIPE if keep else None
        with log.open("ab") if log else nullcontext() as said:
            environment = os.environ | dict(variables or {})
            self._process = subprocess.Popen(command, env=environment, stdout=out, stderr=said, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def ended(self) -> int | None:
        """The code with which it has ended; None while it runs."""
        return self._process.poll()

    @property
    def cpu_seconds(self) -> float:
        """How much processor time it has used since its start, its own and the kernel's for it."""
        return cpu_seconds(self._process.pid)

    def memory_mib(self, of: str = "VmRSS") -> float:
        """Return the memory that it holds, or held at most (VmHWM)."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith(f"{of}:"):
                return int(line.split()[1]) / 1024
        raise MeasurementError(f"process {self._process.pid} has ended")

    def wait_synced(self) -> float:
        """Wait until it says that it has read everything; return the seconds since its start."""
        while not self._is_ready():
            self.must_live()
            time.sleep(0.1)  # each question costs it a little of the time that is measured
        return time.monotonic() - self.began

    def wait_for(self, holds: Callable[[], bool], every: float = 1.0) -> None:
        """Wait until something holds that it is to bring about."""
        while not holds():
            self.must_live()
            time.sleep(every)

    def wait_idle(self) -> float:
        """Wait until it has next to nothing to do; return the processor time that it had used by then.

        On a busy machine a process that has much to do may look idle: wait for what it is to do before.
        `idle_after` then has the seconds from its start to the beginning of the idle stretch.
        """
        before, used = -1.0, 0.0
        while used - before > _IDLE_SHARE * _IDLE_SECONDS:
            self.must_live()
            self.idle_after = time.monotonic() - self.began
            time.sleep(_IDLE_SECONDS)
            before, used = used, self.cpu_seconds
        return used

    def wait_end(self) -> dict[str, Any]:
        """Wait until it ends by itself; return what it found."""
        printed, _ = self._process.communicate(timeout=_LONGEST)
        if self._process.returncode:
            raise MeasurementError(f"{self._process.args!r} ended with {self._process.returncode}")
        facts: dict[str, Any] = json.loads(printed) if printed else {}
        return facts

    def end(self) -> dict[str, Any]:
        """Tell it to end; return what it found."""
        self.must_live()
        self._process.send_signal(signal.SIGTERM)
        return self.wait_end()

    def must_live(self) -> None:
        """Fail if it has ended, or takes too long with whatever it is waited for."""
        if self._process.poll() is not None:
            raise MeasurementError(f"{self._process.args!r} ended by itself with {self._process.returncode}")
        if time.monotonic() - self.began > _LONGEST:
            raise MeasurementError(f"{self._process.args!r} is not done after {_LONGEST:g} s")

    def figures(self) -> dict[str, float]:
        """Return its metrics; nothing as long as it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=60) as answer:
                text = answer.read().decode()
        except (urllib.error.URLError, OSError):
            return {}
        rows = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, value in rows}

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=60):
                return True
        except (urllib.error.URLError, OSError):
            return False


def cpu_seconds(pid: int) -> float:
    """Return how much processor time a process has used since its start, its own and the kernel's for it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def free_port() -> int:
    """Return a port of the loopback that nobody has right now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    return port
