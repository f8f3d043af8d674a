"""What a good backup is: the one definition for retention, coverage, metrics, checks and self-service.

A backup is good if it is Completed, has objects, and has not shrunk against the run before it. Two small runs in a
row are the new normal. A backup is restorable if it is Completed or PartiallyFailed.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import Enum
from typing import Protocol, TypeVar

from foresail.api.velero import COMPLETED, FAILED, FAILED_VALIDATION, PARTIALLY_FAILED, RESTORABLE

FAILED_PHASES = frozenset({PARTIALLY_FAILED, FAILED, FAILED_VALIDATION})
ENDED = FAILED_PHASES | {COMPLETED}
SHRINKS_TO = 0.1
"""A backup with at most this part of the objects of the one before it is not good."""


class Run(Protocol):
    """A backup, as far as its quality is concerned."""

    @property
    def name(self) -> str:
        """The name, unique among the runs that are compared."""

    @property
    def phase(self) -> str:
        """Velero's phase."""

    @property
    def started(self) -> datetime | None:
        """When it began."""

    @property
    def items(self) -> int | None:
        """How many objects it has; None if that is unknown."""

    @property
    def selection(self) -> object:
        """What it was asked to contain: fewer objects of another selection are no loss."""


class Quality(Enum):
    """What a backup is worth."""

    GOOD = "good"
    PARTIAL = "partially failed"
    EMPTY = "empty"
    SHRUNK = "shrunk"
    FAILED = "failed"
    UNFINISHED = "unfinished"


AnyRun = TypeVar("AnyRun", bound=Run)


def in_order(runs: Iterable[AnyRun]) -> list[AnyRun]:
    """Return the runs that have ended, oldest first."""
    ended = [run for run in runs if run.phase in ENDED and run.started is not None]
    return sorted(ended, key=lambda run: (run.started or 0, run.name))


def good_backups(runs: Sequence[AnyRun]) -> list[AnyRun]:
    """Return the good ones of the runs of one schedule or namespace, given and returned oldest first."""
    qualities = judge(runs)
    return [run for run in runs if qualities[run.name] is Quality.GOOD]


def judge(runs: Iterable[Run]) -> dict[str, Quality]:
    """Return the quality of each run of one schedule or namespace, given oldest first."""
    qualities: dict[str, Quality] = {}
    before: Run | None = None
    for run in runs:
        qualities[run.name] = _quality(run, before)
        before = run if run.items and is_restorable(run.phase) else before
    return qualities


def _quality(run: Run, before: Run | None) -> Quality:
    if run.phase not in ENDED:
        return Quality.UNFINISHED
    if not is_restorable(run.phase):
        return Quality.FAILED
    if run.items == 0:
        return Quality.EMPTY
    if before is not None and has_shrunk(before, run):
        return Quality.SHRUNK
    return Quality.GOOD if run.phase == COMPLETED else Quality.PARTIAL


def is_restorable(phase: str) -> bool:
    """Whether Velero can restore from a backup in this phase, if only a part."""
    return phase in RESTORABLE


def has_expired(expires: datetime | None, now: datetime) -> bool:
    """Whether a backup has expired: Velero may delete its data at any moment, so it replaces no other one."""
    return expires is not None and expires <= now


def has_shrunk(earlier: Run, later: Run) -> bool:
    """Whether a run has at least 90 % fewer objects than an earlier one with the same selection."""
    if not earlier.items or later.items is None or later.items > earlier.items * SHRINKS_TO:
        return False
    return later.selection == earlier.selection
