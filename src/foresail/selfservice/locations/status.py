"""The status of a tenant's own location: Plans that end with it, and its state in one word, as the metrics count it."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.nonadmin import NON_ADMIN_LOCATION
from foresail.plan import Action, Level, Note, Patch, Plan, Subject
from foresail.reporting import merge_patch
from foresail.selfservice.locations.rules import nacuuid, own_velero
from foresail.selfservice.locations.view import LocationView
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests.status import FALSE, TRUE, NewCondition, changed, forward, set_condition
from foresail.selfservice.rows.locations import TenantLocationRow
from foresail.selfservice.rows.requests import Copy, Status

ACCEPTED, APPROVED = "Accepted", "ClusterAdminApproved"
SECRET, SYNCED = "SecretSynced", "BackupStorageLocationSynced"

_QUIET = (Reason.BSL_SPEC_VALIDATION, Reason.BSL_SPEC_APPROVAL_PENDING)


def status_plan(
    view: LocationView,
    phase: str,
    said: Iterable[NewCondition],
    now: datetime,
    actions: tuple[Action, ...] = (),
    wake_at: datetime | None = None,
    copy: Copy | None = None,
) -> Plan:
    """Return the Plan that ends with this phase and these conditions beside those that stand."""
    location = view.location
    before = location.status
    after = msgspec.structs.replace(before, phase=forward(before.phase, phase), velero=copy or _mirrored(view))
    for condition in said:
        after = set_condition(after, condition, location.generation, now)
    body = merge_patch(_wire(before), _wire(after)) if before != after else {}
    patch = Patch(NON_ADMIN_LOCATION, location.key, {"status": body}, location.version, "status") if body else None
    notes = tuple(
        Note(NON_ADMIN_LOCATION, location.key, location.uid, change.reason, change.message, _level(change.status))
        for change in changed(before, after)
        if change.status == FALSE or change.reason not in _QUIET
    )
    return Plan(actions, patch, notes, wake_at, subject_of(view))


def subject_of(view: LocationView) -> Subject:
    """Return the object that Events of a Plan are about."""
    return Subject(NON_ADMIN_LOCATION, view.location.key, view.location.uid)


def _level(status: str) -> Level:
    return Level.WARNING if status == FALSE else Level.NORMAL


def _mirrored(view: LocationView) -> Copy:
    """Return what is shown of the Velero location: its phase alone, for its messages name hosts and their answers."""
    before = view.location.status.velero
    row = own_velero(view)
    if row is None:
        return before
    name = nacuuid(view.location)
    mirror = msgspec.json.encode({"phase": row.phase}).decode() if row.phase else "{}"
    return Copy(name, name, view.velero_namespace, mirror)


def named(view: LocationView) -> Copy:
    """Return the nacuuid as the status has it: with it the spec is fixed."""
    name = nacuuid(view.location)
    return Copy(name, name, view.velero_namespace)


def _wire(status: Status) -> dict[str, Any]:
    body: dict[str, Any] = {"phase": status.phase} if status.phase else {}
    if status.conditions:
        body["conditions"] = [msgspec.to_builtins(condition) for condition in status.conditions]
    made = status.velero
    if made != Copy():
        named = {"nacuuid": made.nacuuid, "name": made.name, "namespace": made.namespace}
        body["veleroBackupStorageLocation"] = {
            **{name: value for name, value in named.items() if value},
            "status": msgspec.json.decode(made.mirror),
        }
    return body


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
