"""The three ways to delete a request, and the deletion of its namespace.

A plain delete waits for the tenant's choice. `deleteBackup` lets Velero delete the data. `forceDeleteBackup` deletes
the objects only, and so does `deleteBackup` in a tenant's own bucket. A policy may protect a backup from both.
"""

from datetime import datetime

import msgspec

from foresail import deletion_writes
from foresail.api import velero
from foresail.deletion import has_own_data
from foresail.plan import Action, Delete, Level, Note, Plan
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests import build, force_deleted, rules
from foresail.selfservice.requests.plans import (
    created_status,
    release_plan,
    status_plan,
    subject_of,
    wait_for_absence,
    with_condition,
)
from foresail.selfservice.requests.protection import Protected, in_use
from foresail.selfservice.requests.status import (
    DELETING,
    FALSE,
    IN_DELETION,
    TRUE,
    NewCondition,
    forward,
    remove_condition,
)
from foresail.selfservice.requests.view import RequestView
from foresail.selfservice.rows.requests import Copy, Status
from foresail.selfservice.rows.velero import DeletionRow, VeleroRow, glimpse
from foresail.tenancy.namespaces import NamespaceRow


def api_delete(view: RequestView, namespace: NamespaceRow, now: datetime) -> Plan:
    """Wait until the tenant decides what happens to the backup; a restore is deleted at once."""
    del namespace
    if not view.request.has_finalizer:
        return Plan()
    row = rules.own(view)
    if force_deleted.forced_at(view.request.status) is not None:
        return wait_for_loss(view, row, now)
    if row is None:
        return wait_for_absence(view, now) or release_plan(view)
    if view.family is BACKUPS:
        return status_plan(view, _deleting_status(view, Reason.DELETION_PENDING, rules.HOW_TO_DELETE, now))
    status = _deleting_status(view, Reason.DELETION_PENDING, "restore accepted for deletion", now)
    return status_plan(view, status, () if row.is_terminating else (Delete(velero.RESTORE, row.key, row.uid),))


def keep_protected(view: RequestView, protected: Protected, now: datetime) -> Plan:
    """Report why a backup is not deleted yet, and go on showing what Velero reports of it."""
    row = rules.own(view)
    status = view.request.status
    if row is not None and not view.request.is_terminating:
        status = created_status(view, row.mirror, row.spec, now)
    condition = NewCondition(IN_DELETION, FALSE, Reason.DELETION_PROTECTED, protected.message)
    return status_plan(view, with_condition(view, status, condition, now), wake_at=protected.until)


def force_delete(view: RequestView, namespace: NamespaceRow, now: datetime) -> Plan:
    """Delete the objects in Velero's namespace once; the request stays until Velero has lost the backup."""
    del namespace
    accepted = accept_deletion(view, now)
    if accepted is not None:
        return accepted
    request = view.request
    row = rules.own(view)
    if force_deleted.forced_at(request.status) is not None:
        return wait_for_loss(view, row, now)
    if row is not None and force_deleted.is_busy(row):
        return status_plan(view, _waiting_for_end(view, row, now))
    waiting = wait_for_absence(view, now) if row is None else None
    if waiting is not None:
        return waiting
    gone = delete_velero_objects(row, rules.own_deletion(view))
    if not force_deleted.may_have_data(request, row) or force_deleted.is_lost(request.status, view.locations, now):
        return release_plan(view, gone)
    text = force_deleted.message(request, view.locations, is_back=False)
    before = remove_condition(
        msgspec.structs.replace(request.status, deletion=Copy()), IN_DELETION
    )  # its time is that of now
    condition = NewCondition(IN_DELETION, TRUE, Reason.FORCE_DELETED, text)
    return status_plan(
        view,
        with_condition(view, before, condition, now),
        gone,
        is_versioned=False,
        wake_at=force_deleted.collected_at(request.status),
    )


def wait_for_loss(view: RequestView, row: VeleroRow | None, now: datetime) -> Plan:
    """Release a request whose backup Velero cannot sync back; otherwise report where its data is and what to do."""
    if row is None and force_deleted.is_lost(view.request.status, view.locations, now):
        return release_plan(view, delete_velero_objects(None, rules.own_deletion(view)))
    if row is not None and row.is_terminating:
        return Plan()
    text = force_deleted.message(view.request, view.locations, is_back=row is not None)
    after = with_condition(view, view.request.status, NewCondition(IN_DELETION, TRUE, Reason.FORCE_DELETED, text), now)
    return status_plan(view, after, wake_at=force_deleted.collected_at(view.request.status) if row is None else None)


