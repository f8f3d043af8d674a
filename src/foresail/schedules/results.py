"""How the runs of a Schedule went."""

from datetime import datetime

from foresail.backups import good_backups, in_order
from foresail.schedules.observe import BackupRow, ScheduleView

RESULTS = ("Completed", "PartiallyFailed", "Failed", "FailedValidation")
"""The phases of a run that has ended."""


def last_ended(view: ScheduleView) -> BackupRow | None:
    """Return the newest Backup of a Schedule that has ended, among those of this cluster."""
    ended = [backup for backup in view.backups if backup.phase in RESULTS and backup.is_run_of(view.schedule)]
    return max(ended, key=lambda row: (row.slot or row.created, row.key), default=None)


def good_since(view: ScheduleView) -> datetime:
    """Return when the newest good Backup of this cluster started; without one, when the Schedule was created."""
    # One that came from a bucket is older than its object.
    good = [min(row.created, row.completed or row.created) for row in _good(view)]
    return max(good, default=view.schedule.created)


def last_success(view: ScheduleView) -> datetime | None:
    """Return when the newest good Backup of this cluster was complete; None without one."""
    return max((row.completed for row in _good(view) if row.completed is not None), default=None)


def _good(view: ScheduleView) -> list[BackupRow]:
    return good_backups(in_order(row for row in view.backups if row.is_run_of(view.schedule)))
