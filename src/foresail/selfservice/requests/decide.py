"""The flowchart: which of the four paths a request is on, and what is to be done on it now.

`docs/design/self-service.svg` shows each of these functions in its place. A path is walked write by write: what was
written last time is what the next look finds, so a crash between any two writes is like a pause.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.nonadmin import Condition
from foresail.plan import Action, Create, Delete, Level, Note, Patch, Plan, Subject
from foresail.selfservice.access.rules import Cleared
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.requests import authorization as hand_over
from foresail.selfservice.requests import build, outcome, rules, volumes
from foresail.selfservice.requests import force_delete as forced
from foresail.selfservice.requests.authorization import Waiting
from foresail.selfservice.requests.observe import Seen
from foresail.selfservice.requests.protection import Protected, protection
from foresail.selfservice.requests.status import (
    ACCEPTED,
    AUTHORIZED,
    BACKING_OFF,
    CREATED,
    DELETING,
    FALSE,
    IN_DELETION,
    NEW,
    NOTABLE,
    QUEUED,
    SUCCEEDED,
    TRUE,
    UNKNOWN,
    Said,
    changed,
    forward,
    patch_body,
    told,
    untold,
)
from foresail.selfservice.rows.namespaces import NamespaceRow
from foresail.selfservice.rows.requests import Copy, Status
from foresail.selfservice.rows.velero import DeletionRow, VeleroRow

_NO_NEWS = ((ACCEPTED, TRUE), (QUEUED, FALSE), (AUTHORIZED, FALSE))

Path = Callable[[Seen, NamespaceRow, datetime], Plan]


def decide(seen: Seen, now: datetime) -> Plan:
    """Say what is to be done about a request now, and when to look again."""
    if seen.namespace is None:
        return Plan()  # what is known is in pieces: the missing one brings the next look
    path = path_of(seen, seen.namespace)
    if path in (force_delete, delete_backup):
        protected = protection(seen, now)
        if protected is not None:
            return keep_protected(seen, protected, now)
    return path(seen, seen.namespace, now)


def path_of(seen: Seen, namespace: NamespaceRow) -> Path:
    """Return the path that a request is on; of several reasons the strongest counts."""
    request = seen.request
    if namespace.is_going:
        return namespace_goes
    if request.is_to_be_forced and not (request.is_to_be_deleted and rules.came_back(seen)):
        return force_delete
    if request.is_to_be_deleted:
        return delete_backup
    if request.is_going:
        return api_delete
    return create_or_update


# Create and update


def create_or_update(seen: Seen, namespace: NamespaceRow, now: datetime) -> Plan:
    """Validate once, then make Velero's object, then only mirror it."""
    row = rules.own(seen)
    if seen.history is not None:
        return remove_from_history(seen, row, seen.history)
    if row is not None:
        return update_from_velero(seen, row, now)
    if seen.request.status.phase in (CREATED, DELETING):
        return velero_object_is_gone(seen, now)
    if not rules.has_nacuuid(seen.request):
        return validate(seen, now)
    return create_velero_object(seen, namespace, now)


def validate(seen: Seen, now: datetime) -> Plan:
    """Accept a request and write down the name of its Velero object, or refuse it; at each look anew."""
    spec = rules.velero_spec(seen, now)
    if not isinstance(spec, Refused) and hand_over.is_held(seen):
        return wait_for_access(seen, spec, now) if hand_over.waits_for_access(seen) else Plan()
    return refuse(seen, spec, now) if isinstance(spec, Refused) else accept(seen, now)


def refuse(seen: Seen, refused: Refused, now: datetime) -> Plan:
    """Say why a request does not go ahead; only what the tenant must change leads to BackingOff."""
    before = seen.request.status
    phase = NEW if refused.reason in rules.WAITS else BACKING_OFF
    after = msgspec.structs.replace(before, phase=forward(before.phase, phase), velero=Copy())
    after = untold(untold(after, QUEUED), AUTHORIZED)  # it may have waited for its turn
    after = _told(seen, after, Said(ACCEPTED, FALSE, refused.reason, refused.message), now)
    is_full = refused.reason is Reason.QUOTA_EXCEEDED
    return _say(seen, after, wake_at=rules.next_expiration(seen, now) if is_full else None)


