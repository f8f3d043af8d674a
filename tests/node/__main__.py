"""The tests on a real node, with their figures as one JSON object on the last line: `python -m tests.node`.

With --only-if-built, nothing is built: what is missing leaves the tests out. Other arguments are pytest's.
"""

import json
import sys
from pathlib import Path

import pytest

from testbed.__main__ import main as testbed
from testbed.build import cached_folder, component_named
from testbed.cluster import components_of
from testbed.errors import TestbedError
from testbed.node import images, needs
from tests.node.figures import FOUND
from tests.node.nodes import OPTIONS

ONLY_IF_BUILT = "--only-if-built"


def main(arguments: list[str]) -> int:
    """Run the tests, or say which are left out and why."""
    here = Path(__file__).parent
    if lacks := needs.missing():
        leave_out(here, f"this machine lacks {', '.join(lacks)}")
        print(f"as root, install the packages: {needs.install_command()}")
        return 0
    if ONLY_IF_BUILT in arguments and (unbuilt := not_built()):
        leave_out(here, f"not built yet: {', '.join(unbuilt)}")
        print("build them: python -m testbed build --node")
        return 0
    try:
        images.build_base(say)
        images.build_postgres(say)
    except TestbedError as error:
        leave_out(here, f"no image can be made of Debian's packages: {error.problem}")
        return 0
    if code := testbed(["build", "--node"]):
        return code
    words = [each for each in arguments if each != ONLY_IF_BUILT]
    code = int(pytest.main([str(here), "--timeout=900", "--durations=10", *words]))
    print(json.dumps(FOUND))
    return code


def say(line: str) -> None:
    """Print a line of progress."""
    print(line, file=sys.stderr, flush=True)


def leave_out(folder: Path, why: str) -> None:
    """Name every file of tests that does not run, and why."""
    for file in sorted(folder.glob("test_*.py")):
        print(f"NOT TESTED: {file.relative_to(folder.parent.parent)}: {why}")


def not_built() -> list[str]:
    """Return what of a real node has not been built."""
    folders = [cached_folder(component_named(name)) for name in components_of(OPTIONS)]
    folders += [images.registry_folder(), images.base_folder(), images.postgres_folder()]
    return [each.name.rpartition("-")[0] for each in folders if not each.exists()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
