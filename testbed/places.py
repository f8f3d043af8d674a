"""Where the testbed keeps things: built programs in the user's cache folder, clusters in the state folder."""

import os
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODULES = HERE / "modules"
MANIFESTS = HERE / "manifests"


def _base(variable: str, default: str) -> Path:
    chosen = os.environ.get(variable)
    return (Path(chosen) if chosen else Path.home() / default) / "foresail" / "testbed"


def programs_folder() -> Path:
    """Return the folder that holds one subfolder for each built component."""
    return _base("XDG_CACHE_HOME", ".cache")


def clusters_folder() -> Path:
    """Return the folder that holds one subfolder for each cluster."""
    return _base("XDG_STATE_HOME", ".local/state")