def refuse_hand_over(seen: Seen, refused: Refused, now: datetime) -> Plan:
    """Refuse a request after the check of access, which is not repeated for the same spec."""
    before = seen.request.status
    after = msgspec.structs.replace(before, phase=forward(before.phase, BACKING_OFF), velero=Copy())
    after = untold(after, QUEUED)
    for kind in (ACCEPTED, AUTHORIZED):
        after = _told(seen, after, Said(kind, FALSE, refused.reason, refused.message), now)
    return _say(seen, after)


def wait_for_access(seen: Seen, spec: dict[str, Any], now: datetime) -> Plan:
    """Check again, later each time, whether a requester who was denied has access now; accept the restore then."""
    found = hand_over.recheck(seen, spec, now)
    if isinstance(found, Cleared):
        return accept(seen, now)  # the hand-over checks once more
    if isinstance(found, Waiting):
        return Plan(found.writes, wake_at=found.wake_at, subject=_subject(seen), reads=found.reads)
    return replace(refuse_hand_over(seen, found, now), wake_at=hand_over.next_recheck(seen, now))


def accept(seen: Seen, now: datetime) -> Plan:
    """Write down the nacuuid, in the very version of the request that was validated: from here on the spec is fixed."""
    before, name = seen.request.status, build.nacuuid(seen.request)
    copy = Copy(name, name, seen.velero_namespace)
    position = _position(before.position, seen.place.position)
    after = msgspec.structs.replace(before, phase=forward(before.phase, NEW), velero=copy, position=position)
    family = seen.family
    after = untold(after, AUTHORIZED)
    after = _told(seen, after, Said(ACCEPTED, TRUE, family.accepted, f"{family.word} accepted"), now)
    return _say(seen, _waiting(seen, after, now))


def wait_for_turn(seen: Seen, now: datetime) -> Plan:
    """Report the position of an accepted request that Velero does not get yet, and what it waits for."""
    before = seen.request.status
    after = _waiting(seen, before, now)
    position, at = _position(before.position, seen.place.position), seen.place.tell_at
    wakes = [each for each in (at, seen.turn.until) if each is not None and each > now]
    if after == before and position != before.position and at is not None and at > now:
        return Plan(wake_at=min(wakes))
    return _say(seen, msgspec.structs.replace(after, position=position), wake_at=seen.turn.until)


def _waiting(seen: Seen, status: Status, now: datetime) -> Status:
    if not seen.turn.is_blocked:
        return status
    return _told(seen, status, Said(QUEUED, FALSE, Reason.WAITING_FOR_TURN, seen.turn.message), now)


def create_velero_object(seen: Seen, namespace: NamespaceRow, now: datetime) -> Plan:
    """Check access, set the finalizer, make Velero's object, and say that it is Created: in this order."""
    before = seen.request.status
    spec = rules.velero_spec(seen, now)
    if isinstance(spec, Refused):  # the policy, or the backup to restore from, has changed since it was accepted
        return _wait_for_absence(seen, now) or refuse(seen, spec, now)
    if seen.turn.is_blocked:
        plan, early = wait_for_turn(seen, now), hand_over.prepare(seen, spec, now)
        return plan if early is None else replace(plan, actions=early.writes, reads=early.reads)
    checked = hand_over.clear(seen, spec, now)
    if isinstance(checked, Waiting):
        return check_access(seen, checked, now)
    if isinstance(checked, Refused):
        return _wait_for_absence(seen, now) or refuse_hand_over(seen, checked, now)
    status = _authorized(seen, checked, now)
    if checked.reason is not None and status != seen.request.status:
        return _say(seen, status)  # first, so that a crash after the creation loses nothing
    seen = _with_status(seen, status)
    shown = msgspec.json.encode(checked.spec).decode() if seen.family is BACKUPS else "{}"
    after = _created(seen, "{}", shown, now)
    actions = (build.add_finalizer(seen), build.create_velero_object(seen, namespace, checked.spec))
    return _say(seen, after, actions, is_versioned=False, before=before)


