"""The builder, with a stand-in for the `go` command where the real one would take minutes or cannot be made to fail."""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.build import build, cached_folder, program
from testbed.command import spelled
from testbed.components import COMPONENTS
from testbed.errors import TestbedError


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "foresail" / "testbed"


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `go` command that a test writes; the first on PATH."""
    folder = tmp_path / "path"
    folder.mkdir()
    command = folder / "go"
    command.touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return command


def test_what_was_built_once_is_not_built_again(go: Path) -> None:
    # As Go does: a program is named after the last part of its path, here `server` for etcd.
    go.write_text('#!/bin/sh\nfor last; do out=$before; before=$last; done\necho "built" > "${out}server"\n')
    said: list[str] = []
    build(["etcd"], said.append)
    assert program("etcd", "etcd").read_text() == "built\n"
    assert said[0] == "0 of 1 components are already built"
    assert said[1].startswith("etcd: building")
    assert said[-1].startswith("etcd: built in")

    go.write_text("#!/bin/sh\nexit 1\n")
    build(["etcd"], said.append)
    assert said[-1] == "1 of 1 components are already built"


def test_a_build_that_fails_shows_what_go_said_and_leaves_nothing_half_built(go: Path, empty_cache: Path) -> None:
    go.write_text("#!/bin/sh\necho 'no space left on device' >&2\nexit 3\n")
    with pytest.raises(TestbedError, match="no space left on device") as raised:
        build(["etcd"], lambda _: None)
    assert "code 3" in raised.value.problem
    assert raised.value.hint == f"the whole output is in {empty_cache / 'etcd.log'}"
    assert sorted(path.name for path in empty_cache.iterdir()) == ["etcd.lock", "etcd.log"]


def test_a_build_that_makes_no_program_is_an_error(go: Path) -> None:
    go.write_text("#!/bin/sh\nexit 0\n")
    with pytest.raises(TestbedError, match="the build made no versitygw"):
        build(["s3"], lambda _: None)
    assert not cached_folder(COMPONENTS["s3"]).exists()


def test_interrupted_it_takes_the_compiler_down_and_leaves_nothing_half_built(go: Path, empty_cache: Path) -> None:
    started = go.with_name("started")
    go.write_text(f"#!/bin/sh\necho $$ > {started}.new; mv {started}.new {started}; exec sleep 60\n")
    with subprocess.Popen([sys.executable, "-m", "testbed", "build", "etcd"], stderr=subprocess.PIPE) as command:
        assert command.stderr
        while b"building, 0 s" not in command.stderr.readline():  # from now on it ends what it has started
            pass
        while not started.exists():
            time.sleep(0.01)
        command.send_signal(signal.SIGINT)
        command.communicate(timeout=60)
    assert command.returncode == 130
    assert not Path(f"/proc/{started.read_text().strip()}").exists()
    assert sorted(path.name for path in empty_cache.iterdir()) == ["etcd.lock", "etcd.log"]


def test_without_go_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TestbedError, match="no `go` command") as raised:
        build(["etcd"], lambda _: None)
    assert "install Go 1.26" in raised.value.hint


def test_an_unknown_component_is_answered_with_the_known_ones() -> None:
    with pytest.raises(TestbedError, match="no component 'etdc'") as raised:
        build(["etdc"], lambda _: None)
    assert "etcd, kube" in raised.value.hint


def test_a_program_that_was_not_built_says_how_to_build_it() -> None:
    with pytest.raises(TestbedError, match="kubectl has not been built") as raised:
        program("kube", "kubectl")
    assert raised.value.hint == f"run: {spelled('build', 'kube')}"


def test_another_version_stamp_is_another_place_in_the_cache() -> None:
    velero = COMPONENTS["velero"]
    other = replace(velero, stamps=(("main.version", "other"),))
    assert cached_folder(other) != cached_folder(velero)
