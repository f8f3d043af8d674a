"""How the runs of a schedule went: what is wrong with the last one."""

from collections.abc import Sequence

from foresail.api.velero import COMPLETED
from foresail.backups import has_shrunk
from foresail.proof.observe import BackupRow
from foresail.proof.reasons import Gap, Reason


def last_run_gaps(title: str, runs: Sequence[BackupRow]) -> list[Gap]:
    """Return what is wrong with the last runs of a schedule, given all that have ended, oldest first."""
    if not runs:
        return []
    last = runs[-1]
    gaps = []
    streak = 0
    for run in reversed(runs):
        if run.phase == COMPLETED:
            break
        streak += 1
    if streak:
        text = f"the last {streak} of {len(runs)} runs of {title} did not complete; {last.name} is {last.phase}"
        gaps.append(Gap(Reason.PARTIAL_RUNS, text, title, last.name))
    if last.items == 0:
        text = f"the last run of {title}, {last.name}, backed up no object"
        gaps.append(Gap(Reason.EMPTY, text, title, last.name))
    elif len(runs) > 1 and has_shrunk(runs[-2], last):
        text = f"the last run of {title}, {last.name}, has {last.items} objects; the one before it had {runs[-2].items}"
        gaps.append(Gap(Reason.SHRUNK, text, title, last.name))
    return gaps
