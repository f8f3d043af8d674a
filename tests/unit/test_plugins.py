"""The krew manifest and the Homebrew formula name the archive of the release, and what it has in it."""

import hashlib
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from yaml import safe_load

from foresail import __version__
from release import plugins, pyz, pyz_start

HOME = "https://example.com/them/foresail"
URL = f"{HOME}/releases/download/v{__version__}/kubectl-foresail-{__version__}.tar.gz"


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """What a release has of plugins, with a small program in the place of Foresail."""
    folder = tmp_path / "dist"
    main = b"import sys\ndef main():\n    print('started', *sys.argv[1:])\n"
    program = {"foresail/__init__.py": b"", "foresail/cli/__init__.py": b"", "foresail/cli/main.py": main}
    pyz.write(folder / "foresail.pyz", {pyz_start.target(): program})
    plugins.write(folder / "foresail.pyz", f"{HOME}/")
    return folder


def test_the_archive_installed_as_krew_does_it_starts(dist: Path, tmp_path: Path) -> None:
    manifest = safe_load((dist / "foresail.yaml").read_text())
    assert manifest["metadata"]["name"] == "foresail", "krew wants the name of the file"
    assert manifest["spec"]["version"] == f"v{__version__}"
    (platform,) = manifest["spec"]["platforms"]
    assert platform["uri"] == URL
    archive = dist / plugins.ARCHIVE
    assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    with tarfile.open(archive) as tar:
        assert {each["from"] for each in platform["files"]} == set(tar.getnames())
        tar.extractall(tmp_path / "store", filter="data")
    program = tmp_path / "kubectl-foresail"
    program.symlink_to(tmp_path / "store" / platform["bin"])
    environment = {"PATH": str(Path(sys.executable).parent) + ":/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([program, "coverage"], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "started coverage\n"


def test_the_formula_has_the_same_archive(dist: Path) -> None:
    text = (dist / "foresail.rb").read_text()
    checksum = hashlib.sha256((dist / plugins.ARCHIVE).read_bytes()).hexdigest()
    assert f'url "{URL}"' in text
    assert f'sha256 "{checksum}"' in text
    assert set(re.findall(r"python@?(\d\.\d+)", text)) <= set(pyz.PYTHONS)
    (description,) = re.findall(r'desc "(.*)"', text)
    assert len(description) <= 80
    assert not description.endswith("."), "Homebrew's audit refuses it"
    assert "{{" not in text


def test_the_archive_of_the_same_file_has_the_same_bytes(dist: Path) -> None:
    before = (dist / plugins.ARCHIVE).read_bytes()
    (dist / "foresail.pyz").touch()
    assert plugins.archive(dist / "foresail.pyz") == before


@pytest.mark.parametrize("home", ["", "example.com/foresail", "http://example.com/foresail", 'https://a/"\n'])
def test_an_address_that_is_none_is_refused(dist: Path, home: str) -> None:
    with pytest.raises(SystemExit, match="pass the address"):
        plugins.write(dist / "foresail.pyz", home)
