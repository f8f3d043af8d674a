"""The `--help` of every command, as a terminal of 80 columns shows it: the snapshots that a test compares."""

import os
from pathlib import Path

from foresail.cli.main import parser

FOLDER = Path(__file__).parents[2] / "tests" / "unit" / "cli" / "help"
_COLUMNS = "80"


def texts() -> dict[str, str]:
    """Return the help of each command, by the name of its file."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = _COLUMNS
    try:
        return {f"{words.replace(' ', '-')}.txt": one.format_help() for words, one in parser().commands()}
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def write(folder: Path = FOLDER) -> None:
    """Write the snapshots, and delete those of commands that no longer exist."""
    folder.mkdir(parents=True, exist_ok=True)
    found = texts()
    for old in folder.glob("*.txt"):
        if old.name not in found:
            old.unlink()
    for name, text in found.items():
        (folder / name).write_text(text)
