"""foresail.pyz: the same bytes from the same files, one cache per build, and a hint where it cannot start."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from release import pyz, pyz_start

ROOT = Path(__file__).parents[2]
HERE = pyz_start.target()
MAIN = b"import sys, shared\ndef main():\n    print(shared.NAME, *sys.argv[1:])\n    return 3\n"


def planted(name: str = HERE) -> dict[str, dict[str, bytes]]:
    """Return a small program for one target, and what another one needs."""
    program = {"foresail/__init__.py": b"", "foresail/cli/__init__.py": b"", "foresail/cli/main.py": MAIN}
    return {
        name: {**program, "shared.py": b"NAME = 'here'\n", "native.so": b"one"},
        "cp30-other-machine": {**program, "shared.py": b"NAME = 'there'\n", "native.so": b"two"},
    }


def started(file: Path, cache: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/nowhere", "XDG_CACHE_HOME": str(cache), **more}
    command = [sys.executable, str(file), "a", "b"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_bytes_depend_on_names_and_contents_only(tmp_path: Path) -> None:
    for name in ("one", "two"):
        files = planted()
        if name == "two":
            files = {target: dict(reversed(each.items())) for target, each in reversed(files.items())}
        pyz.write(tmp_path / name, files)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    with zipfile.ZipFile(tmp_path / "one") as archive:
        assert {each.date_time for each in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_a_start_unpacks_what_this_python_needs_once(tmp_path: Path) -> None:
    pyz.write(tmp_path / "foresail.pyz", planted())
    for _ in range(2):
        done = started(tmp_path / "foresail.pyz", tmp_path / "cache")
        assert (done.returncode, done.stdout, done.stderr) == (3, "here a b\n", "")
    (folder,) = (tmp_path / "cache" / "foresail" / "pyz").iterdir()
    assert folder.name.endswith(f"-{HERE}")
    assert folder.stat().st_mode & 0o077 == 0, "nobody else may write what runs here"
    assert (folder / "native.so").read_bytes() == b"one"


def test_another_build_has_a_cache_of_its_own(tmp_path: Path) -> None:
    pyz.write(tmp_path / "one", planted())
    files = planted()
    files[HERE]["shared.py"] = b"NAME = 'newer'\n"
    pyz.write(tmp_path / "two", files)
    assert started(tmp_path / "one", tmp_path / "cache").stdout == "here a b\n"
    assert started(tmp_path / "two", tmp_path / "cache").stdout == "newer a b\n"


def test_without_a_cache_it_starts_slowly_and_leaves_nothing(tmp_path: Path) -> None:
    pyz.write(tmp_path / "foresail.pyz", planted())
    (tmp_path / "file").write_text("")
    (tmp_path / "tmp").mkdir()
    done = started(tmp_path / "foresail.pyz", tmp_path / "file", TMPDIR=str(tmp_path / "tmp"))
    assert (done.returncode, done.stdout) == (3, "here a b\n")
    assert "hint: set XDG_CACHE_HOME" in done.stderr
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_python_without_packages_starts_another_one_or_says_which_there_are(tmp_path: Path) -> None:
    pyz.write(tmp_path / "foresail.pyz", planted("cp399-linux-x86_64"))
    done = started(tmp_path / "foresail.pyz", tmp_path)
    assert done.returncode == 1
    assert f"has no packages for {HERE}" in done.stderr
    assert "hint: use one of cp30-other-machine, cp399-linux-x86_64" in done.stderr

    other = tmp_path / "python3.99"
    other.write_text('#!/bin/sh\necho started "$@"\n')
    other.chmod(0o755)
    done = started(tmp_path / "foresail.pyz", tmp_path, PATH=str(tmp_path))
    assert done.stdout == f"started {tmp_path}/foresail.pyz a b\n"
    done = started(tmp_path / "foresail.pyz", tmp_path, PATH=str(tmp_path), FORESAIL_PYZ_TRIED="1")
    assert done.returncode == 1, "it does not go round in circles"


def test_the_targets_are_at_least_the_pythons_that_the_project_names() -> None:
    named = set(re.findall(r"Python :: (\d\.\d+)", (ROOT / "pyproject.toml").read_text()))
    assert len(named) >= 3
    assert named <= set(pyz.PYTHONS)
    assert HERE in pyz.targets()


@pytest.mark.repeats
@pytest.mark.full
def test_two_builds_of_the_real_file_are_the_same_and_it_runs(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    for name in ("one.pyz", "two.pyz"):
        subprocess.run([sys.executable, "-m", "release.pyz", str(wheel), str(tmp_path / name)], cwd=ROOT, check=True)
    assert (tmp_path / "one.pyz").read_bytes() == (tmp_path / "two.pyz").read_bytes()
    command = [sys.executable, str(tmp_path / "one.pyz"), "cron", "next", "0 3 * * *"]
    environment = {"PATH": "/nowhere", "XDG_CACHE_HOME": str(tmp_path)}
    assert "03:00" in subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
