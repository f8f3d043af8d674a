"""Processes as the kubelet runs them: within the memory limit of the chart, and started again when they end."""

import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from bench import MeasurementError
from bench.memory_group import MemoryGroup
from testbed import Cluster, processes
from testbed import velero as testbed_velero
from testbed.errors import TestbedError

_POLL_SECONDS = 0.1
_PAUSES = (0.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0)  # before each start, as the kubelet waits
_ENDED = {"Z", "X", ""}
_RESET_PEAK = "5"
_UNITS = {"Ki": 1 / 1024, "Mi": 1.0, "Gi": 1024.0}


def mebibytes(quantity: str) -> float:
    """Return the MiB of a quantity such as 768Mi."""
    return float(quantity[:-2]) * _UNITS[quantity[-2:]]


class Startable(Protocol):
    """What runs in a container."""

    def start(self, group: MemoryGroup) -> int:
        """Start it in the group, and return its process id."""

    def end(self) -> None:
        """End it for good."""


@dataclass
class Seen:
    """What became of a container since the last look."""

    restarts: int = 0
    out_of_memory: int = 0
    peak_mib: float = 0.0


@dataclass
class Container:
    """One of them; its thread looks at it ten times a second."""

    name: str
    limit_mib: float
    group: MemoryGroup
    program: "Startable"
    seen: Seen = field(default_factory=Seen)
    total: int = 0  # restarts since the begin
    _pid: int = 0
    _kills: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._pid = self.program.start(self.group)
        self._thread = threading.Thread(target=self._watch, name=f"watch-{self.name}")
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self.program.end()

    @property
    def pid(self) -> int:
        """The process that runs now, or ended last."""
        return self._pid

    def looked(self) -> Seen:
        """Return what was seen since the last call, and begin anew."""
        with self._lock:
            found, self.seen = self.seen, Seen()
            with suppress(OSError):
                Path(f"/proc/{self._pid}/clear_refs").write_text(_RESET_PEAK)
        return found

    def _watch(self) -> None:
        while not self._stop.wait(_POLL_SECONDS):
            state, peak = _state_of(self._pid)
            with self._lock:
                self.seen.peak_mib = max(self.seen.peak_mib, peak)
            if state in _ENDED:
                self._again()

    def _again(self) -> None:
        kills = self.group.kills()
        with self._lock:
            self.seen.restarts += 1
            if kills > self._kills:
                self.seen.out_of_memory += 1
                self.seen.peak_mib = max(self.seen.peak_mib, self.limit_mib)
        self._kills = kills
        pause = _PAUSES[min(self.total, len(_PAUSES) - 1)]
        self.total += 1
        print(f"{self.name} has ended; started again in {pause:g} s", flush=True)
        if not self._stop.wait(pause):
            try:
                self._pid = self.program.start(self.group)
            except (MeasurementError, TestbedError) as error:
                print(f"{self.name} did not start: {error}", flush=True)
                self._pid = 0  # which has ended: it is started once more


def _state_of(pid: int) -> tuple[str, float]:
    """Return the state of a process, and the most memory that it has held, in MiB."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return "", 0.0
    rows = dict(line.split(":", 1) for line in lines)
    return rows["State"].split()[0], int(rows.get("VmHWM", "0 kB").split()[0]) / 1024


@dataclass
class Own:
    """How one of our processes is started; what it prints goes to a file."""

    command: list[str]
    log: Path
    _running: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def start(self, group: MemoryGroup) -> int:
        """Start it, once more if it has ended."""
        for process in self._running:
            process.wait()
        with self.log.open("ab") as log:
            process = subprocess.Popen(group.command(self.command), stdout=log, stderr=log)
        self._running = [process]
        return process.pid

    def end(self) -> None:
        """End it for good."""
        for process in self._running:
            process.kill()
            process.wait()


@dataclass(frozen=True)
class Velero:
    """Velero of the testbed, with the garbage collection that its container has; the testbed's is lazier."""

    cluster: Cluster

    def start(self, group: MemoryGroup) -> int:
        """Start it, and return when its location is available."""
        folder, component = self.cluster.folder, testbed_velero.VELERO
        processes.kill(folder, component)
        usual = testbed_velero.velero(self.cluster.site)
        program = replace(usual, command=group.command(usual.command), environment={**usual.environment, "GOGC": "100"})
        processes.start(folder, program)
        processes.wait_ready(folder, program)
        pids = {process.pid for process in processes.running(folder, component)}
        roots = [pid for pid in pids if _parent(pid) not in pids]
        if not roots:
            raise MeasurementError("velero ended while it was starting")
        return min(roots)

    def end(self) -> None:
        """End it with its plugins."""
        processes.kill(self.cluster.folder, testbed_velero.VELERO)


def _parent(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0
