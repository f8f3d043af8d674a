"""The backups of a namespace that can be restored now, as far as their status shows it; the operator decides."""

from collections.abc import Iterable
from datetime import datetime

from foresail.api.instants import instant
from foresail.api.velero import RESTORABLE
from foresail.cli.tenant.tenant_request import TenantRequest


def is_restorable(request: TenantRequest, at: datetime) -> bool:
    """Whether Velero has finished a backup, nobody deletes it, and it has not expired."""
    expires = instant(request.velero.expiration) if request.velero.expiration else None
    is_kept = not request.is_terminating and (expires is None or expires > at)
    return is_kept and request.velero.phase in RESTORABLE


def restorable(requests: Iterable[TenantRequest], at: datetime) -> list[TenantRequest]:
    """Return the backups that can be restored, the newest first."""
    return sorted((request for request in requests if is_restorable(request, at)), key=_started, reverse=True)


def _started(request: TenantRequest) -> tuple[str, str]:
    return request.velero.start_timestamp or "", request.key.name
