"""Prometheus and promtool: the machine's, or those of Debian's package, unpacked and not installed."""

import fcntl
import shutil
import subprocess
import tempfile
from pathlib import Path

from testbed.errors import TestbedError
from testbed.places import programs_folder

_PROGRAMS = ("prometheus", "promtool")


def promtool() -> Path:
    """Return Prometheus' own checker of rules."""
    return _program("promtool")


def prometheus() -> Path:
    """Return the Prometheus server."""
    return _program("prometheus")


def _program(name: str) -> Path:
    """Return a program; the first time it is fetched, by apt-get and without root, into the user's cache folder."""
    found = shutil.which(name)
    if found:
        return Path(found)
    cached = programs_folder() / name
    programs_folder().mkdir(parents=True, exist_ok=True)
    with (programs_folder() / "prometheus.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not cached.exists():
            _fetch(programs_folder())
    return cached


def _fetch(into: Path) -> None:
    with tempfile.TemporaryDirectory(dir=into, prefix=".prometheus-") as scratch:
        folder = Path(scratch)
        try:
            if _run(["apt-get", "download", "prometheus"], folder) != 0:
                _run(["apt-get", "update"], folder)  # the lists of packages may be older than the packages
                _run(["apt-get", "download", "prometheus"], folder)
            package = next(folder.glob("prometheus_*.deb"))
        except (FileNotFoundError, StopIteration) as problem:
            hint = "install Prometheus, or put prometheus and promtool on PATH"
            raise TestbedError("apt-get cannot download the package prometheus", hint) from problem
        # Unpacked, not installed: the package would start its service.
        subprocess.run(["dpkg", "-x", package, folder / "unpacked"], check=True)  # noqa: S607 - Debian's own
        for name in _PROGRAMS:
            (folder / "unpacked" / "usr" / "bin" / name).rename(into / name)


def _run(command: list[str], folder: Path) -> int:
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode
