"""The state of a tenant's own location in one word, as the metrics count it."""

import msgspec

from foresail.api import velero
from foresail.selfservice.locations.plans import ACCEPTED, APPROVED, SECRET
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests.status import FALSE, TRUE
from foresail.selfservice.rows.locations import TenantLocationRow

STATES = (
    "Available",
    "Unavailable",
    "WaitingForApproval",
    "ChangeWaitsForApproval",
    "Rejected",
    "Refused",
    "NoCredentials",
    "Deleting",
    "New",
)


class _Mirror(msgspec.Struct, frozen=True):
    phase: str = ""


def state_of(row: TenantLocationRow) -> str:
    """Return the state of a location: one of `STATES`, whatever its tenant wrote."""
    if row.is_terminating:
        return "Deleting"
    if _condition(row, ACCEPTED)[0] == FALSE:
        return "Refused"
    approved = _condition(row, APPROVED)
    secret = _condition(row, SECRET)
    if approved[0] == FALSE:
        return "Rejected" if approved[1] == Reason.BSL_SPEC_REJECTED else "WaitingForApproval"
    if secret[0] == FALSE:
        is_change = approved[0] == TRUE and secret[1] == Reason.BSL_SPEC_APPROVAL_PENDING
        return "ChangeWaitsForApproval" if is_change else "NoCredentials"
    return _availability(row) if approved[0] == TRUE else "New"


def _availability(row: TenantLocationRow) -> str:
    phase = msgspec.json.decode(row.status.velero.mirror, type=_Mirror).phase
    return "Available" if phase == velero.AVAILABLE else "Unavailable"


def _condition(row: TenantLocationRow, name: str) -> tuple[str, str]:
    condition = row.status.condition(name)
    return (condition.status, condition.reason) if condition is not None else ("", "")
