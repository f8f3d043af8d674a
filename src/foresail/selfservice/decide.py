"""The flowchart: which of the four paths a request is on, and what is to be done on it now.

`docs/design/self-service.svg` shows each of these functions in its place. A path is walked write by write: what was
written last time is what the next look finds, so a crash between any two writes is like a pause.
"""

from collections.abc import Callable
from datetime import datetime

import msgspec

from foresail.api import velero
from foresail.plan import Action, Create, Delete, Level, Note, Patch, Plan, Subject
from foresail.selfservice import build, rules, volumes, why
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.observe import Copy, DeletionRow, NamespaceRow, Seen, Status, VeleroRow
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.status import (
    ACCEPTED,
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

Path = Callable[[Seen, NamespaceRow, datetime], Plan]


def decide(seen: Seen, now: datetime) -> Plan:
    """Say what is to be done about a request now, and when to look again."""
    if seen.namespace is None:
        return Plan()  # what is known is in pieces: the missing one brings the next look
    return path_of(seen, seen.namespace)(seen, seen.namespace, now)


def path_of(seen: Seen, namespace: NamespaceRow) -> Path:
    """Return the path that a request is on; of several reasons the strongest counts."""
    request = seen.request
    if namespace.is_going:
        return namespace_goes
    if request.is_to_be_forced:
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
    if row is not None:
        return update_from_velero(seen, row, now)
    if seen.request.status.phase in (CREATED, DELETING):
        return velero_object_is_gone(seen, now)
    if not rules.has_nacuuid(seen.request):
        return validate(seen, now)
    return create_velero_object(seen, namespace, now)


def validate(seen: Seen, now: datetime) -> Plan:
    """Accept a request and write down the name of its Velero object, or refuse it."""
    if rules.is_refused_as_it_is(seen.request):
        return Plan()
    spec = rules.velero_spec(seen)
    return refuse(seen, spec, now) if isinstance(spec, Refused) else accept(seen, now)


def refuse(seen: Seen, refused: Refused, now: datetime) -> Plan:
    """Say why a request does not go ahead; only what the tenant must change leads to BackingOff."""
    before = seen.request.status
    phase = NEW if refused.reason in rules.WAITS else BACKING_OFF
    after = msgspec.structs.replace(before, phase=forward(before.phase, phase), velero=Copy())
    return _say(seen, _told(seen, after, Said(ACCEPTED, FALSE, refused.reason, refused.message), now))


def accept(seen: Seen, now: datetime) -> Plan:
    """Write down the nacuuid, in the very version of the request that was validated: from here on the spec is fixed."""
    before, name = seen.request.status, build.nacuuid(seen.request)
    copy = Copy(name, name, seen.velero_namespace)
    after = msgspec.structs.replace(before, phase=forward(before.phase, NEW), velero=copy)
    family = seen.family
    return _say(seen, _told(seen, after, Said(ACCEPTED, TRUE, family.accepted, f"{family.word} accepted"), now))


def create_velero_object(seen: Seen, namespace: NamespaceRow, now: datetime) -> Plan:
    """Set the finalizer, make Velero's object, and say that it is Created: in this order."""
    spec = rules.velero_spec(seen)
    if isinstance(spec, Refused):  # the policy, or the backup to restore from, has changed since it was accepted
        return _wait_for_absence(seen, now) or refuse(seen, spec, now)
    shown = msgspec.json.encode(spec).decode() if seen.family is BACKUPS else "{}"
    after = _created(seen, "{}", shown, now)
    return _say(
        seen, after, (build.add_finalizer(seen), build.create_velero_object(seen, namespace, spec)), is_versioned=False
    )


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
    """Say that there is nothing behind a request any more; what has expired takes its request with it."""
    waiting = _wait_for_absence(seen, now)
    if waiting is not None:
        return waiting
    request, family = seen.request, seen.family
    if family is BACKUPS and rules.has_expired(request, now):
        text = (
            f"the time of the backup has passed, and Velero has deleted it: NonAdminBackup {request.key.name} goes too"
        )
        return Plan(
            (build.delete_request(seen),), notes=(_note(seen, Reason.BACKUP_EXPIRED, text),), subject=_subject(seen)
        )
    if family is not BACKUPS and seen.request.status.position == 0:
        return Plan()  # it has ended, and how it went is still true
    after = msgspec.structs.replace(request.status, position=0)
    return _say(seen, _told(seen, after, Said(SUCCEEDED, FALSE, family.not_found, rules.why_gone(seen)), now))


# API delete


def api_delete(seen: Seen, namespace: NamespaceRow, now: datetime) -> Plan:
    """Wait for the tenant to say what is to become of the backup; a restore has nothing to keep, and goes."""
    del namespace
    if seen.family.finalizer not in seen.request.finalizers:
        return Plan()
    row = rules.own(seen)
    if row is None:
        return _wait_for_absence(seen, now) or _release(seen)
    if seen.family is BACKUPS:
        return _say(seen, _in_deletion(seen, Reason.DELETION_PENDING, rules.how_to_delete(seen.request), now))
    status = _in_deletion(seen, Reason.DELETION_PENDING, "restore accepted for deletion", now)
    return _say(seen, status, () if row.is_going else (Delete(seen.family.velero, row.key, row.uid),))


# Force delete


def force_delete(seen: Seen, namespace: NamespaceRow, now: datetime) -> Plan:
    """Delete the objects in Velero's namespace, wait for nothing, and let the request go; the bucket is left alone."""
    del namespace
    accepted = accept_deletion(seen, now)
    if accepted is not None:
        return accepted
    row, deletion = rules.own(seen), rules.own_deletion(seen)
    if row is None:
        waiting = _wait_for_absence(seen, now)
        if waiting is not None:
            return waiting
    return _release(seen, delete_velero_objects(row, deletion))


def accept_deletion(seen: Seen, now: datetime) -> Plan | None:
    """Say that a backup is to go, and mark its request as going; None if both have been done."""
    request = seen.request
    kept = request.status.condition(IN_DELETION)
    is_said = request.status.phase == DELETING and kept is not None and kept.message != rules.how_to_delete(request)
    after = None if is_said else _in_deletion(seen, Reason.DELETION_PENDING, "backup accepted for deletion", now)
    if request.is_going:
        return None if after is None else _say(seen, after)
    if rules.own(seen) is not None and seen.family.finalizer not in request.finalizers:
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
    if seen.family.finalizer not in seen.request.finalizers:
        return Plan()
    row, deletion = rules.own(seen), rules.own_deletion(seen)
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
    """Let a request go with its namespace at once; whatever it had asked for, the backup stays until its time."""
    del namespace
    if not seen.request.is_going or seen.family.finalizer not in seen.request.finalizers:
        return Plan()
    row = rules.own(seen)
    if row is None:
        return _wait_for_absence(seen, now) or _release(seen)
    unasked = delete_velero_objects(None, rules.own_deletion(seen))  # else Velero, once it is back, would delete it
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
    said = rules.outcome(family, mirror)
    if said is not None:
        status = _told(seen, status, why.kept(before.condition(SUCCEEDED), said), now)
    return _remarked(seen, status, mirror, now) if family is BACKUPS else status


def _remarked(seen: Seen, status: Status, mirror: str, now: datetime) -> Status:
    """Return the status with what a tenant should know of a backup though it is complete."""
    remark = rules.notable(mirror)
    if remark is None and volumes.is_new(seen):
        remark = volumes.left_out(seen, mirror)
    if remark is not None:
        return _told(seen, status, remark, now)
    stands = status.condition(NOTABLE)
    is_kept = stands is not None and stands.reason == Reason.VOLUMES_LEFT_OUT.value and not volumes.is_new(seen)
    return status if is_kept else untold(status, NOTABLE)


def _position(before: int | None, after: int | None) -> int | None:
    """Return the number in the queue that is shown: it never rises."""
    if before is None or after is None:
        return before if after is None else after
    return min(before, after)


def _in_deletion(seen: Seen, reason: Reason, text: str, now: datetime) -> Status:
    before = seen.request.status
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
) -> Plan:
    """Return the Plan that ends with this status, and with an Event for each condition that says something new.

    What has no end yet is no news; what is accepted is made in the next moment, and that is.
    A status is written into the version that was seen, or, after a write that has changed it, into the same object.
    """
    request, family = seen.request, seen.family
    body = patch_body(family, request.status, after)
    version = request.version if is_versioned else None
    whose = {} if is_versioned else {"metadata": {"uid": request.uid}}
    status = Patch(family.kind, request.key, {**whose, "status": body}, version, "status") if body else None
    notes = tuple(
        _note(seen, Reason(each.reason), each.message, Level.WARNING if each.status == FALSE else Level.NORMAL)
        for each in changed(request.status, after)
        if each.status != UNKNOWN and (each.type, each.status) != (ACCEPTED, TRUE)
    )
    return Plan(actions, status, notes, wake_at, _subject(seen))


def _release(seen: Seen, before: tuple[Action, ...] = ()) -> Plan:
    if seen.family.finalizer not in seen.request.finalizers:
        return Plan(before, subject=_subject(seen))
    return Plan((*before, build.release(seen)), subject=_subject(seen))


def _wait_for_absence(seen: Seen, now: datetime) -> Plan | None:
    """Return the Plan that waits until a Velero object that is not to be seen is surely not there; None if it is so."""
    at = rules.absence_counts_at(seen.request)
    return Plan(wake_at=at) if at is not None and now < at else None


def _subject(seen: Seen) -> Subject:
    return Subject(seen.family.kind, seen.request.key, seen.request.uid)


def _note(seen: Seen, reason: Reason, text: str, level: Level = Level.NORMAL) -> Note:
    return Note(seen.family.kind, seen.request.key, seen.request.uid, reason.value, text, level)