def check_access(seen: Seen, waiting: Waiting, now: datetime) -> Plan:
    """Have read what the check before the hand-over needs; only what takes long is shown."""
    if not waiting.message:
        return Plan(waiting.writes, wake_at=waiting.wake_at, subject=_subject(seen), reads=waiting.reads)
    said = Said(AUTHORIZED, UNKNOWN, Reason.CHECKING_ACCESS, waiting.message)
    plan = _say(seen, _told(seen, seen.request.status, said, now), waiting.writes, wake_at=waiting.wake_at)
    return replace(plan, reads=waiting.reads)


def update_from_velero(seen: Seen, row: VeleroRow, now: datetime) -> Plan:
    """Show the tenant what Velero says; a number in the queue that is far from the front is told in its own time."""
    before = seen.request.status
    after = _created(seen, row.mirror, row.spec, now)
    if not patch_body(seen.family, before, msgspec.structs.replace(after, position=before.position)):
        at = seen.place.tell_at
        if at is not None and at > now and after.position != before.position:
            return Plan(wake_at=at)
    return _say(seen, after)


def velero_object_is_gone(seen: Seen, now: datetime) -> Plan:
    """Report that Velero's object was removed; delete the request of a backup once it has expired.

    What `Succeeded` reports stays true. Our clock may be behind Velero's, so an expiration to come is waited for.
    """
    waiting = _wait_for_absence(seen, now)
    if waiting is not None:
        return waiting
    request, family = seen.request, seen.family
    expires = rules.expires_at(request) if family is BACKUPS else None
    if expires is not None and expires <= now:
        text = (
            f"the time of the backup has passed, and Velero has deleted it: NonAdminBackup {request.key.name} goes too"
        )
        return Plan(
            (build.delete_request(seen),), notes=(_note(seen, Reason.BACKUP_EXPIRED, text),), subject=_subject(seen)
        )
    if family is not BACKUPS and seen.request.status.position == 0:
        return Plan()  # it has ended, and how it went is still true
    text, after = rules.why_gone(seen), msgspec.structs.replace(request.status, position=0)
    after = _told(seen, after, Said(ACCEPTED, FALSE, family.not_found, text), now)
    if not outcome.has_ended(request):
        after = _told(seen, after, Said(SUCCEEDED, FALSE, family.not_found, text), now)
    return _say(seen, after, wake_at=expires)


def remove_from_history(seen: Seen, row: VeleroRow | None, history: int) -> Plan:
    """Delete a finished restore, and its Velero Restore first, beyond the number that the policy keeps."""
    name = seen.request.key.name
    text = f"Deleted NonAdminRestore {name}: the policy keeps the newest {history} finished restores of a namespace"
    gone = (Delete(seen.family.velero, row.key, row.uid),) if row is not None and not row.is_going else ()
    note = _note(seen, Reason.RESTORE_HISTORY, text)
    return Plan((*gone, build.delete_request(seen)), notes=(note,), subject=_subject(seen))


# API delete


def api_delete(seen: Seen, namespace: NamespaceRow, now: datetime) -> Plan:
    """Wait for the tenant to say what is to become of the backup; a restore has nothing to keep, and goes."""
    del namespace
    if not seen.request.has_finalizer:
        return Plan()
    row = rules.own(seen)
    if forced.forced_at(seen.request.status) is not None:
        return wait_for_loss(seen, row, now)
    if row is None:
        return _wait_for_absence(seen, now) or _release(seen)
    if seen.family is BACKUPS:
        return _say(seen, _in_deletion(seen, Reason.DELETION_PENDING, rules.how_to_delete(seen.request), now))
    status = _in_deletion(seen, Reason.DELETION_PENDING, "restore accepted for deletion", now)
    return _say(seen, status, () if row.is_going else (Delete(seen.family.velero, row.key, row.uid),))


