"""How a user spells a command of the testbed, so that hints can be pasted."""

import os
import shutil
import sys
from pathlib import Path


def spelled(*words: str) -> str:
    """Return the command line that runs the testbed with these words, with the Python that runs now."""
    return " ".join([_python(), "-m", "testbed", *words])


def _python() -> str:
    name = Path(sys.executable).name
    if shutil.which(name) == sys.executable:
        return name
    beside = os.path.relpath(sys.executable)
    return sys.executable if beside.startswith("..") else beside
