"""Builds the cluster's programs from the Go module proxy into the user's cache folder, each of them once."""

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.command import spelled
from testbed.components import COMPONENTS, Component
from testbed.errors import TestbedError
from testbed.places import programs_folder

Say = Callable[[str], None]
_PROGRESS_SECONDS = 30.0
_LOG_LINES_SHOWN = 15


def component_named(name: str) -> Component:
    """Return the component of that name, or say which names there are."""
    try:
        return COMPONENTS[name]
    except KeyError:
        raise TestbedError(f"there is no component {name!r}", f"the components are: {', '.join(COMPONENTS)}") from None


def cached_folder(component: Component) -> Path:
    """Return where the component's programs are or will be: keyed by sources, flags and machine."""
    digest = hashlib.sha256()
    for file in component.sources:
        digest.update(file.read_bytes())
    digest.update(repr((component.flags, component.files, platform.machine())).encode())
    if component.packages:
        digest.update(repr(component.packages).encode())
    return programs_folder() / f"{component.name}-{digest.hexdigest()[:16]}"


def program(component: str, name: str) -> Path:
    """Return the path of a program that has been built, or say how to build it."""
    path = cached_folder(component_named(component)) / name
    if not path.exists():
        raise TestbedError(f"{name} has not been built yet", f"run: {spelled('build', component)}")
    return path


def build(names: list[str], say: Say) -> None:
    """Build what is missing of the named components; a second run builds nothing."""
    components = [component_named(name) for name in names]
    missing = [component for component in components if not cached_folder(component).exists()]
    say(f"{len(components) - len(missing)} of {len(components)} components are already built")
    if missing and shutil.which("go") is None:
        raise TestbedError("there is no `go` command", "install Go 1.26.8 or newer and put it on PATH")
    for component in missing:
        with only_one(component.name):
            if not cached_folder(component).exists():
                _build_one(component, say)


@contextmanager
def only_one(name: str) -> Iterator[None]:
    """Let only one process of this user build what has that name, until the block ends."""
    programs_folder().mkdir(parents=True, exist_ok=True)
    with (programs_folder() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_one(component: Component, say: Say) -> None:
    say(f"{component.name}: building, about {component.minutes:g} min on two cores with nothing cached")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=programs_folder(), prefix=f".{component.name}-") as scratch:
        folder = Path(scratch) / "built"
        folder.mkdir()
        command = ["go", "build", *component.flags, "-o", f"{folder}/", *component.targets]
        _go(component, command, lambda: say(f"{component.name}: building, {time.monotonic() - began:.0f} s"))
        for given, ours in component.renamed.items():
            (folder / given).rename(folder / ours)
        _keep_files(component, folder)
        absent = [name for name in component.programs if not (folder / name).exists()]
        if absent:
            raise TestbedError(
                f"{component.name}: the build made no {', '.join(absent)}",
                f"compare {component.folder / 'go.mod'} with components.py",
            )
        # The rename is the commit: a folder of the final name always holds a whole component.
        folder.rename(cached_folder(component))
    say(f"{component.name}: built in {time.monotonic() - began:.0f} s")


def _go_environment(component: Component) -> dict[str, str]:
    # GOTOOLCHAIN: build with the Go that is here, or fail, unless the component names another one.
    return {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": component.toolchain, "GOWORK": "off", "GOFLAGS": ""}


def _go(component: Component, command: list[str], progress: Callable[[], None]) -> None:
    log = programs_folder() / f"{component.name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=component.folder,
            env=_go_environment(component),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            progress()
            while process.poll() is None:
                try:
                    process.wait(timeout=_PROGRESS_SECONDS)
                except subprocess.TimeoutExpired:
                    progress()
        finally:
            process.kill()
            process.wait()
    if process.returncode != 0:
        lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES_SHOWN:]
        raise TestbedError(
            f"{component.name}: go build ended with code {process.returncode}:\n" + "\n".join(lines),
            f"the whole output is in {log}",
        )


def _keep_files(component: Component, folder: Path) -> None:
    for module, patterns in component.files.items():
        where = subprocess.run(
            ["go", "list", "-m", "-f", "{{.Dir}}", module],  # noqa: S607 - the `go` of the user's PATH is meant
            cwd=component.folder,
            env=_go_environment(component),
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for pattern in patterns:
            for file in sorted(Path(where).glob(pattern)):
                # Only the bytes: the module cache is read-only, and its mode would come along.
                (folder / file.name).write_bytes(file.read_bytes())
