"""A request that has its Velero object: mirror it, notice that it was deleted, and remove old restores."""

from dataclasses import replace
from datetime import datetime

import msgspec

from foresail.api import velero
from foresail.plan import Delete, Plan
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.requests import build, moment, outcome, rules, withdrawal
from foresail.selfservice.requests.observe import RequestView
from foresail.selfservice.requests.plans import (
    created_status,
    note_about,
    status_plan,
    subject_of,
    wait_for_absence,
    with_condition,
)
from foresail.selfservice.requests.status import (
    ACCEPTED,
    FALSE,
    SUCCEEDED,
    NewCondition,
    patch_body,
)
from foresail.selfservice.rows.requests import Status
from foresail.selfservice.rows.velero import VeleroRow, without_bytes


def update_from_velero(view: RequestView, row: VeleroRow, now: datetime) -> Plan:
    """Mirror Velero's status; a restore that waits is withdrawn when it is no longer allowed."""
    if view.family is BACKUPS or not row.is_waiting or row.is_terminating:
        return _mirror(view, row, now)
    if withdrawal.is_withdrawn(view):
        return Plan()  # its deletion is not observed yet
    judged = withdrawal.judge(view, row, now)
    if isinstance(judged, Refused):
        return withdrawal.withdraw(view, row, judged, now)
    plan = moment.bounded(view, _mirror(view, row, now), now)
    wakes = [at for at in (plan.wake_at, judged.wake_at) if at is not None]
    reads = (judged.read,) if judged.read is not None else ()
    return replace(plan, wake_at=min(wakes, default=None), reads=reads, subject=subject_of(view))


def _mirror(view: RequestView, row: VeleroRow, now: datetime) -> Plan:
    """Mirror Velero's status; a distant queue position and bytes are written later."""
    after = created_status(view, row.mirror, row.spec, now)
    at = _written_at(view, after)
    return Plan(wake_at=at) if at is not None and at > now else status_plan(view, after)


def _written_at(view: RequestView, after: Status) -> datetime | None:
    """Return when a status is written of which only the queue position or bytes differ; None for at once."""
    before = view.request.status
    moved = [(before.transfers, after.transfers), (before.volumes, after.volumes)]
    if any(without_bytes(old) != without_bytes(new) for old, new in moved):
        return None
    same = msgspec.structs.replace(after, position=before.position, transfers=before.transfers, volumes=before.volumes)
    if patch_body(view.family, before, same):
        return None
    due = [view.position.report_at] if after.position != before.position else []
    due += [view.bytes_at] if any(old != new for old, new in moved) else []
    return None if None in due else min(filter(None, due), default=None)


def velero_object_deleted(view: RequestView, now: datetime) -> Plan:
    """Report that Velero's object was deleted; delete the request of a backup once it has expired.

    What `Succeeded` reports stays true. Our clock may be behind Velero's, so an expiration to come is waited for.
    """
    waiting = wait_for_absence(view, now)
    if waiting is not None:
        return waiting
    request = view.request
    family = view.family
    expires = rules.expires_at(request) if family is BACKUPS else None
    if expires is not None and expires <= now:
        text = f"Backup expired; deleting NonAdminBackup {request.key.name}"
        return Plan(
            (build.delete_request(view),),
            notes=(note_about(view, Reason.BACKUP_EXPIRED, text),),
            subject=subject_of(view),
        )
    if family is not BACKUPS and view.request.status.position == 0:
        return Plan()  # it has ended, and its outcome is still true
    expired = moment.expired(view, now) if outcome.is_waiting(request) else None
    if expired is not None:  # withdrawn by an operator that was killed before it said so
        return status_plan(view, withdrawal.ended(view, expired.reason, expired.message, now))
    text = rules.why_deleted(view)
    before = request.status
    transfers, volumes = without_bytes(before.transfers), without_bytes(before.volumes)
    after = msgspec.structs.replace(before, position=0, transfers=transfers, volumes=volumes)
    after = with_condition(view, after, NewCondition(ACCEPTED, FALSE, family.not_found, text), now)
    if not outcome.has_ended(request):
        after = with_condition(view, after, NewCondition(SUCCEEDED, FALSE, family.not_found, text), now)
    return status_plan(view, after, wake_at=expires)


def remove_from_history(view: RequestView, row: VeleroRow | None, history: int) -> Plan:
    """Delete a finished restore, and its Velero Restore first, beyond the number that the policy keeps."""
    name = view.request.key.name
    text = f"Deleted NonAdminRestore {name}: the policy keeps the newest {history} finished restores of a namespace"
    gone = (Delete(velero.RESTORE, row.key, row.uid),) if row is not None and not row.is_terminating else ()
    note = note_about(view, Reason.RESTORE_HISTORY, text)
    return Plan((*gone, build.delete_request(view)), notes=(note,), subject=subject_of(view))
