"""The life of a tenant's own location: validate, ask for approval, make it, open it; suspend it; delete it.

Each step is walked write by write: what was written last is what the next reconcile finds, so a crash is a pause.
A phase never goes back. What is no longer approved or allowed becomes read-only, and stays for the administrator.
"""

from datetime import datetime

import msgspec

from foresail.api.instants import stamp
from foresail.plan import Action, Key, Plan
from foresail.selfservice.locations import build, rules
from foresail.selfservice.locations.rules import ReadAgain, SecretProblem, Wanted
from foresail.selfservice.locations.status import ACCEPTED, APPROVED, SECRET, SYNCED, named, status_plan, subject_of
from foresail.selfservice.locations.view import LocationView
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.requests.status import (
    BACKING_OFF,
    CREATED,
    DELETING,
    FALSE,
    IN_DELETION,
    NEW,
    TRUE,
    NewCondition,
)
from foresail.selfservice.rows.locations import LocationRow
from foresail.tenancy.namespaces import NamespaceRow

_MOST_DELETED = 100  # NonAdminBackups in one Plan


def decide(view: LocationView, now: datetime) -> Plan:
    """Say what is to be done about a location now, and when to reconcile next."""
    if view.namespace is None:
        return Plan()
    if view.namespace.is_terminating:
        return leave_with_namespace(view, now)
    if view.location.is_terminating:
        return delete_location(view, now)
    return create_or_update(view, view.namespace, now)


def create_or_update(view: LocationView, namespace: NamespaceRow, now: datetime) -> Plan:
    """Validate the spec, carry out a revocation, validate the credentials; then fix the spec, and go on to approval."""
    spec = rules.wanted_spec(view)
    if isinstance(spec, Refused):
        return refuse(view, spec, now)
    revoked = revoke(view, now)
    if revoked is not None:
        return revoked
    credentials = rules.credentials(view, spec, now)
    if isinstance(credentials, ReadAgain):
        return Plan(reads=(credentials.query,), subject=subject_of(view))
    if isinstance(credentials, SecretProblem):
        return report_secret(view, credentials, now)
    if not rules.has_nacuuid(view.location):
        return accept(view, now)
    return approve_and_open(view, namespace, credentials, now)


def refuse(view: LocationView, refused: Refused, now: datetime) -> Plan:
    """Say why a location is not used; one that was used becomes read-only."""
    phase = NEW if refused.reason in rules.WAITS else BACKING_OFF
    said = NewCondition(ACCEPTED, FALSE, refused.reason, refused.message)
    return status_plan(view, phase, (said,), now, suspended(view, refused.reason))


def report_secret(view: LocationView, problem: SecretProblem, now: datetime) -> Plan:
    """Say why the credentials cannot be copied; a location that has credentials keeps them."""
    phase = NEW if rules.own_velero(view) is not None else BACKING_OFF
    said = NewCondition(SECRET, FALSE, Reason.SECRET_SYNC_FAILED, problem.message)
    return status_plan(view, phase, (said,), now, wake_at=problem.at)


def accept(view: LocationView, now: datetime) -> Plan:
    """Write down the nacuuid, in the very version that was validated: from here on the spec is fixed."""
    return status_plan(view, NEW, (_valid(),), now, copy=named(view))


# Approval


def approve_and_open(view: LocationView, namespace: NamespaceRow, wanted: Wanted, now: datetime) -> Plan:
    """Ask for approval, show what is asked for, and do what was decided."""
    if not view.location.has_finalizer:
        return Plan((build.add_finalizer(view),), subject=subject_of(view))
    if view.approval is None:
        return Plan((build.create_approval(view, namespace),), subject=subject_of(view))
    approval = rules.own_approval(view)
    if approval is None:
        return report_taken(view, now)
    phase, approved = rules.verdict(view, approval, wanted.hash)
    shown: tuple[Action, ...] = build.show_request(view, approval, phase, wanted.hash, approved)
    if phase == rules.APPROVED:
        plan = open_location(view, namespace, wanted, now)
    elif phase == rules.PENDING and _has_approved(rules.own_velero(view), approved):
        plan = keep_approved(view, wanted, now)
    else:
        plan = wait_for_approval(view, phase, wanted.reread, now)
    return msgspec.structs.replace(plan, actions=(*shown, *plan.actions))


def _has_approved(row: LocationRow | None, approved: str) -> bool:
    return row is not None and bool(approved) and row.request_hash == approved


def revoke(view: LocationView, now: datetime) -> Plan | None:
    """Suspend a location without a valid decision; None if none is open.

    It needs no credentials: otherwise a tenant who deletes the Secret would keep the location.
    """
    phase = rules.withdrawn(view)
    plan = wait_for_approval(view, phase, None, now) if phase is not None else Plan()
    return plan if plan.actions else None


def wait_for_approval(view: LocationView, phase: str, reread: datetime | None, now: datetime) -> Plan:
    """Report that nothing is approved; a location that was approved before becomes read-only."""
    if phase == rules.REJECTED:
        because = Refused(Reason.BSL_SPEC_REJECTED, "approval decision set to Reject")
    else:
        because = Refused(Reason.BSL_SPEC_APPROVAL_PENDING, "approval pending")
    said: tuple[NewCondition, ...] = (
        _valid(),
        NewCondition(APPROVED, FALSE, because.reason, f"NonAdminBackupStorageLocationRequest {because.message}"),
    )
    said += _readable(view) if reread is not None else ()
    expected = BACKING_OFF if phase == rules.REJECTED else NEW
    return status_plan(view, expected, said, now, suspended(view, because.reason), wake_at=reread)