def accept_deletion(view: RequestView, now: datetime) -> Plan | None:
    """Request the deletion of a backup and mark its request as terminating; None if both are done."""
    request = view.request
    kept = request.status.condition(IN_DELETION)
    is_reported = request.status.phase == DELETING and kept is not None and kept.message != rules.HOW_TO_DELETE
    after = None if is_reported else _accepted_status(view, now)
    if request.is_terminating:
        return None if after is None else status_plan(view, after)
    if rules.own(view) is not None and not request.has_finalizer:
        return Plan(
            (build.add_finalizer(view),), subject=subject_of(view)
        )  # someone removed the finalizer: add it again
    plan = Plan(subject=subject_of(view)) if after is None else status_plan(view, after)
    writes = (*plan.writes, build.delete_request(view))
    return Plan(writes, notes=plan.notes, subject=plan.subject)


def delete_velero_objects(row: VeleroRow | None, deletion: DeletionRow | None) -> tuple[Action, ...]:
    """Return the deletion of what is in Velero's namespace of a backup, and of nothing in the bucket."""
    deletions: list[Action] = []
    if row is not None:
        deletions.append(deletion_writes.delete_object(row.key, row.uid))
    if deletion is not None:
        deletions.append(deletion_writes.take_back(deletion.key, deletion.uid))
    return tuple(deletions)


def delete_backup(view: RequestView, namespace: NamespaceRow, now: datetime) -> Plan:
    """Have Velero delete a backup with its data, and let the request go when it has."""
    del namespace
    if rules.is_in_own_location(view):
        return _leave_data(view, now)
    accepted = accept_deletion(view, now)
    if accepted is not None:
        return accepted
    if not view.request.has_finalizer:
        return Plan()
    row = rules.own(view)
    deletion = rules.own_deletion(view)
    if row is None and force_deleted.forced_at(view.request.status) is not None:
        return wait_for_loss(view, row, now)
    if row is None:
        # Velero deletes its request with the backup. If that was observed first, ours was sent again in vain.
        return wait_for_absence(view, now) or release_plan(view, delete_velero_objects(None, deletion))
    return request_deletion(view, row, now) if deletion is None else update_from_deletion(view, row, deletion, now)


def _leave_data(view: RequestView, now: datetime) -> Plan:
    """Delete a backup in a tenant's own bucket without its data.

    To delete data, Velero reads the archive and deletes what it names, with its own rights: volume snapshots of any
    tenant, if this tenant has rewritten the archive.
    """
    accepted = accept_deletion(view, now)
    if accepted is not None:
        return accepted
    row = rules.own(view)
    if row is not None and force_deleted.is_busy(row):
        return status_plan(view, _waiting_for_end(view, row, now))
    return release_plan(view, delete_velero_objects(row, rules.own_deletion(view)))


def request_deletion(view: RequestView, row: VeleroRow, now: datetime) -> Plan:
    """Ask Velero to delete a backup; while it still works on it, it would only refuse."""
    if not row.is_terminal and not row.is_waiting:
        return status_plan(view, _waiting_for_end(view, row, now))
    reported = glimpse(row.mirror)
    if not has_own_data(row.phase, reported.failure_reason, has_progress=reported.progress is not None):
        return release_plan(
            view, delete_velero_objects(row, None)
        )  # data of its name is another's; sync brings it back
    copy = Copy(row.key.name, row.key.name, view.velero_namespace)
    after = msgspec.structs.replace(_accepted_status(view, now), deletion=copy)
    return status_plan(view, after, (build.create_deletion(view, row, 1),), is_versioned=False)


def update_from_deletion(view: RequestView, row: VeleroRow, deletion: DeletionRow, now: datetime) -> Plan:
    """Show what became of the request to delete; if it failed or was abandoned, make it again, later each time.

    If Velero treats the backup as running, make it finish again; the first time at once.
    """
    copy = Copy(row.key.name, deletion.key.name, view.velero_namespace, deletion.mirror)
    before = msgspec.structs.replace(view.request.status, deletion=copy)
    is_stalled = deletion.stalls_at is not None and deletion.stalls_at <= now
    if deletion.phase != velero.PROCESSED and not is_stalled:
        return _wait_for_velero(view, before, deletion, now)
    again = rules.next_attempt_at(deletion)
    is_reopened = row.reopened == deletion.uid
    if is_reopened and not row.is_terminal:
        return status_plan(view, _waiting_for_end(view, row, now))
    is_taken_for_running = velero.is_taken_for_running(row.phase, deletion.errors)
    reopens = not is_reopened and is_taken_for_running and (now >= again or deletion.attempt == 1)
    if reopens or is_reopened or now >= again:
        return _ask_again(view, row, deletion, before, now, reopens=reopens)
    if not deletion.errors:
        return status_plan(view, before, wake_at=again)
    text = rules.deletion_failed(deletion)
    after = with_condition(view, before, NewCondition(IN_DELETION, TRUE, Reason.DELETION_FAILED, text), now)
    return status_plan(view, after, wake_at=again)