# Protected from deletion


def keep_protected(seen: Seen, protected: Protected, now: datetime) -> Plan:
    """Report why a backup is not deleted yet, and go on showing what Velero reports of it."""
    row, status = rules.own(seen), seen.request.status
    if row is not None and not seen.request.is_going:
        status = _created(seen, row.mirror, row.spec, now)
    said = Said(IN_DELETION, FALSE, Reason.DELETION_PROTECTED, protected.message)
    return _say(seen, _told(seen, status, said, now), wake_at=protected.until)


# Force delete


def force_delete(seen: Seen, namespace: NamespaceRow, now: datetime) -> Plan:
    """Delete the objects in Velero's namespace once; the request stays until Velero has lost the backup."""
    del namespace
    accepted = accept_deletion(seen, now)
    if accepted is not None:
        return accepted
    request, row = seen.request, rules.own(seen)
    if forced.forced_at(request.status) is not None:
        return wait_for_loss(seen, row, now)
    if row is not None and forced.is_busy(row):
        return _say(seen, _until_it_ends(seen, row, now))
    waiting = _wait_for_absence(seen, now) if row is None else None
    if waiting is not None:
        return waiting
    gone = delete_velero_objects(row, rules.own_deletion(seen))
    if not forced.may_have_data(request, row) or forced.is_lost(request.status, seen.locations, now):
        return _release(seen, gone)
    text = forced.message(request, seen.locations, is_back=False)
    before = untold(msgspec.structs.replace(request.status, deletion=Copy()), IN_DELETION)  # its time is that of now
    said = Said(IN_DELETION, TRUE, Reason.FORCE_DELETED, text)
    return _say(
        seen, _told(seen, before, said, now), gone, is_versioned=False, wake_at=forced.collected_at(request.status)
    )


def wait_for_loss(seen: Seen, row: VeleroRow | None, now: datetime) -> Plan:
    """Release a request whose backup Velero cannot bring back; else report where its data is and what to do."""
    if row is None and forced.is_lost(seen.request.status, seen.locations, now):
        return _release(seen, delete_velero_objects(None, rules.own_deletion(seen)))
    if row is not None and row.is_going:
        return Plan()
    text = forced.message(seen.request, seen.locations, is_back=row is not None)
    after = _told(seen, seen.request.status, Said(IN_DELETION, TRUE, Reason.FORCE_DELETED, text), now)
    return _say(seen, after, wake_at=forced.collected_at(seen.request.status) if row is None else None)


def accept_deletion(seen: Seen, now: datetime) -> Plan | None:
    """Say that a backup is to go, and mark its request as going; None if both have been done."""
    request = seen.request
    kept = request.status.condition(IN_DELETION)
    is_said = request.status.phase == DELETING and kept is not None and kept.message != rules.how_to_delete(request)
    after = None if is_said else _in_deletion(seen, Reason.DELETION_PENDING, "backup accepted for deletion", now)
    if request.is_going:
        return None if after is None else _say(seen, after)
    if rules.own(seen) is not None and not request.has_finalizer:
        return Plan((build.add_finalizer(seen),), subject=_subject(seen))  # somebody took it off: hold it till the end
    plan = Plan(subject=_subject(seen)) if after is None else _say(seen, after)
    writes = (*plan.writes, build.delete_request(seen))
    return Plan(writes, notes=plan.notes, subject=plan.subject)


