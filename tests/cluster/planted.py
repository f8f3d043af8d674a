"""The `foresail` command with a guard broken by hand: `python -m tests.cluster.planted GUARD operator run ...`."""

import sys

from foresail.cli.main import main
from tests.worlds.perturb_faults import planted

if __name__ == "__main__":
    with planted(sys.argv.pop(1)):
        sys.exit(main())
