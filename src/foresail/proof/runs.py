"""How the runs of a schedule went: which backups are good, and what is wrong with the last one."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from foresail.api.velero import COMPLETED, FAILED, FAILED_VALIDATION, PARTIALLY_FAILED
from foresail.proof.observe import BackupRow
from foresail.proof.reasons import Gap, Reason

FAILED_PHASES = frozenset({PARTIALLY_FAILED, FAILED, FAILED_VALIDATION})
ENDED = FAILED_PHASES | {COMPLETED}
SHRINKS_TO = 0.1
"""A backup with at most this part of the objects of the one before it is not good."""


def in_order(backups: Iterable[BackupRow]) -> list[BackupRow]:
    """Return the runs that have ended, oldest first."""
    ended = [each for each in backups if each.phase in ENDED and each.started is not None]
    return sorted(ended, key=lambda each: (each.started or 0, each.name))


def good_backups(runs: Sequence[BackupRow]) -> list[BackupRow]:
    """Return the runs that completed with objects and did not shrink, oldest first."""
    shrunk = {later.name for earlier, later in pairwise(runs) if has_shrunk(earlier, later)}
    return [each for each in runs if each.phase == COMPLETED and each.items != 0 and each.name not in shrunk]


def has_shrunk(earlier: BackupRow, later: BackupRow) -> bool:
    """Whether a run has at least 90 % fewer objects than the one before it, with the same spec."""
    if not earlier.items or later.items is None or later.items > earlier.items * SHRINKS_TO:
        return False
    return later.spec == earlier.spec


def last_run_gaps(title: str, runs: Sequence[BackupRow]) -> list[Gap]:
    """Return what is wrong with the last runs of a schedule, given all that have ended, oldest first."""
    if not runs:
        return []
    last = runs[-1]
    found = []
    streak = 0
    for each in reversed(runs):
        if each.phase == COMPLETED:
            break
        streak += 1
    if streak:
        text = f"the last {streak} of {len(runs)} runs of {title} did not complete; {last.name} is {last.phase}"
        found.append(Gap(Reason.PARTIAL_RUNS, text, title, last.name))
    if last.items == 0:
        text = f"the last run of {title}, {last.name}, backed up no object"
        found.append(Gap(Reason.EMPTY, text, title, last.name))
    elif len(runs) > 1 and has_shrunk(runs[-2], last):
        text = f"the last run of {title}, {last.name}, has {last.items} objects; the one before it had {runs[-2].items}"
        found.append(Gap(Reason.SHRUNK, text, title, last.name))
    return found
