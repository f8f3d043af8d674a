"""Create and update: validate once, hand over to Velero when it is the request's turn, then only mirror."""

from datetime import datetime

import msgspec

from foresail.api.instants import stamp
from foresail.plan import Plan
from foresail.selfservice.access.rules import Authorized
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.requests import authorization, build, moment, rules
from foresail.selfservice.requests.authorization import Waiting
from foresail.selfservice.requests.plans import (
    created_status,
    shown_position,
    status_plan,
    subject_of,
    wait_for_absence,
    with_condition,
)
from foresail.selfservice.requests.status import (
    ACCEPTED,
    AUTHORIZED,
    BACKING_OFF,
    CREATED,
    DATA_INCOMPLETE,
    DELETING,
    FALSE,
    NEW,
    QUEUED,
    TRUE,
    UNKNOWN,
    NewCondition,
    forward,
    remove_condition,
)
from foresail.selfservice.requests.update import remove_from_history, update_from_velero, velero_object_deleted
from foresail.selfservice.requests.view import RequestView, Takes
from foresail.selfservice.rows.requests import Copy, Status
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.records import nacuuid


def create_or_update(view: RequestView, namespace: NamespaceRow, now: datetime) -> Plan:
    """Validate once, then make Velero's object, then only mirror it."""
    row = rules.own(view)
    if view.history is not None:
        return remove_from_history(view, row, view.history)
    if row is not None:
        return update_from_velero(view, row, now)
    if view.request.status.phase in (CREATED, DELETING):
        return velero_object_deleted(view, now)
    return _proceed(view, namespace, now)


def _proceed(view: RequestView, namespace: NamespaceRow, now: datetime) -> Plan:
    """Take the next step of a request that Velero does not have; none after a restore was refused or has expired."""
    if moment.is_final(view):
        return Plan()
    expired = moment.expired(view, now)
    if expired is not None:
        return wait_for_absence(view, now) or refuse(view, expired, now)
    if not rules.has_nacuuid(view.request):
        plan = validate(view, now)
    elif moment.is_asked_again(view):
        plan = accept(view, now)
    else:
        plan = create_velero_object(view, namespace, now)
    return moment.bounded(view, plan, now)


def validate(view: RequestView, now: datetime) -> Plan:
    """Accept a request and record the name of its Velero object, or refuse it; each reconcile decides again."""
    recorded_at = view.request.created + rules.UNSEEN
    if view.request.adopted_uid and now < recorded_at:
        return Plan(wake_at=recorded_at)  # the record on its Velero Backup is written next
    spec = rules.velero_spec(view, now)
    if not isinstance(spec, Refused) and authorization.is_still_refused(view):
        return Plan()
    return refuse(view, spec, now) if isinstance(spec, Refused) else accept(view, now)


def refuse(view: RequestView, refused: Refused, now: datetime) -> Plan:
    """Report why a request does not go ahead; only what the tenant must change leads to BackingOff."""
    before = view.request.status
    is_waiting = refused.reason in rules.waits(view.family)
    phase, message = (NEW, moment.until(view, refused.message, now)) if is_waiting else (BACKING_OFF, refused.message)
    after = msgspec.structs.replace(before, phase=forward(before.phase, phase), velero=Copy())
    after = remove_condition(remove_condition(after, QUEUED), AUTHORIZED)  # it may have waited for its turn
    if is_waiting or refused.reason is Reason.EXPIRED:
        after = _promised(view, after, now)
    else:
        after = msgspec.structs.replace(after, starting_deadline="")
    after = with_condition(view, after, NewCondition(ACCEPTED, FALSE, refused.reason, message), now)
    is_full = refused.reason is Reason.QUOTA_EXCEEDED
    return status_plan(view, after, wake_at=rules.next_expiration(view, now) if is_full else None)


def refuse_hand_over(view: RequestView, refused: Refused, now: datetime) -> Plan:
    """Refuse a request after the check of access, which is not repeated for the same spec."""
    before = view.request.status
    after = msgspec.structs.replace(before, phase=forward(before.phase, BACKING_OFF), velero=Copy())
    after = remove_condition(after, QUEUED)
    for kind in (ACCEPTED, AUTHORIZED):
        after = with_condition(view, after, NewCondition(kind, FALSE, refused.reason, refused.message), now)
    return status_plan(view, after)


def _promised(view: RequestView, status: Status, now: datetime) -> Status:
    """Return the status with the time until which a restore may start."""
    by = moment.starting_deadline(view, now)
    return msgspec.structs.replace(status, starting_deadline=stamp(by) if by is not None else "")


def accept(view: RequestView, now: datetime) -> Plan:
    """Write down the nacuuid, in the very version of the request that was validated: from here on the spec is fixed."""
    before = view.request.status
    name = nacuuid(view.request)
    copy = Copy(name, name, view.velero_namespace)
    position = shown_position(before.position, view.position.number)
    after = msgspec.structs.replace(before, phase=forward(before.phase, NEW), velero=copy, position=position)
    family = view.family
    after = remove_condition(_promised(view, after, now), AUTHORIZED)
    after = with_condition(view, after, NewCondition(ACCEPTED, TRUE, family.accepted, f"{family.word} accepted"), now)
    return status_plan(view, _with_turn(view, after, now))


