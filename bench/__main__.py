"""Full runs, oracles and measurements by their name: `python -m bench NAME [OPTIONS]`, or `make NAME SIZE=0.1`.

Without a name it lists them; docs/contributing/make-targets.md says what they do. `python -m bench NAME --help` shows
the options of a program; tests that run in full have theirs in the environment.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

TABLE: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("measurements.toml").read_text())


def main(arguments: list[str]) -> int:
    """Run what a name stands for, or list the names."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__, *(f"  {name:24} {entry['time']}" for name, entry in TABLE.items()), sep="\n")
        return 0
    name, *options = arguments
    if name not in TABLE:
        print(f"{name}: no measurement has this name; `python -m bench` lists them", file=sys.stderr)
        return 2
    entry = TABLE[name]
    environment = os.environ | in_environment(entry, options)
    for command in commands(entry, options):
        if code := subprocess.run([sys.executable, "-m", *command], env=environment, check=False).returncode:
            return code
    return 0


def commands(entry: dict[str, Any], options: list[str]) -> list[list[str]]:
    """Return what Python runs, one after the other: the build of what is needed, then programs and tests."""
    builds = [["testbed", "build", *entry["needs"]]] if "needs" in entry else []
    runs = [run.split() for run in entry["runs"]]
    return builds + [["pytest", "-s", *run] if run[0].startswith("tests/") else [*run, *options] for run in runs]


def in_environment(entry: dict[str, Any], options: list[str]) -> dict[str, str]:
    """Return the options as tests have them: `--kills 20` is FORESAIL_KILLS=20."""
    given = {name.removeprefix("--"): value for name, value in zip(options[::2], options[1::2], strict=False)}
    chosen = entry.get("options", {}) | given
    return {"FORESAIL_FULL": "1"} | {f"FORESAIL_{name.upper()}": value for name, value in chosen.items()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
