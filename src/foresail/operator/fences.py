"""The fences of all ServiceAccounts, rendered into the chart.

`python -m foresail.operator.fences FOLDER` writes them, one file for each.
"""

import sys
from dataclasses import replace
from pathlib import Path

from foresail.api.fence import Fence, rendered
from foresail.primers import fence as primers
from foresail.proof.checks import fence as checks
from foresail.protection import fence as protection
from foresail.rollback import fence as rollback
from foresail.schedules import fence as schedules
from foresail.selfservice import fence as selfservice

SELF_SERVICE = replace(selfservice.FENCE, rules=(*selfservice.FENCE.rules, schedules.STATUS_REQUEST))
"""Self-service follows the Schedules too, and so asks for Velero's version."""

FENCES: tuple[Fence, ...] = (
    schedules.FENCE,
    SELF_SERVICE,
    primers.FENCE,
    checks.FENCE,
    protection.FENCE,
    rollback.FENCE,
)


def files() -> dict[str, str]:
    """Return the templates by the names of their files."""
    return {f"fence-{fence.name.removeprefix('foresail-')}.yaml": rendered(fence) for fence in FENCES}


def main(folder: Path) -> None:
    """Write the templates into the folder of a chart."""
    for name, text in files().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
