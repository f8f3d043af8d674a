"""How much of its quota each namespace uses."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from foresail.api import velero
from foresail.selfservice.families import Family


class Use(msgspec.Struct, frozen=True):
    """How many requests of a kind a namespace has, and how many of them Velero has not finished."""

    stored: int = 0
    active: int = 0
    oldest: datetime | None = None  # when Velero started the first and the last of those that it has
    newest: datetime | None = None


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    annotations: dict[str, str] | None = None


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    start_timestamp: datetime | None = None


class VeleroObject(msgspec.Struct, frozen=True):
    """A Velero Backup or Restore of a tenant."""

    metadata: _Metadata = _Metadata()
    status: _Status = _Status()


def use_by_namespace(
    family: Family, made: Iterable[VeleroObject], requests: Iterable[Mapping[str, Any]]
) -> dict[str, Use]:
    """Return the use of each namespace: what Velero has, and what was accepted and Velero does not have yet."""
    is_active: dict[str, dict[str, bool]] = {}
    started: dict[str, list[datetime]] = {}
    for each in made:
        namespace = (each.metadata.annotations or {}).get(family.origin_namespace, "")
        is_active.setdefault(namespace, {})[each.metadata.name] = each.status.phase not in velero.TERMINAL
        if each.status.start_timestamp is not None:
            started.setdefault(namespace, []).append(each.status.start_timestamp)
    for request in requests:
        status = request.get("status") or {}
        name = (status.get(family.reference) or {}).get("nacuuid", "")
        if name and not (status.get(family.reference) or {}).get("name"):
            is_active.setdefault(request["metadata"]["namespace"], {}).setdefault(name, True)
    return {
        namespace: Use(
            len(found),
            sum(found.values()),
            min(started.get(namespace, ()), default=None),
            max(started.get(namespace, ()), default=None),
        )
        for namespace, found in is_active.items()
    }
