"""The tests on a real node, with their figures as one JSON object on the last line: `python -m tests.node`."""

import json
import sys
from pathlib import Path

import pytest

from testbed.node import needs
from tests.node.figures import FOUND


def main() -> int:
    """Run the tests, or say which are left out and why."""
    here, lacks = Path(__file__).parent, needs.missing()
    if lacks:
        for file in sorted(here.glob("test_*.py")):
            print(f"NOT TESTED: {file.relative_to(here.parent.parent)}: this machine lacks {', '.join(lacks)}")
        print(f"as root, install the packages: {needs.install_command()}")
        return 0
    code = pytest.main([str(here), "--timeout=600", "--durations=10", *sys.argv[1:]])
    print(json.dumps(FOUND))
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