def wait_for_turn(view: RequestView, now: datetime) -> Plan:
    """Report the position of an accepted request that Velero does not get yet, and what it waits for."""
    before = view.request.status
    after = _with_turn(view, before, now)
    position = shown_position(before.position, view.position.number)
    at = view.position.report_at
    wakes = [instant for instant in (at, view.turn.until) if instant is not None and instant > now]
    if after == before and position != before.position and at is not None and at > now:
        return Plan(wake_at=min(wakes))
    return status_plan(view, msgspec.structs.replace(after, position=position), wake_at=view.turn.until)


def _with_turn(view: RequestView, status: Status, now: datetime) -> Status:
    if not view.turn.is_blocked:
        return status
    message = moment.until(view, view.turn.message, now)
    return with_condition(view, status, NewCondition(QUEUED, FALSE, Reason.WAITING_FOR_TURN, message), now)


def create_velero_object(view: RequestView, namespace: NamespaceRow, now: datetime) -> Plan:
    """Check access, set the finalizer, make Velero's object, and say that it is Created: in this order."""
    before = view.request.status
    spec = rules.velero_spec(view, now)
    if isinstance(spec, Refused):  # the policy, or the backup to restore from, has changed since it was accepted
        return wait_for_absence(view, now) or refuse(view, spec, now)
    if view.turn.is_blocked:
        plan = wait_for_turn(view, now)
        early = authorization.prepare(view, spec, now)
        return plan if early is None else msgspec.structs.replace(plan, actions=early.writes, reads=early.reads)
    checked = authorization.authorize(view, spec, now)
    if isinstance(checked, Waiting):
        return check_access(view, checked, now)
    if isinstance(checked, Refused):
        return wait_for_absence(view, now) or refuse_hand_over(view, checked, now)
    # First, so that a crash after the creation loses nothing; without what changes with each claim of the tenant, for a
    # request that is written again and again would keep its turn.
    first = _authorized_status(view, msgspec.structs.replace(checked, shortened=""), now)
    if checked.reason is not None and first != view.request.status:
        recorded = status_plan(view, first)
        return msgspec.structs.replace(recorded, claims=(*recorded.claims, Takes.NEXT_TURN))
    view = _with_status(view, _authorized_status(view, checked, now))
    shown = msgspec.json.encode(checked.spec).decode() if view.family is BACKUPS else "{}"
    after = created_status(view, "{}", shown, now)
    actions = (build.add_finalizer(view), build.create_velero_object(view, namespace, checked.spec))
    plan = status_plan(view, after, actions, is_versioned=False, before=before)
    return msgspec.structs.replace(plan, claims=(*plan.claims, Takes.HAND_OVER))


def check_access(view: RequestView, waiting: Waiting, now: datetime) -> Plan:
    """Have read what the check before the hand-over needs; only what takes long is shown."""
    if not waiting.message:
        return Plan(waiting.writes, wake_at=waiting.wake_at, subject=subject_of(view), reads=waiting.reads)
    condition = NewCondition(AUTHORIZED, UNKNOWN, waiting.reason, moment.until(view, waiting.message, now))
    plan = status_plan(
        view, with_condition(view, view.request.status, condition, now), waiting.writes, wake_at=waiting.wake_at
    )
    return msgspec.structs.replace(plan, reads=waiting.reads)


def _authorized_status(view: RequestView, cleared: Authorized, now: datetime) -> Status:
    """Return the status with what the check of access has found; what an earlier one said is gone."""
    told = _told(cleared)
    status = view.request.status
    for kind in {AUTHORIZED, DATA_INCOMPLETE}.difference(condition.type for condition in told):
        status = remove_condition(status, kind)
    for condition in told:
        status = with_condition(view, status, condition, now)
    return status


def _told(cleared: Authorized) -> list[NewCondition]:
    """Return the conditions that say what Velero gets other than it was asked for."""
    reason = cleared.reason
    if reason is Reason.KINDS_NOT_SERVED:
        unserved = NewCondition(DATA_INCOMPLETE, TRUE, reason, cleared.message)
        return [unserved, *_told(msgspec.structs.replace(cleared, reason=None, message=""))]
    message = ". ".join(filter(None, (cleared.message, cleared.shortened)))
    if reason is None and not cleared.shortened:
        return []
    return [NewCondition(AUTHORIZED, TRUE, reason or Reason.SNAPSHOT_TIMEOUT_SHORTENED, message)]


def _with_status(view: RequestView, status: Status) -> RequestView:
    return msgspec.structs.replace(view, request=msgspec.structs.replace(view.request, status=status))
