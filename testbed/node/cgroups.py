"""The control groups of a node: one folder of its own in each hierarchy, removed with what containers left in it."""

import os
import time
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from testbed.errors import TestbedError

_MOUNTED = Path("/sys/fs/cgroup")
_SECONDS = 20.0


def name(folder: Path) -> str:
    """Return the name of the group of the cluster in that folder."""
    return f"foresail-{crc32(str(folder).encode()):08x}"


def is_writable() -> bool:
    """Whether groups can be made here."""
    found = _hierarchies()
    return bool(found) and all(os.access(each, os.W_OK) for each in found)


def create(folder: Path) -> None:
    """Make the group in every hierarchy, before the kubelet looks for it."""
    for hierarchy in _hierarchies():
        (hierarchy / name(folder)).mkdir(exist_ok=True)


def remove(folder: Path) -> None:
    """Remove the group with all below it; a process that has just ended may hold it for a moment."""
    deadline = time.monotonic() + _SECONDS
    while left := [group for hierarchy in _hierarchies() if (group := hierarchy / name(folder)).exists()]:
        for group in left:
            _remove_tree(group)
        if time.monotonic() > deadline:
            raise TestbedError(
                f"control group {left[0]} cannot be removed", "see which processes are in it: its file cgroup.procs"
            )
        time.sleep(0.02)


def _remove_tree(group: Path) -> None:
    with suppress(OSError):
        for inner in [entry for entry in group.iterdir() if entry.is_dir()]:
            _remove_tree(inner)
        group.rmdir()


def _hierarchies() -> list[Path]:
    """Return where groups are made: the one hierarchy of version 2, or each of version 1."""
    if (_MOUNTED / "cgroup.controllers").exists():
        return [_MOUNTED]
    if not _MOUNTED.exists():
        return []
    # A hierarchy can have several names, of which all but one are links; "unified" comes along without controllers.
    return [entry for entry in _MOUNTED.iterdir() if entry.is_dir() and not entry.is_symlink()]
