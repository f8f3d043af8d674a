"""Prometheus' own checker of alert rules: the machine's, or the one of Debian's package, unpacked and not installed."""

import fcntl
import shutil
import subprocess
import tempfile
from pathlib import Path

from testbed.errors import TestbedError
from testbed.places import programs_folder


def promtool() -> Path:
    """Return the program; the first time it is fetched, by apt-get, into the user's cache folder."""
    found = shutil.which("promtool")
    if found:
        return Path(found)
    cached = programs_folder() / "promtool"
    programs_folder().mkdir(parents=True, exist_ok=True)
    with (programs_folder() / "promtool.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not cached.exists():
            _fetch(cached)
    return cached


def _fetch(into: Path) -> None:
    with tempfile.TemporaryDirectory(dir=into.parent, prefix=".promtool-") as scratch:
        folder = Path(scratch)
        try:
            if _run(["apt-get", "download", "prometheus"], folder) != 0:
                _run(["apt-get", "update"], folder)  # the lists of packages may be older than the packages
                _run(["apt-get", "download", "prometheus"], folder)
            package = next(folder.glob("prometheus_*.deb"))
        except (FileNotFoundError, StopIteration) as problem:
            hint = "install Prometheus, or put its promtool on PATH"
            raise TestbedError("promtool is not there, and apt-get could not fetch it", hint) from problem
        subprocess.run(["dpkg", "-x", package, folder / "unpacked"], check=True)  # noqa: S607 - Debian's own
        (folder / "unpacked" / "usr" / "bin" / "promtool").rename(into)


def _run(command: list[str], folder: Path) -> int:
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode
