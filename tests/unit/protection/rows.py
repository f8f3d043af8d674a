"""Rows for tests of protection."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from foresail.api.protection import ProtectionClassSpec
from foresail.plan import Key
from foresail.protection.rows import BackupRow, ClassRow, NamespaceRow, ScheduleRow
from foresail.protection.view import Classes

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def namespace(name: str = "shop", asked: str = "gold", **fields: Any) -> NamespaceRow:  # noqa: ANN401 - any field
    return NamespaceRow(**{"key": Key("", name), "uid": f"uid-{name}", "created": NOON, "asked": asked, **fields})


def protection_class(name: str = "gold", **spec: object) -> ClassRow:
    body = {"schedule": "0 1 * * *", **spec}
    return ClassRow(Key("", name), f"uid-{name}", 1, msgspec.convert(body, ProtectionClassSpec))


def classes(*found: ClassRow, **fields: Any) -> Classes:  # noqa: ANN401 - any field
    return Classes({row.name: row for row in found}, **fields)


def schedule(name: str = "gold-1", *members: str, of: str = "gold", **fields: Any) -> ScheduleRow:  # noqa: ANN401
    template = msgspec.json.encode({"includedNamespaces": list(members)})
    known = {
        "key": Key("velero", name),
        "uid": f"uid-{name}",
        "version": "7",
        "protection_class": of,
        "created": NOON,
        "labels": {"foresail.dev/protection-class": of},
        "text": "0 1 * * *",
        "template": template,
        "members": members,
        "phase": "Enabled",
    }
    return ScheduleRow(**{**known, **fields})


def backup(of: str, at: datetime, *members: str, **fields: Any) -> BackupRow:  # noqa: ANN401 - any field
    known = {
        "key": Key("velero", f"{of}-{at:%Y%m%d%H%M%S}"),
        "uid": f"uid-{of}-{at:%Y%m%d%H%M%S}",
        "schedule": of,
        "schedule_uid": f"uid-{of}",
        "protection_class": of.rpartition("-")[0],
        "uids": {name: f"uid-{name}" for name in members},
        "phase": "Completed",
        "started": at,
        "slot": at,
        "items": 10,
    }
    return BackupRow(**{**known, **fields})
