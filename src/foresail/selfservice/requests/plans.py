"""What the paths of a request have in common: Plans that end with a status, a release or a wait."""

from datetime import datetime

import msgspec

from foresail.api.nonadmin import Condition
from foresail.plan import Action, Level, Note, Patch, Plan, Subject
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests import build, outcome, rules, volumes
from foresail.selfservice.requests.observe import Seen
from foresail.selfservice.requests.status import (
    ACCEPTED,
    AUTHORIZED,
    CREATED,
    FALSE,
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
from foresail.selfservice.rows.requests import Copy, Status

_NO_NEWS = ((ACCEPTED, TRUE), (QUEUED, FALSE), (AUTHORIZED, FALSE))


def status_plan(
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
        note_about(
            seen,
            Reason(each.reason),
            _event_message(seen, each),
            Level.WARNING if each.status == FALSE else Level.NORMAL,
        )
        for each in changed(before, after)
        if each.status != UNKNOWN and (each.type, each.status) not in _NO_NEWS
    )
    return Plan(actions, status, notes, wake_at, subject_of(seen))


def _event_message(seen: Seen, said: Condition) -> str:
    """Return the message of an Event: a hand-over names who asked, a plain delete the command to go on with."""
    if said.message == rules.HOW_TO_DELETE:
        return f"{said.message}: {rules.command_to_delete(seen.request.key)}"
    requester = seen.request.requester
    return f"{said.message}, requested by {requester}" if said.type == QUEUED and requester else said.message


def release_plan(seen: Seen, before: tuple[Action, ...] = ()) -> Plan:
    """Return the Plan that removes our finalizer, after some other writes."""
    if not seen.request.has_finalizer:
        return Plan(before, subject=subject_of(seen))
    return Plan((*before, build.release(seen)), subject=subject_of(seen))


def wait_for_absence(seen: Seen, now: datetime) -> Plan | None:
    """Return the Plan that waits until a Velero object that is not to be seen is surely not there; None if it is so."""
    at = rules.absence_counts_at(seen.request, seen.unseen_since)
    return Plan(wake_at=at) if at is not None and now < at else None


def with_condition(seen: Seen, status: Status, said: Said, now: datetime) -> Status:
    """Return a status with a condition of the request as it is now."""
    return told(status, said, seen.request.generation, now)


def shown_position(before: int | None, after: int | None) -> int | None:
    """Return the number in the queue that is shown: it never rises."""
    if before is None or after is None:
        return before if after is None else after
    return min(before, after)


def created_status(seen: Seen, mirror: str, spec: str, now: datetime) -> Status:
    """Return the status of a request that has its Velero object, with everything that is known of that."""
    before, family, name = seen.request.status, seen.family, build.nacuuid(seen.request)
    status = msgspec.structs.replace(
        before,
        phase=forward(before.phase, CREATED),
        velero=Copy(name, name, seen.velero_namespace, mirror, spec),
        position=shown_position(before.position, seen.place.position),
        transfers=seen.transfers,
        volumes=seen.volumes,
    )
    made = Said(QUEUED, TRUE, family.scheduled, f"Created Velero {family.word.capitalize()} object")
    status = with_condition(seen, status, made, now)
    if rules.was_missing(before, family):
        status = with_condition(seen, status, Said(ACCEPTED, TRUE, family.accepted, f"{family.word} accepted"), now)
    said = outcome.outcome(family, mirror)
    if said is not None:
        status = with_condition(seen, status, outcome.kept(before.condition(SUCCEEDED), said), now)
    return _with_data_incomplete(seen, status, mirror, spec, now) if family is BACKUPS else status


def _with_data_incomplete(seen: Seen, status: Status, mirror: str, spec: str, now: datetime) -> Status:
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
        return with_condition(seen, status, msgspec.structs.replace(remark, message=f"{remark.message}{more}"), now)
    is_kept = is_unserved or (reason == Reason.VOLUMES_LEFT_OUT and not volumes.is_new(seen))
    return status if is_kept else untold(status, NOTABLE)


def subject_of(seen: Seen) -> Subject:
    """Return the object that Events of a Plan are about."""
    return Subject(seen.family.kind, seen.request.key, seen.request.uid)


def note_about(seen: Seen, reason: Reason, text: str, level: Level = Level.NORMAL) -> Note:
    """Return an Event about a request."""
    return Note(seen.family.kind, seen.request.key, seen.request.uid, reason.value, text, level)
