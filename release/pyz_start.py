"""Starts Foresail from one file. It becomes `__main__.py` of foresail.pyz, and its syntax is that of Python 3.6.

Extension modules cannot be imported from an archive, so the first start unpacks what this Python needs into the user's
cache. Later starts read nothing of the archive but this file.
"""

import os
import sys

BUILD = ""  # the checksum of what is in the archive
TARGETS: "list[str]" = []  # the Pythons and systems that it has packages for


def target() -> str:
    """Return the name of this Python and its system, as `cp311-linux-x86_64`."""
    python = "cp" if sys.implementation.name == "cpython" else sys.implementation.name
    version = f"{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
    musl = "-musl" if "musl" in getattr(sys.implementation, "_multiarch", "") else ""
    return f"{python}{version}-{sys.platform}{musl}-{os.uname().machine}"


def newer_python() -> "str | None":
    """Return another Python on the PATH that can run Foresail, the newest first."""
    for name in sorted({f"python{each[2]}.{each[3:].partition('-')[0]}" for each in TARGETS}, reverse=True):
        for folder in os.environ.get("PATH", "").split(os.pathsep):
            found = os.path.join(folder, name)  # noqa: PTH118 - pathlib takes longer to import than all of this
            if name != f"python{sys.version_info[0]}.{sys.version_info[1]}" and os.access(found, os.X_OK):
                return found
    return None


def cache() -> str:
    """Return the user's cache folder for Foresail."""
    above = os.environ.get("XDG_CACHE_HOME", "")
    if not above.startswith("/"):
        above = os.path.expanduser("~/.cache")  # noqa: PTH111
    return f"{above}/foresail/pyz"


def unpacked(archive: str, name: str) -> str:
    """Return the folder with the packages for this Python, which the first start fills."""
    folder = f"{cache()}/{BUILD}-{name}"
    if not os.path.isdir(folder):  # noqa: PTH112
        return unpack(archive, name, folder)
    return folder


def unpack(archive: str, name: str, folder: str) -> str:
    """Fill the folder at once: whoever starts at the same time sees all of it or nothing."""
    import atexit  # noqa: PLC0415 - only the first start needs these
    import io  # noqa: PLC0415
    import shutil  # noqa: PLC0415
    import tempfile  # noqa: PLC0415
    import zipfile  # noqa: PLC0415

    try:
        os.makedirs(cache(), mode=0o700, exist_ok=True)  # noqa: PTH103
        filling = tempfile.mkdtemp(prefix="unpacking-", dir=cache())
        is_kept = True
    except OSError as error:  # a home that is read-only, or none
        filling, is_kept = tempfile.mkdtemp(prefix="foresail-"), False
        atexit.register(shutil.rmtree, filling, ignore_errors=True)
        sys.stderr.write(f"warning: no cache: {error}; every start is slow\nhint: set XDG_CACHE_HOME to a folder\n")
    try:
        with zipfile.ZipFile(archive) as outer:
            for part in ("common", name):
                with zipfile.ZipFile(io.BytesIO(outer.read(f"{part}.zip"))) as inner:
                    inner.extractall(filling)
        if not is_kept:
            return filling
        os.rename(filling, folder)  # noqa: PTH104
    except OSError:
        shutil.rmtree(filling, ignore_errors=True)
        if not os.path.isdir(folder):  # noqa: PTH112 - or another start was faster
            raise
    return folder


def start() -> None:
    """Import the command line from the cache and run it."""
    name = target()
    if name not in TARGETS:
        other = newer_python()
        if other and not os.environ.get("FORESAIL_PYZ_TRIED"):
            os.environ["FORESAIL_PYZ_TRIED"] = "1"  # that one may be of another system, and must not go on searching
            os.execv(other, [other, *sys.argv])  # noqa: S606 - a Python of the user's PATH
        sys.exit(
            f"error: foresail.pyz has no packages for {name}\n"
            f"hint: use one of {', '.join(TARGETS)}, or install Foresail's wheel with pip"
        )
    os.environ.pop("FORESAIL_PYZ_TRIED", None)
    sys.path[0] = unpacked(sys.path[0], name)
    from foresail.cli.main import main  # noqa: PLC0415 - there since the line above

    sys.exit(main())


if __name__ == "__main__":
    start()
