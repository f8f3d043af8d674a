"""The `foresail` command with a clock that is behind: `python -m tests.cluster.late_clock SECONDS operator run ...`."""

import sys
from datetime import datetime, timedelta

from foresail.kube import clock


def main() -> None:
    """Set the clock back before any other module takes it, then run the command."""
    behind, right = timedelta(seconds=float(sys.argv.pop(1))), clock.now

    def late() -> datetime:
        return right() - behind

    clock.now = late
    from foresail.cli.main import main as run  # noqa: PLC0415 - after the clock was set

    sys.exit(run())


if __name__ == "__main__":
    main()
