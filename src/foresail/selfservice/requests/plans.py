"""What the paths of a request have in common: Plans that end with a status, a release or a wait."""

from datetime import datetime

import msgspec

from foresail.api.nonadmin import Condition
from foresail.plan import Action, Level, Note, Patch, Plan, Subject
from foresail.reporting import Because, note
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests import build, moment, outcome, rules
from foresail.selfservice.requests.status import (
    ACCEPTED,
    ADOPTED,
    AUTHORIZED,
    CREATED,
    DATA_INCOMPLETE,
    FALSE,
    QUEUED,
    SUCCEEDED,
    TRUE,
    UNKNOWN,
    NewCondition,
    changed,
    forward,
    patch_body,
    remove_condition,
    set_condition,
)
from foresail.selfservice.requests.view import RequestView, Takes
from foresail.selfservice.rows.requests import Copy, Status
from foresail.selfservice.rows.velero import without_progress
from foresail.tenancy.records import nacuuid

_WITHOUT_EVENT = ((ACCEPTED, TRUE), (QUEUED, FALSE), (AUTHORIZED, FALSE))


def status_plan(
    view: RequestView,
    after: Status,
    actions: tuple[Action, ...] = (),
    *,
    is_versioned: bool = True,
    wake_at: datetime | None = None,
    before: Status | None = None,
) -> Plan:
    """Return the Plan that writes this status, with an Event for each condition that is new.

    Unknown conditions and acceptance get no Event; the hand-over that follows does.
    A status is written to the observed version, or, after another write, to the object with the same UID.
    """
    request = view.request
    family = view.family
    before = request.status if before is None else before
    body = patch_body(family, before, after)
    version = request.version if is_versioned else None
    whose = {} if is_versioned else {"metadata": {"uid": request.uid}}
    status = Patch(family.kind, request.key, {**whose, "status": body}, version, "status") if body else None
    notes = tuple(
        note_about(
            view,
            Reason(condition.reason),
            _event_message(view, condition),
            Level.WARNING if condition.status == FALSE else Level.NORMAL,
        )
        for condition in changed(before, after)
        if condition.status != UNKNOWN
        and (condition.type, condition.status) not in _WITHOUT_EVENT
        and not _is_older(view, before, condition)
    )
    return Plan(actions, status, notes, wake_at, subject_of(view), claims=_quota_of(view, before, after))


def _quota_of(view: RequestView, before: Status, after: Status) -> tuple[Takes, ...]:
    """Return the quota that a status takes that records a nacuuid."""
    is_recorded = after.velero != before.velero and bool(after.velero.nacuuid)
    return (Takes.QUOTA,) if is_recorded and not rules.has_nacuuid(view.request) else ()


def _is_older(view: RequestView, before: Status, condition: Condition) -> bool:
    """Whether a condition of an adopted backup reports what happened before the adoption."""
    return bool(view.request.adopted) and before.condition(ADOPTED) is None and condition.type in (QUEUED, SUCCEEDED)


def _event_message(view: RequestView, condition: Condition) -> str:
    """Return the message of an Event: a hand-over names the requester, a plain delete the next command."""
    if condition.message == rules.HOW_TO_DELETE:
        return f"{condition.message}: {rules.command_to_delete(view.request.key)}"
    requester = view.request.requester
    return (
        f"{condition.message}, requested by {requester}"
        if condition.type == QUEUED and requester
        else condition.message
    )


def release_plan(view: RequestView, before: tuple[Action, ...] = ()) -> Plan:
    """Return the Plan that removes our finalizer, after some other writes."""
    if not view.request.has_finalizer:
        return Plan(before, subject=subject_of(view))
    return Plan((*before, build.release(view)), subject=subject_of(view))


def wait_for_absence(view: RequestView, now: datetime) -> Plan | None:
    """Return the Plan that waits until a missing Velero object surely does not exist; None if that is certain."""
    at = rules.absence_counts_at(view.request, view.unobserved_since)
    return Plan(wake_at=at) if at is not None and now < at else None


def with_condition(view: RequestView, status: Status, condition: NewCondition, now: datetime) -> Status:
    """Return a status with a condition for the current generation."""
    return set_condition(status, condition, view.request.generation, now)


def shown_position(before: int | None, after: int | None) -> int | None:
    """Return the displayed queue position, which never rises."""
    if before is None or after is None:
        return before if after is None else after
    return min(before, after)


def created_status(view: RequestView, mirror: str, spec: str, now: datetime) -> Status:
    """Return the status of a request that mirrors its Velero object."""
    before = view.request.status
    family = view.family
    name = nacuuid(view.request)
    shown = without_progress(mirror) if view.request.point else mirror
    status = msgspec.structs.replace(
        before,
        phase=forward(before.phase, CREATED),
        velero=Copy(name, name, view.velero_namespace, shown, spec if family is BACKUPS else "{}"),
        position=shown_position(before.position, view.position.number),
        transfers=view.transfers,
        volumes=view.volumes,
    )
    made = NewCondition(QUEUED, TRUE, family.scheduled, f"Created Velero {family.word.capitalize()} object")
    status = with_condition(view, status, made, now)
    if view.request.adopted_uid:
        adopted = NewCondition(ADOPTED, TRUE, Reason.BACKUP_ADOPTED, f"Adopted Velero Backup {name}")
        status = with_condition(view, status, adopted, now)
    if rules.was_missing(before, family) or (view.request.adopted_uid and before.condition(ACCEPTED) is None):
        status = with_condition(
            view, status, NewCondition(ACCEPTED, TRUE, family.accepted, f"{family.word} accepted"), now
        )
    condition = outcome.outcome(family, mirror)
    if condition is not None and condition.reason is Reason.WAITING:
        condition = msgspec.structs.replace(condition, message=moment.until(view, condition.message, now))
    if condition is not None:
        status = with_condition(view, status, outcome.kept(before.condition(SUCCEEDED), condition), now)
    return _with_data_incomplete(view, status, mirror, spec, now) if family is BACKUPS else status


def _with_data_incomplete(view: RequestView, status: Status, mirror: str, spec: str, now: datetime) -> Status:
    """Return the status with the problems of a complete backup."""
    current = status.condition(DATA_INCOMPLETE)
    reason = current.reason if current is not None else ""
    remark = outcome.nothing_backed_up(mirror, spec)
    if remark is not None and reason == remark.reason:
        return status  # it may name the kinds that are not served
    is_new = outcome.is_newly_complete(view)
    left_out = outcome.volumes_left_out(view, mirror) if remark is None and is_new else None
    if left_out is not None:
        remark = left_out.condition
    if is_new:
        status = msgspec.structs.replace(status, volumes_left_out=left_out.volumes if left_out is not None else None)
    is_unserved = reason == Reason.KINDS_NOT_SERVED
    if remark is not None:
        more = f"; {current.message}" if current is not None and is_unserved else ""
        return with_condition(view, status, msgspec.structs.replace(remark, message=f"{remark.message}{more}"), now)
    is_kept = is_unserved or (reason == Reason.VOLUMES_LEFT_OUT and not is_new)
    return status if is_kept else remove_condition(status, DATA_INCOMPLETE)


def subject_of(view: RequestView) -> Subject:
    """Return the object that Events of a Plan are about."""
    return Subject(view.family.kind, view.request.key, view.request.uid)


def note_about(view: RequestView, reason: Reason, text: str, level: Level = Level.NORMAL) -> Note:
    """Return an Event about a request."""
    return note(subject_of(view), Because(reason, text, level))