def delete_velero_objects(row: VeleroRow | None, deletion: DeletionRow | None) -> tuple[Action, ...]:
    """Return the deletion of what is in Velero's namespace of a backup, and of nothing in the bucket."""
    found: list[Action] = []
    if row is not None:
        found.append(Delete(velero.BACKUP, row.key, row.uid))
    if deletion is not None:
        found.append(Delete(velero.DELETE_REQUEST, deletion.key, deletion.uid))
    return tuple(found)


# Delete backup


def delete_backup(seen: Seen, namespace: NamespaceRow, now: datetime) -> Plan:
    """Have Velero delete a backup with its data, and let the request go when it has."""
    del namespace
    accepted = accept_deletion(seen, now)
    if accepted is not None:
        return accepted
    if not seen.request.has_finalizer:
        return Plan()
    row, deletion = rules.own(seen), rules.own_deletion(seen)
    if row is None and forced.forced_at(seen.request.status) is not None:
        return wait_for_loss(seen, row, now)
    if row is None:
        # Velero takes its request away with the backup. If that was seen first, it was asked again: for nothing.
        return _wait_for_absence(seen, now) or _release(seen, delete_velero_objects(None, deletion))
    if deletion is None:
        return request_deletion(seen, row, now)
    return update_from_deletion(seen, row, deletion, now)


def request_deletion(seen: Seen, row: VeleroRow, now: datetime) -> Plan:
    """Ask Velero to delete a backup; while it still works on it, it would only refuse."""
    if not row.is_terminal and not row.is_waiting:
        return _say(seen, _until_it_ends(seen, row, now))
    status = _in_deletion(seen, Reason.DELETION_PENDING, "backup accepted for deletion", now)
    copy = Copy(row.key.name, row.key.name, seen.velero_namespace)
    after = msgspec.structs.replace(status, deletion=copy)
    return _say(seen, after, (build.create_deletion(seen, row, 1),), is_versioned=False)


def update_from_deletion(seen: Seen, row: VeleroRow, deletion: DeletionRow, now: datetime) -> Plan:
    """Show what became of the request to delete; if it failed, make it again, later each time.

    If Velero takes the backup for one that runs, it is made to end it once more; the first time at once.
    """
    copy = Copy(row.key.name, deletion.key.name, seen.velero_namespace, deletion.mirror)
    before = msgspec.structs.replace(seen.request.status, deletion=copy)
    if deletion.phase != velero.PROCESSED:
        return _say(seen, before)
    again = rules.next_attempt_at(deletion)
    is_reopened = row.reopened == deletion.uid
    if is_reopened and not row.is_terminal:
        return _say(seen, _until_it_ends(seen, row, now))
    is_held = velero.is_taken_for_running(row.phase, deletion.errors)
    if not is_reopened and is_held and (now >= again or deletion.attempt == 1):
        return _say(seen, before, (build.reopen(row, deletion),), is_versioned=False)
    if is_reopened or now >= again:
        gone = Delete(velero.DELETE_REQUEST, deletion.key, deletion.uid)
        return _say(seen, before, (gone, build.create_deletion(seen, row, deletion.attempt + 1)), is_versioned=False)
    if not deletion.errors:
        return _say(seen, before, wake_at=again)
    text = rules.deletion_failed(deletion)
    after = _told(seen, before, Said(IN_DELETION, TRUE, Reason.DELETION_FAILED, text), now)
    return _say(seen, after, wake_at=again)


# The namespace goes


