"""Schedules, Backups and what surrounds them, made up for tests of what is pure in the command line."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from foresail.cli.schedule.snapshot import EvaluatedSchedule, NamespaceSnapshot, backups_by_schedule, evaluate, row_of
from foresail.cron import Dialect
from foresail.plan import Key
from foresail.schedules.observe import BackupRow, LocationRow, VeleroServer
from foresail.schedules.settings import Settings
from foresail.slots.policy_timing import PolicyRow

NOW = datetime(2026, 11, 15, 12, 0, 30, tzinfo=UTC)
UID = "0123abcd-1111-2222-3333-444455556666"
LOCATION = LocationRow(Key("velero", "default"), is_default=True, is_read_only=False, phase="Available", message="")


def at(text: str) -> datetime:
    """Return an instant of the day of NOW, or of another."""
    return datetime.fromisoformat(text if "T" in text else f"2026-11-15T{text}").replace(tzinfo=UTC)


def schedule_wire(text: str = "0 3 * * *", name: str = "daily", **given: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return a Schedule as the API server sends it; `metadata`, `spec` and `status` add to what it has."""
    metadata = {"name": name, "namespace": "velero", "uid": UID, "resourceVersion": "7"}
    return {
        "apiVersion": "velero.io/v1",
        "kind": "Schedule",
        "metadata": {**metadata, "creationTimestamp": "2026-11-14T10:00:00Z", **given.get("metadata", {})},
        "spec": {"schedule": text, "template": {"includedNamespaces": ["*"]}, **given.get("spec", {})},
        "status": {"phase": "Enabled", "lastBackup": "2026-11-15T03:00:00Z", **given.get("status", {})},
    }


def backup(name: str, phase: str = "Completed", **given: Any) -> BackupRow:  # noqa: ANN401 - fields of the row
    """Return a Backup of the Schedule `daily`."""
    fields = {
        "key": Key("velero", name),
        "schedule": "daily",
        "schedule_uid": UID,
        "slot": at("03:00:00"),
        "phase": phase,
        "created": at("03:00:00"),
        "completed": at("03:01:10") if phase == "Completed" else None,
        "expires": None,
    }
    return BackupRow(**{**fields, **given})


def seen(
    wire: dict[str, Any],
    backups: Iterable[BackupRow] = (),
    *,
    server: VeleroServer | None = None,
    locations: Iterable[LocationRow] = (LOCATION,),
    operator: str = "foresail-0",
    policies: tuple[PolicyRow, ...] = (),
    now: datetime = NOW,
) -> EvaluatedSchedule:
    """Return a Schedule with what the rules say about it in these surroundings."""
    known = NamespaceSnapshot(
        server=server or VeleroServer(Dialect.GOCRON, "v1.18.3"),
        backups=backups_by_schedule(backups),
        locations=tuple(locations),
        operator=operator,
        settings=Settings(),
        policies=policies,
    )
    return evaluate(row_of(msgspec.Raw(msgspec.json.encode(wire))), wire, known, now)