def _ask_again(
    view: RequestView, row: VeleroRow, deletion: DeletionRow, status: Status, now: datetime, *, reopens: bool
) -> Plan:
    """Make a request to delete again, or first make Velero finish the backup; neither while the backup is in use."""
    kept = in_use(view, now)
    if kept is not None:
        text = f"Velero did not delete the backup. {kept.message}"
        condition = NewCondition(IN_DELETION, TRUE, Reason.DELETION_FAILED, text)
        return status_plan(view, with_condition(view, status, condition, now), wake_at=kept.until)
    if reopens:
        return status_plan(view, status, (build.reopen(row, deletion),), is_versioned=False)
    gone = deletion_writes.take_back(deletion.key, deletion.uid)
    new = build.create_deletion(view, row, deletion.attempt + 1)
    return status_plan(view, status, (gone, new), is_versioned=False)


def _wait_for_velero(view: RequestView, status: Status, deletion: DeletionRow, now: datetime) -> Plan:
    """Wait while Velero deletes a backup; report a request that it has not begun for an hour."""
    begins_by = deletion.created + velero.DELETION_TIME
    if deletion.stalls_at is not None or now < begins_by:
        return status_plan(view, status, wake_at=deletion.stalls_at or begins_by)
    condition = NewCondition(IN_DELETION, TRUE, Reason.DELETION_FAILED, rules.NOT_BEGUN)
    return status_plan(view, with_condition(view, status, condition, now))


def namespace_deleted(view: RequestView, namespace: NamespaceRow, now: datetime) -> Plan:
    """Release a request with its namespace: delete a waiting Velero object, keep a started backup until it expires."""
    del namespace
    if not view.request.is_terminating or not view.request.has_finalizer:
        return Plan()
    row = rules.own(view)
    if row is None:
        return wait_for_absence(view, now) or release_plan(view)
    unasked = delete_velero_objects(None, rules.own_deletion(view))  # else Velero, once it is back, would delete it
    if row.is_waiting:  # else Velero would run it in a namespace of this name that is another team's, or re-create it
        return release_plan(view, (*unasked, deletion_writes.delete_waiting(view.family.velero, row.key, row.uid)))
    if row.is_orphaned or view.family is not BACKUPS:
        return release_plan(view, unasked)
    until = f" until {row.expires:%Y-%m-%d %H:%M} UTC" if row.expires is not None else ""
    text = (
        f"Namespace {view.request.key.namespace} was deleted; Velero Backup {row.key.name} remains{until}. A cluster "
        "administrator can restore it"
    )
    note = Note(view.family.velero, row.key, row.uid, Reason.BACKUP_ORPHANED.value, text, Level.WARNING)
    writes = (*unasked, build.mark_orphaned(view, row, now), build.release(view))
    return Plan(writes, notes=(note,), subject=subject_of(view))


def _accepted_status(view: RequestView, now: datetime) -> Status:
    if rules.is_in_own_location(view):
        text = "backup accepted for deletion; its data stays in your bucket, delete it there"
        return _deleting_status(view, Reason.DELETION_PENDING, text, now)
    return _deleting_status(view, Reason.DELETION_PENDING, "backup accepted for deletion", now)


def _deleting_status(view: RequestView, reason: Reason, text: str, now: datetime) -> Status:
    before = view.request.status
    if force_deleted.forced_at(before) is not None:  # remembered, so that the same path is taken until the end
        reason = Reason.FORCE_DELETED
    status = msgspec.structs.replace(before, phase=forward(before.phase, DELETING))
    return with_condition(view, status, NewCondition(IN_DELETION, TRUE, reason, text), now)


def _waiting_for_end(view: RequestView, row: VeleroRow, now: datetime) -> Status:
    text = f"backup accepted for deletion; it is {row.phase} and is deleted when it finishes"
    return _deleting_status(view, Reason.DELETION_PENDING, text, now)