def namespace_goes(seen: Seen, namespace: NamespaceRow, now: datetime) -> Plan:
    """Release a request with its namespace: delete a waiting Velero object, keep a started backup until it expires."""
    del namespace
    if not seen.request.is_going or not seen.request.has_finalizer:
        return Plan()
    row = rules.own(seen)
    if row is None:
        return _wait_for_absence(seen, now) or _release(seen)
    unasked = delete_velero_objects(None, rules.own_deletion(seen))  # else Velero, once it is back, would delete it
    if row.is_waiting:  # else Velero would run it in a namespace of this name that is another team's, or re-create it
        return _release(seen, (*unasked, Delete(seen.family.velero, row.key, row.uid)))
    if row.is_orphaned or seen.family is not BACKUPS:
        return _release(seen, unasked)
    until = f" until {row.expires:%Y-%m-%d %H:%M} UTC" if row.expires is not None else ""
    text = (
        f"namespace {seen.request.key.namespace} was deleted; {row.key.name} stays{until}, and can be restored by an "
        "administrator"
    )
    note = Note(seen.family.velero, row.key, row.uid, Reason.BACKUP_ORPHANED.value, text, Level.WARNING)
    writes = (*unasked, build.mark_orphaned(seen, row, now), build.release(seen))
    return Plan(writes, notes=(note,), subject=_subject(seen))


# What a controller must remember of a Plan before the world shows it


def promises(plan: Plan, seen: Seen) -> bool:
    """Whether a Plan writes down a nacuuid, and so takes a place."""
    body = plan.status.body.get("status") if plan.status else None
    return isinstance(body, dict) and bool(body.get(seen.family.reference)) and not rules.has_nacuuid(seen.request)


def creates(plan: Plan, seen: Seen) -> bool:
    """Whether a Plan makes the Velero object of a request, which then stands in Velero's queue."""
    return any(isinstance(each, Create) and each.kind == seen.family.velero for each in plan.actions)


def authorizes(plan: Plan, seen: Seen) -> bool:
    """Whether a Plan writes down what the check of access found: the next one makes the Velero object."""
    body = plan.status.body.get("status") if plan.status else None
    said = body.get("conditions") if isinstance(body, dict) else None
    found = said if isinstance(said, (list, tuple)) else ()
    is_told = any(each.get("type") == AUTHORIZED and each.get("status") == TRUE for each in found)
    return is_told and not seen.turn.is_blocked and not plan.actions


# What the paths have in common


def _created(seen: Seen, mirror: str, spec: str, now: datetime) -> Status:
    """Return the status of a request that has its Velero object, with everything that is known of that."""
    before, family, name = seen.request.status, seen.family, build.nacuuid(seen.request)
    status = msgspec.structs.replace(
        before,
        phase=forward(before.phase, CREATED),
        velero=Copy(name, name, seen.velero_namespace, mirror, spec),
        position=_position(before.position, seen.place.position),
        transfers=seen.transfers,
        volumes=seen.volumes,
    )
    made = Said(QUEUED, TRUE, family.scheduled, f"Created Velero {family.word.capitalize()} object")
    status = _told(seen, status, made, now)
    if rules.was_missing(before, family):
        status = _told(seen, status, Said(ACCEPTED, TRUE, family.accepted, f"{family.word} accepted"), now)
    said = outcome.outcome(family, mirror)
    if said is not None:
        status = _told(seen, status, outcome.kept(before.condition(SUCCEEDED), said), now)
    return _remarked(seen, status, mirror, spec, now) if family is BACKUPS else status


def _remarked(seen: Seen, status: Status, mirror: str, spec: str, now: datetime) -> Status:
    """Return the status with what a tenant should know of a backup though it is complete."""
    stands = status.condition(NOTABLE)
    reason = stands.reason if stands is not None else ""
    remark = outcome.nothing_backed_up(mirror, spec)
    if remark is not None and reason == remark.reason:
        return status  # it may name the kinds that are not served
    if remark is None and volumes.is_new(seen):
        remark = volumes.left_out(seen, mirror)
    is_unserved = reason == Reason.KINDS_NOT_SERVED
    if remark is not None:
        more = f"; {stands.message}" if stands is not None and is_unserved else ""
        return _told(seen, status, msgspec.structs.replace(remark, message=f"{remark.message}{more}"), now)
    is_kept = is_unserved or (reason == Reason.VOLUMES_LEFT_OUT and not volumes.is_new(seen))
    return status if is_kept else untold(status, NOTABLE)


