"""The processes of a cluster, recognised by a mark in their environment.

No process id is written down: a file could be missing (killed between start and write) or stale (an id used again).
The mark is set by the kernel together with the program and is inherited by its children, Velero's plugins included.
"""

import os
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from testbed.errors import TestbedError

_MARK = "FORESAIL_TESTBED"
_COMPONENT = "FORESAIL_TESTBED_COMPONENT"
_POLL_SECONDS = 0.02
_LOG_LINES_SHOWN = 15
_LOOKS = 2  # a process that started another, or has only just started, may escape the first

_started: set[int] = set()  # ids of our own children, for the kernel wants them collected


@dataclass(frozen=True, slots=True)
class Program:
    """One component of a cluster: how it is started, and how one knows that it is ready."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    ready: Callable[[], bool]
    seconds: float = 120.0  # how long it may take to get ready, on a machine that has much else to do


@dataclass(frozen=True, slots=True)
class Running:
    """A live process of a cluster."""

    pid: int
    component: str


def running(folder: Path, component: str | None = None) -> list[Running]:
    """Return the live processes of the cluster in that folder, of all components or of one."""
    wanted = f"{_MARK}={folder}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        variables = _environment(entry)
        if wanted not in variables:
            continue
        name = next((v.split(b"=", 1)[1].decode() for v in variables if v.startswith(f"{_COMPONENT}=".encode())), "")
        if component in (None, name):
            found.append(Running(int(entry.name), name))
    return found


def _environment(process: Path) -> list[bytes]:
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []  # it has ended, or is not ours


def log_file(folder: Path, component: str) -> Path:
    """Return the file that takes what a component prints."""
    return folder / "logs" / f"{component}.log"


def start(folder: Path, program: Program) -> None:
    """Start a component in a session of its own, so that Ctrl-C at the terminal reaches only the testbed."""
    log = log_file(folder, program.name)
    log.parent.mkdir(exist_ok=True)
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),  # what a component writes to its home goes away with the cluster
        "GOGC": "400",  # memory is there, and CPU is what the tests wait for
        **program.environment,
        _MARK: str(folder),
        _COMPONENT: program.name,
    }
    pid = os.posix_spawn(
        program.command[0],
        list(program.command),
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores these two; the component should not
    )
    _started.add(pid)
    # The kernel shows the new environment a moment after the start; nobody should miss the process in between.
    while pid in _started and not any(process.pid == pid for process in running(folder, program.name)):
        reap()


def wait_ready(folder: Path, program: Program) -> None:
    """Wait until the component is ready, or say why it is not."""
    deadline = time.monotonic() + program.seconds
    while not program.ready():
        if not running(folder, program.name):
            problem = f"{program.name} ended while it was starting"
        elif time.monotonic() > deadline:
            problem = f"{program.name} was not ready within {program.seconds:g} s"
        else:
            time.sleep(_POLL_SECONDS)
            continue
        raise TestbedError(
            f"{problem}; it last said:\n{_log_tail(folder, program.name)}",
            f"the whole log is {log_file(folder, program.name)}",
        )


def _log_tail(folder: Path, component: str) -> str:
    log = log_file(folder, component)
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join(lines[-_LOG_LINES_SHOWN:]) or "(nothing)"


def send(folder: Path, which: signal.Signals, component: str | None = None) -> None:
    """Send a signal to every process of a component, or of the whole cluster."""
    for handle in _handles(folder, component):
        with handle:
            handle.send(which)


class _Handle:
    """A process that cannot be mistaken for a later one with the same id."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._descriptor)

    def send(self, which: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, which)

    def ended(self, seconds: float) -> bool:
        """Wait for the end; its memory goes first, and only then its ports, so nothing less will do."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return bool(poll.poll(max(seconds, 0) * 1000))


def _handles(folder: Path, component: str | None) -> list[_Handle]:
    found = []
    for process in running(folder, component):
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(process.pid)
            # Look again with the handle open: between the first look and now the id may have gone to a stranger.
            if f"{_MARK}={folder}".encode() in _environment(Path("/proc") / str(process.pid)):
                found.append(_Handle(descriptor))
            else:
                os.close(descriptor)
    return found


def kill(folder: Path, component: str | None = None, seconds: float = 30.0) -> None:
    """Kill every process of a component, or of the whole cluster, and return when none is left."""
    end(folder, component, signal.SIGKILL, seconds)


def terminate(folder: Path, component: str, seconds: float) -> None:
    """Ask a component to end, and return when it has; after that many seconds it is an error."""
    end(folder, component, signal.SIGTERM, seconds)


def end(folder: Path, component: str | None, which: signal.Signals, seconds: float) -> None:
    """Send a signal until no process is left, their children included."""
    deadline = time.monotonic() + seconds
    looks_without_any = 0
    while looks_without_any < _LOOKS:
        handles = _handles(folder, component)
        looks_without_any = 0 if handles else looks_without_any + 1
        for handle in handles:
            handle.send(which)
        for handle in handles:
            with handle:
                if not handle.ended(deadline - time.monotonic()):
                    left = ", ".join(f"{p.component} ({p.pid})" for p in running(folder, component))
                    raise TestbedError(
                        f"still running {seconds:g} s after {which.name}: {left}", "kill it, or see dmesg if that fails"
                    )
        reap()
        if not handles:
            time.sleep(_POLL_SECONDS)


def reap() -> None:
    """Collect the components that this process started and that have ended, so that no zombie is left."""
    for pid in list(_started):
        try:
            ended, _ = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            ended = pid
        if ended:
            _started.discard(pid)
