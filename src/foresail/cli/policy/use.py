"""How much of its quota each namespace uses."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.marks import NAMESPACE_UID
from foresail.api.policy import Quotas
from foresail.selfservice.families import Family
from foresail.selfservice.policy.quotas import counted

Shares = dict[str, tuple[int | None, int | None]]
"""Each quota by its field in the policy: the use (None: unknown) and the limit (None: no limit)."""


class Use(msgspec.Struct, frozen=True):
    """How many requests of a kind a namespace has, and how many of them Velero has not finished."""

    stored: int = 0
    active: int = 0
    expired: int = 0  # of those that have ended
    oldest: datetime | None = None  # when Velero started the first and the last of those that it has
    newest: datetime | None = None
    is_by_requests: bool = False  # counted from the tenant's requests, not from Velero's objects


Uses = Mapping[str, Use]
"""The use of each namespace, by its name."""


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    annotations: dict[str, str] | None = None


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    start_timestamp: datetime | None = None
    expiration: datetime | None = None


class VeleroObject(msgspec.Struct, frozen=True):
    """A Velero Backup or Restore of a tenant."""

    metadata: _Metadata = _Metadata()
    status: _Status = _Status()


def mirrored(family: Family, requests: Iterable[Mapping[str, Any]]) -> list[VeleroObject]:
    """Return Velero's objects as the status of a tenant's requests mirrors them."""
    velero_objects = []
    for request in requests:
        mirror = (request.get("status") or {}).get(family.reference) or {}
        if mirror.get("name"):
            content = {"metadata": {"name": mirror["name"]}, "status": mirror.get("status") or {}}
            velero_objects.append(msgspec.convert(content, VeleroObject))
    return velero_objects


def use_by_namespace(
    family: Family,
    made: Iterable[VeleroObject],
    requests: Iterable[Mapping[str, Any]],
    uids: Mapping[str, str],
    at: datetime,
) -> dict[str, Use]:
    """Return the use of each namespace; by its UID, for an earlier one of the same name had its own quota."""
    made_by_uid: dict[str, list[VeleroObject]] = {}
    for velero_object in made:
        made_by_uid.setdefault((velero_object.metadata.annotations or {}).get(NAMESPACE_UID, ""), []).append(
            velero_object
        )
    requests_by_name: dict[str, list[Mapping[str, Any]]] = {}
    for request in requests:
        requests_by_name.setdefault(request["metadata"]["namespace"], []).append(request)
    return {
        name: use_of(family, made_by_uid.get(uid, ()), requests_by_name.get(name, ()), at) for name, uid in uids.items()
    }


def use_of(family: Family, made: Iterable[VeleroObject], requests: Iterable[Mapping[str, Any]], at: datetime) -> Use:
    """Return the use of one namespace: what Velero has, and what was accepted and Velero does not have yet."""
    objects = {velero_object.metadata.name: velero_object.status for velero_object in made}
    is_active = {name: each.phase not in velero.TERMINAL for name, each in objects.items()}
    for request in requests:
        reference = (request.get("status") or {}).get(family.reference) or {}
        if reference.get("nacuuid") and not reference.get("name"):
            is_active.setdefault(reference["nacuuid"], True)
    expirations = (each.expiration for name, each in objects.items() if not is_active[name])
    started = [status.start_timestamp for status in objects.values() if status.start_timestamp is not None]
    return Use(
        len(is_active),
        sum(is_active.values()),
        sum(expiration is not None and expiration <= at for expiration in expirations),
        min(started, default=None),
        max(started, default=None),
    )


def shares_of(quotas: Quotas, backups: Use | None, restores: Use | None) -> Shares:
    """Return the use of each quota as the operator counts it."""
    return {
        "stored": (
            None if backups is None else counted(backups.stored, backups.expired, quotas.stored),
            quotas.stored,
        ),
        "active": (None if backups is None else backups.active, quotas.active),
        "restores.stored": (None if restores is None else restores.stored, quotas.restores.stored),
        "restores.active": (None if restores is None else restores.active, quotas.restores.active),
    }


def share(used: int | None, quota: int | None) -> str:
    """Return the use of a quota in words."""
    shown = "unknown" if used is None else str(used)
    return shown if quota is None else f"{shown} of {quota}"
