"""Create and update: validate once, hand over to Velero when it is the request's turn, then only mirror."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec

from foresail.plan import Plan
from foresail.selfservice.access.rules import Cleared
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.requests import authorization as hand_over
from foresail.selfservice.requests import build, rules
from foresail.selfservice.requests.authorization import Waiting
from foresail.selfservice.requests.observe import Seen
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
    DELETING,
    FALSE,
    NEW,
    NOTABLE,
    QUEUED,
    TRUE,
    UNKNOWN,
    Said,
    forward,
    untold,
)
from foresail.selfservice.requests.update import remove_from_history, update_from_velero, velero_object_deleted
from foresail.selfservice.rows.namespaces import NamespaceRow
from foresail.selfservice.rows.requests import Copy, Status


def create_or_update(seen: Seen, namespace: NamespaceRow, now: datetime) -> Plan:
    """Validate once, then make Velero's object, then only mirror it."""
    row = rules.own(seen)
    if seen.history is not None:
        return remove_from_history(seen, row, seen.history)
    if row is not None:
        return update_from_velero(seen, row, now)
    if seen.request.status.phase in (CREATED, DELETING):
        return velero_object_deleted(seen, now)
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
    after = with_condition(seen, after, Said(ACCEPTED, FALSE, refused.reason, refused.message), now)
    is_full = refused.reason is Reason.QUOTA_EXCEEDED
    return status_plan(seen, after, wake_at=rules.next_expiration(seen, now) if is_full else None)


def refuse_hand_over(seen: Seen, refused: Refused, now: datetime) -> Plan:
    """Refuse a request after the check of access, which is not repeated for the same spec."""
    before = seen.request.status
    after = msgspec.structs.replace(before, phase=forward(before.phase, BACKING_OFF), velero=Copy())
    after = untold(after, QUEUED)
    for kind in (ACCEPTED, AUTHORIZED):
        after = with_condition(seen, after, Said(kind, FALSE, refused.reason, refused.message), now)
    return status_plan(seen, after)


def wait_for_access(seen: Seen, spec: dict[str, Any], now: datetime) -> Plan:
    """Check again, later each time, whether a requester who was denied has access now; accept the restore then."""
    found = hand_over.recheck(seen, spec, now)
    if isinstance(found, Cleared):
        return accept(seen, now)  # the hand-over checks once more
    if isinstance(found, Waiting):
        return Plan(found.writes, wake_at=found.wake_at, subject=subject_of(seen), reads=found.reads)
    return replace(refuse_hand_over(seen, found, now), wake_at=hand_over.next_recheck(seen, now))


def accept(seen: Seen, now: datetime) -> Plan:
    """Write down the nacuuid, in the very version of the request that was validated: from here on the spec is fixed."""
    before, name = seen.request.status, build.nacuuid(seen.request)
    copy = Copy(name, name, seen.velero_namespace)
    position = shown_position(before.position, seen.place.position)
    after = msgspec.structs.replace(before, phase=forward(before.phase, NEW), velero=copy, position=position)
    family = seen.family
    after = untold(after, AUTHORIZED)
    after = with_condition(seen, after, Said(ACCEPTED, TRUE, family.accepted, f"{family.word} accepted"), now)
    return status_plan(seen, _with_turn(seen, after, now))


def wait_for_turn(seen: Seen, now: datetime) -> Plan:
    """Report the position of an accepted request that Velero does not get yet, and what it waits for."""
    before = seen.request.status
    after = _with_turn(seen, before, now)
    position, at = shown_position(before.position, seen.place.position), seen.place.tell_at
    wakes = [each for each in (at, seen.turn.until) if each is not None and each > now]
    if after == before and position != before.position and at is not None and at > now:
        return Plan(wake_at=min(wakes))
    return status_plan(seen, msgspec.structs.replace(after, position=position), wake_at=seen.turn.until)


def _with_turn(seen: Seen, status: Status, now: datetime) -> Status:
    if not seen.turn.is_blocked:
        return status
    return with_condition(seen, status, Said(QUEUED, FALSE, Reason.WAITING_FOR_TURN, seen.turn.message), now)


def create_velero_object(seen: Seen, namespace: NamespaceRow, now: datetime) -> Plan:
    """Check access, set the finalizer, make Velero's object, and say that it is Created: in this order."""
    before = seen.request.status
    spec = rules.velero_spec(seen, now)
    if isinstance(spec, Refused):  # the policy, or the backup to restore from, has changed since it was accepted
        return wait_for_absence(seen, now) or refuse(seen, spec, now)
    if seen.turn.is_blocked:
        plan, early = wait_for_turn(seen, now), hand_over.prepare(seen, spec, now)
        return plan if early is None else replace(plan, actions=early.writes, reads=early.reads)
    checked = hand_over.clear(seen, spec, now)
    if isinstance(checked, Waiting):
        return check_access(seen, checked, now)
    if isinstance(checked, Refused):
        return wait_for_absence(seen, now) or refuse_hand_over(seen, checked, now)
    status = _authorized_status(seen, checked, now)
    if checked.reason is not None and status != seen.request.status:
        return status_plan(seen, status)  # first, so that a crash after the creation loses nothing
    seen = _with_status(seen, status)
    shown = msgspec.json.encode(checked.spec).decode() if seen.family is BACKUPS else "{}"
    after = created_status(seen, "{}", shown, now)
    actions = (build.add_finalizer(seen), build.create_velero_object(seen, namespace, checked.spec))
    return status_plan(seen, after, actions, is_versioned=False, before=before)


def check_access(seen: Seen, waiting: Waiting, now: datetime) -> Plan:
    """Have read what the check before the hand-over needs; only what takes long is shown."""
    if not waiting.message:
        return Plan(waiting.writes, wake_at=waiting.wake_at, subject=subject_of(seen), reads=waiting.reads)
    said = Said(AUTHORIZED, UNKNOWN, Reason.CHECKING_ACCESS, waiting.message)
    plan = status_plan(
        seen, with_condition(seen, seen.request.status, said, now), waiting.writes, wake_at=waiting.wake_at
    )
    return replace(plan, reads=waiting.reads)


def _authorized_status(seen: Seen, cleared: Cleared, now: datetime) -> Status:
    """Return the status with what the check of access has found."""
    if cleared.reason is None:
        return untold(untold(seen.request.status, AUTHORIZED), NOTABLE)
    kind = NOTABLE if cleared.reason is Reason.KINDS_NOT_SERVED else AUTHORIZED
    return with_condition(seen, seen.request.status, Said(kind, TRUE, cleared.reason, cleared.message), now)


def _with_status(seen: Seen, status: Status) -> Seen:
    return msgspec.structs.replace(seen, request=msgspec.structs.replace(seen.request, status=status))