def _position(before: int | None, after: int | None) -> int | None:
    """Return the number in the queue that is shown: it never rises."""
    if before is None or after is None:
        return before if after is None else after
    return min(before, after)


def _in_deletion(seen: Seen, reason: Reason, text: str, now: datetime) -> Status:
    before = seen.request.status
    if forced.forced_at(before) is not None:  # remembered, so that the same path is taken until the end
        reason = Reason.FORCE_DELETED
    status = msgspec.structs.replace(before, phase=forward(before.phase, DELETING))
    return _told(seen, status, Said(IN_DELETION, TRUE, reason, text), now)


def _until_it_ends(seen: Seen, row: VeleroRow, now: datetime) -> Status:
    text = f"backup accepted for deletion: it is {row.phase}, and is deleted when that has ended"
    return _in_deletion(seen, Reason.DELETION_PENDING, text, now)


def _told(seen: Seen, status: Status, said: Said, now: datetime) -> Status:
    return told(status, said, seen.request.generation, now)


def _say(
    seen: Seen,
    after: Status,
    actions: tuple[Action, ...] = (),
    *,
    is_versioned: bool = True,
    wake_at: datetime | None = None,
    before: Status | None = None,
) -> Plan:
    """Return the Plan that ends with this status, and with an Event for each condition that says something new.

    What has no end yet is no news; what is accepted is made in the next moment, and that is.
    A status is written into the version that was seen, or, after a write that has changed it, into the same object.
    """
    request, family = seen.request, seen.family
    before = request.status if before is None else before
    body = patch_body(family, before, after)
    version = request.version if is_versioned else None
    whose = {} if is_versioned else {"metadata": {"uid": request.uid}}
    status = Patch(family.kind, request.key, {**whose, "status": body}, version, "status") if body else None
    notes = tuple(
        _note(seen, Reason(each.reason), _event(seen, each), Level.WARNING if each.status == FALSE else Level.NORMAL)
        for each in changed(before, after)
        if each.status != UNKNOWN and (each.type, each.status) not in _NO_NEWS
    )
    return Plan(actions, status, notes, wake_at, _subject(seen))


def _event(seen: Seen, said: Condition) -> str:
    """Return the message of an Event; that of a hand-over names who asked."""
    requester = seen.request.requester
    return f"{said.message}, requested by {requester}" if said.type == QUEUED and requester else said.message


def _authorized(seen: Seen, cleared: Cleared, now: datetime) -> Status:
    """Return the status with what the check of access has found."""
    if cleared.reason is None:
        return untold(untold(seen.request.status, AUTHORIZED), NOTABLE)
    kind = NOTABLE if cleared.reason is Reason.KINDS_NOT_SERVED else AUTHORIZED
    return _told(seen, seen.request.status, Said(kind, TRUE, cleared.reason, cleared.message), now)


def _with_status(seen: Seen, status: Status) -> Seen:
    return msgspec.structs.replace(seen, request=msgspec.structs.replace(seen.request, status=status))


def _release(seen: Seen, before: tuple[Action, ...] = ()) -> Plan:
    if not seen.request.has_finalizer:
        return Plan(before, subject=_subject(seen))
    return Plan((*before, build.release(seen)), subject=_subject(seen))


def _wait_for_absence(seen: Seen, now: datetime) -> Plan | None:
    """Return the Plan that waits until a Velero object that is not to be seen is surely not there; None if it is so."""
    at = rules.absence_counts_at(seen.request, seen.unseen_since)
    return Plan(wake_at=at) if at is not None and now < at else None


def _subject(seen: Seen) -> Subject:
    return Subject(seen.family.kind, seen.request.key, seen.request.uid)


def _note(seen: Seen, reason: Reason, text: str, level: Level = Level.NORMAL) -> Note:
    return Note(seen.family.kind, seen.request.key, seen.request.uid, reason.value, text, level)
