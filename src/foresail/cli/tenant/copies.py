"""The backups of a namespace that can be restored now, as far as their status shows it; the operator decides."""

from collections.abc import Iterable
from datetime import datetime

from foresail.api.instants import instant
from foresail.api.velero import RESTORABLE
from foresail.cli.tenant.tenant_request import TenantRequest


def is_restorable(each: TenantRequest, at: datetime) -> bool:
    """Whether Velero has finished a backup, nobody deletes it, and it has not expired."""
    expires = instant(each.velero.expiration) if each.velero.expiration else None
    is_kept = not each.is_terminating and (expires is None or expires > at)
    return is_kept and each.velero.phase in RESTORABLE


def restorable(found: Iterable[TenantRequest], at: datetime) -> list[TenantRequest]:
    """Return the backups that can be restored, the newest first."""
    return sorted((each for each in found if is_restorable(each, at)), key=_started, reverse=True)


def _started(each: TenantRequest) -> tuple[str, str]:
    return each.velero.start_timestamp or "", each.key.name