def keep_approved(view: LocationView, wanted: Wanted, now: datetime) -> Plan:
    """Go on with the approved credentials while changed ones wait for approval."""
    row = rules.own_velero(view)
    again: tuple[Action, ...] = ()
    if row is not None and row.suspended:
        again = (build.open_location(row, _place(view), wanted.spec, row.request_hash),)
    text = "The Secret has changed; the approved credentials stay in use until the change is approved"
    said = (_valid(), _approved(), NewCondition(SECRET, FALSE, Reason.BSL_SPEC_APPROVAL_PENDING, text), _made())
    return status_plan(view, CREATED, said, now, again, wake_at=wanted.reread)


def open_location(view: LocationView, namespace: NamespaceRow, wanted: Wanted, now: datetime) -> Plan:
    """Make the Velero location, copy the credentials, and let Velero use it; then only mirror it."""
    row = rules.own_velero(view)
    if row is None and view.velero is not None:
        return report_taken(view, now)
    if row is None:
        return Plan((build.create_location(view, namespace, wanted.spec),), subject=subject_of(view))
    opened = build.open_location(row, _place(view), wanted.spec, wanted.hash)
    if row.request_hash != wanted.hash:
        copied = build.copy_credentials(view, namespace, row, wanted.credentials)
        return Plan((copied, opened), subject=subject_of(view))
    if row.suspended:
        return Plan((opened,), subject=subject_of(view))
    said = (_valid(), _approved(), _copied(view), _made())
    return status_plan(view, CREATED, said, now, wake_at=wanted.reread)


def report_taken(view: LocationView, now: datetime) -> Plan:
    """Report that somebody else has an object of the name in Velero's namespace; it is left alone."""
    name = rules.nacuuid(view.location)
    text = f"{view.velero_namespace}/{name} exists and was not created for this location; ask a cluster administrator"
    return status_plan(view, BACKING_OFF, (NewCondition(SYNCED, FALSE, Reason.BSL_SYNC_ERROR, text),), now)


def suspended(view: LocationView, reason: Reason) -> tuple[Action, ...]:
    """Return the write that makes a location read-only, if there is one and it is not."""
    row = rules.own_velero(view)
    return () if row is None else build.suspend(row, _place(view), reason.value)


# Deletion: never a byte in the bucket


def delete_location(view: LocationView, now: datetime) -> Plan:
    """Delete the NonAdminBackups in a location without their data, then everything that was made for it."""
    if not view.location.has_finalizer:
        return Plan()
    if view.holds_backups:
        waiting = tuple(build.force_delete(backup) for backup in view.backups if not backup.is_to_be_forced)
        text = "location accepted for deletion; its backups are deleted first, their data stays in the bucket"
        said = NewCondition(IN_DELETION, TRUE, Reason.DELETION_PENDING, text)
        return status_plan(view, DELETING, (said,), now, waiting[:_MOST_DELETED])
    row = rules.own_velero(view)
    gone = () if row is None else (build.delete_velero(row, _place(view)),)
    return _released(view, gone)


def leave_with_namespace(view: LocationView, now: datetime) -> Plan:
    """Release a location with its namespace; while backups are in it, it stays for the administrator, read-only."""
    location = view.location
    row = rules.own_velero(view)
    if not location.is_terminating or not location.has_finalizer:
        return Plan()
    if row is None:
        return _released(view, ())
    if view.holds_backups:
        return _released(view, (build.orphan(row, _place(view), stamp(now)),))
    return _released(view, (build.delete_velero(row, _place(view)),))


def _released(view: LocationView, before: tuple[Action, ...]) -> Plan:
    approval = rules.own_approval(view)
    asked = () if approval is None else (build.delete_approval(approval),)
    return Plan((*before, *asked, build.release(view)), subject=subject_of(view))


# Conditions


def _valid() -> NewCondition:
    text = "NonAdminBackupStorageLocation spec validation successful"
    return NewCondition(ACCEPTED, TRUE, Reason.BSL_SPEC_VALIDATION, text)


def _approved() -> NewCondition:
    text = "NonAdminBackupStorageLocationRequest approval decision set to Approve"
    return NewCondition(APPROVED, TRUE, Reason.BSL_SPEC_APPROVED, text)


def _copied(view: LocationView) -> NewCondition:
    """Return that the credentials are copied: for the first time, or again after a change."""
    before = view.location.status.condition(SECRET)
    is_first = before is None or (before.status == TRUE and before.reason == Reason.SECRET_CREATED)
    reason = Reason.SECRET_CREATED if is_first else Reason.SECRET_UPDATED
    return NewCondition(SECRET, TRUE, reason, "The credentials are copied to Velero's namespace")


def _readable(view: LocationView) -> tuple[NewCondition, ...]:
    """Return that credentials can be read which could not be before, and are not copied yet; else nothing."""
    before = view.location.status.condition(SECRET)
    if before is None or before.reason != Reason.SECRET_SYNC_FAILED:
        return ()
    text = "The credentials can be used; they are copied when the location is approved"
    return (NewCondition(SECRET, FALSE, Reason.BSL_SPEC_APPROVAL_PENDING, text),)


def _made() -> NewCondition:
    return NewCondition(SYNCED, TRUE, Reason.BSL_CREATED, "Created Velero BackupStorageLocation object")


def _place(view: LocationView) -> Key:
    return Key(view.velero_namespace, rules.nacuuid(view.location))
