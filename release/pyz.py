"""Builds foresail.pyz, one file for every Python and system below: `python -m release.pyz WHEEL FILE`.

It is an archive as zipapp writes it, with one zip of what all targets share and one of what each target needs alone.
zipapp itself keeps the times, modes and order of files, and these differ from build to build.
"""

import hashlib
import io
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
START = Path(__file__).with_name("pyz_start.py")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SYSTEMS = {  # as sys.platform and uname call them, and as uv does
    "linux-x86_64": "x86_64-manylinux_2_28",
    "linux-aarch64": "aarch64-manylinux_2_28",
    "darwin-x86_64": "x86_64-apple-darwin",
    "darwin-arm64": "aarch64-apple-darwin",
}
_ABOUT_THE_INSTALLATION = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json"}
_BEGINNING = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip can hold
_FILE, _PROGRAM = 0o100644, 0o100755

Files = Mapping[str, bytes]  # contents by path


def targets() -> dict[str, tuple[str, str]]:
    """Return each target by the name that pyz_start.py gives it, with Python and system as uv takes them."""
    return {
        f"cp{python.replace('.', '')}-{name}": (python, system)
        for python in PYTHONS
        for name, system in SYSTEMS.items()
    }


def install(wheel: Path, folder: Path, python: str, system: str) -> None:
    """Install the pinned packages and our wheel for a Python and a system, which need not be those of this machine."""
    uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", "--target", str(folder), "--no-deps"]
    uv += ["--python-version", python, "--python-platform", system, "--only-binary", ":all:", "--link-mode", "copy"]
    subprocess.run([*uv, "--require-hashes", "--requirement", "requirements/run.txt"], cwd=ROOT, check=True)
    subprocess.run([*uv, str(wheel)], check=True)


def files_of(folder: Path) -> dict[str, bytes]:
    """Return what packages consist of, without scripts and without what only concerns this installation."""
    found = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    return {
        name.as_posix(): path.read_bytes()
        for name, path in found.items()
        if len(name.parts) > 1 or name.suffix == ".py"
        if name.parts[0] != "bin" and name.name not in _ABOUT_THE_INSTALLATION and "__pycache__" not in name.parts
    }


def shared(all_files: Mapping[str, Files]) -> dict[str, bytes]:
    """Return the files that every target has with the same content."""
    first, *others = all_files.values()
    return {name: content for name, content in first.items() if all(each.get(name) == content for each in others)}


def zipped(files: Files) -> bytes:
    """Return an archive whose bytes depend on names and contents only."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in sorted(files.items()):
            _add(archive, name, content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _add(archive: zipfile.ZipFile, name: str, content: bytes, compression: int) -> None:
    about = zipfile.ZipInfo(name, date_time=_BEGINNING)
    about.create_system, about.external_attr, about.compress_type = 3, _FILE << 16, compression
    archive.writestr(about, content)


def start(parts: Mapping[str, bytes]) -> str:
    """Return pyz_start.py with the checksum of the parts and the targets."""
    checksum = hashlib.sha256(b"".join(hashlib.sha256(content).digest() for _, content in sorted(parts.items())))
    text = START.read_text()
    for before, after in {
        'BUILD = ""': f'BUILD = "{checksum.hexdigest()[:16]}"',
        'TARGETS: "list[str]" = []': f"TARGETS = {sorted(set(parts) - {'common'})}",
    }.items():
        if text.count(before) != 1:
            raise ValueError(f"{START} has no line {before!r}: adapt release/pyz.py")
        text = text.replace(before, after)
    return text


def write(file: Path, all_files: Mapping[str, Files]) -> None:
    """Write the one file from the files of each target."""
    common = shared(all_files)
    parts = {"common": zipped(common)}
    for name, files in all_files.items():
        parts[name] = zipped({path: content for path, content in files.items() if path not in common})
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as out:
        out.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(out, "w") as archive:
            _add(archive, "__main__.py", start(parts).encode(), zipfile.ZIP_DEFLATED)
            for name, content in sorted(parts.items()):
                _add(archive, f"{name}.zip", content, zipfile.ZIP_STORED)
    file.chmod(_PROGRAM & 0o777)


def main() -> None:
    """Build the file."""
    wheel, file = (Path(each).absolute() for each in sys.argv[1:])
    below = ROOT / "build" / "pyz"
    shutil.rmtree(below, ignore_errors=True)
    for name, (python, system) in targets().items():
        install(wheel, below / name, python, system)
    write(file, {name: files_of(below / name) for name in targets()})
    sys.stdout.write(f"{file}: {file.stat().st_size / 1e6:.1f} MB for {', '.join(targets())}\n")


if __name__ == "__main__":
    main()
