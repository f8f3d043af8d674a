"""The status of a NonAdminSchedule: its conditions, its last runs, and what later decisions depend on."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from foresail.api.instants import stamp
from foresail.api.nonadmin import RecentBackup
from foresail.reporting import merge_patch
from foresail.selfservice.requests.status import NewCondition, with_condition
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.schedules import ScheduleStatus
from foresail.selfservice.rows.velero import glimpse

READY = "Ready"
RETAINING = "RetentionReady"
"""Whether old runs are deleted as the policy says; there once something has blocked it."""

RECENT = 5  # runs in status.recentBackups

_encoder = msgspec.json.Encoder(order="deterministic")


def with_conditions(
    status: ScheduleStatus, wanted: Iterable[NewCondition], generation: int, now: datetime
) -> ScheduleStatus:
    """Return the status with these conditions; a transition time changes only with its status."""
    conditions = status.conditions
    for condition in wanted:
        conditions = with_condition(conditions, condition, generation, now)
    return msgspec.structs.replace(status, conditions=conditions)


def recent_backups(backups: Iterable[RequestRow]) -> tuple[RecentBackup, ...]:
    """Return the newest runs as the status shows them."""
    newest = sorted(backups, key=lambda backup: (backup.slot or backup.created, backup.key), reverse=True)[:RECENT]
    return tuple(map(_recent, newest))


def _recent(backup: RequestRow) -> RecentBackup:
    reported = glimpse(backup.status.velero.mirror)
    return RecentBackup(
        name=backup.key.name,
        velero_backup_name=backup.status.velero.name,
        phase=reported.phase or backup.status.phase or "New",
        start_timestamp=_shown(reported.start_timestamp),
        completion_timestamp=_shown(reported.completion_timestamp),
        expiration=_shown(reported.expiration),
    )


def _shown(moment: datetime | None) -> str:
    return stamp(moment) if moment is not None else ""


def patch_body(before: ScheduleStatus, after: ScheduleStatus) -> dict[str, object]:
    """Return the merge patch of the status that leads from one to the other; empty if nothing differs."""
    return merge_patch(_wire(before), _wire(after)) if before != after else {}


def _wire(status: ScheduleStatus) -> dict[str, Any]:
    body: dict[str, Any] = {
        "phase": status.phase,
        "conditions": [msgspec.to_builtins(condition) for condition in status.conditions],
        "nextRun": status.next_run,
        "lastBackup": status.last_backup,
        "lastSkipped": status.last_skipped,
        "recentBackups": [msgspec.to_builtins(backup) for backup in status.recent],
    }
    if status.observed is not None:
        body["observed"] = {"record": _encoder.encode(status.observed).decode(), "clearing": status.clearing}
    return {name: value for name, value in body.items() if value}
