"""Rows as the rules see them, with only what a test is about spelled out."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.marks import OBSERVED
from foresail.cron import Dialect
from foresail.plan import Key
from foresail.schedules.observe import BackupRow, LocationRow, ScheduleRow, ScheduleView, VeleroServer, schedule_row
from foresail.schedules.settings import Settings
from foresail.schedules.slots import backup_name

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
UID = "0f8fad5b-d9cb-469f-a165-70867728950e"
AVAILABLE = LocationRow(Key("velero", "default"), is_default=True, is_read_only=False, phase="Available", message="")
GO_CRON = VeleroServer(Dialect.GOCRON, "v1.18.3")


def schedule(**changed: Any) -> ScheduleRow:  # noqa: ANN401 - any column
    """Return the row of a Schedule that was made yesterday at noon and has not been looked at."""
    row = ScheduleRow(
        key=Key("velero", "daily"),
        uid=UID,
        version="7",
        created=NOON - DAY,
        is_terminating=False,
        labels={},
        annotations={},
        text="0 * * * *",
        template=b"{}",
        location="",
        paused=False,
        skip=None,
        owns_backups=False,
        phase="",
        last_backup=None,
        last_skipped=None,
        errors=(),
    )
    return msgspec.structs.replace(row, **changed)


def watched(row: ScheduleRow, **observed: object) -> ScheduleRow:
    """Return the row as it is after we have looked at it, with what we would remember."""
    previous = {"schedule": row.text, **observed}
    annotations = {**row.annotations, OBSERVED: msgspec.json.encode(previous).decode()}
    return msgspec.structs.replace(row, phase=row.phase or velero.ENABLED, annotations=annotations)


def backup(phase: str = "Completed", slot: datetime | None = None, **changed: Any) -> BackupRow:  # noqa: ANN401 - any column
    """Return the row of a Backup: ours if it has a slot, else one that somebody made by hand."""
    row = BackupRow(
        key=Key("velero", backup_name(schedule(), slot) if slot else "by-hand"),
        schedule="daily",
        schedule_uid=UID if slot else "",
        slot=slot,
        phase=phase,
        created=slot or NOON - HOUR,
        completed=None,
        expires=None,
    )
    return msgspec.structs.replace(row, **changed)


def view(row: ScheduleRow | None = None, *backups: BackupRow, **changed: Any) -> ScheduleView:  # noqa: ANN401 - any part
    """Return what a decision sees, in a cluster where nothing holds a run."""
    found = ScheduleView(row or schedule(), backups, AVAILABLE, GO_CRON, Settings(), skew=timedelta())
    return msgspec.structs.replace(found, **changed)


def wire(spec: object = None, status: object = None, **metadata: object) -> bytes:
    """Return a Schedule as the API server sends it."""
    meta = {"name": "daily", "namespace": "velero", "uid": UID, "creationTimestamp": stamp(NOON - DAY), **metadata}
    return msgspec.json.encode({"metadata": meta, "spec": spec or {}, "status": status or {}})


def read(data: bytes) -> ScheduleRow:
    """Read a Schedule as the reflector does."""
    return schedule_row(msgspec.json.decode(data, type=velero.Schedule))
