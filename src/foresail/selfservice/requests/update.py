"""A request that has its Velero object: mirror it, notice that it was deleted, and remove old restores.

A restore that Velero has and has not begun is deleted when the policy or the requester's access is gone: a long
restore of somebody else may keep it waiting for hours. What Velero has begun cannot be stopped.
"""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from foresail.api import velero
from foresail.plan import Delete, Plan
from foresail.selfservice.access import rules as access
from foresail.selfservice.access.view import Recheck, Rechecked
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.requests import build, moment, outcome, rules
from foresail.selfservice.requests.authorization import options_of
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
from foresail.selfservice.requests.view import RequestView
from foresail.selfservice.rows.requests import Status
from foresail.selfservice.rows.velero import VeleroRow, without_bytes
from foresail.selfservice.specs.annotations import MODIFIER
from foresail.selfservice.specs.kinds import COME_WITH_CLAIMS
from foresail.tenancy.policies import PolicyRow


def update_from_velero(view: RequestView, row: VeleroRow, now: datetime) -> Plan:
    """Mirror Velero's status; a restore that waits is withdrawn when it is no longer allowed."""
    if view.family is BACKUPS or not row.is_waiting or row.is_terminating:
        return _mirror(view, row, now)
    if _is_withdrawn(view):
        return Plan()  # its deletion is not observed yet
    judged = _judge_waiting(view, row, now)
    if isinstance(judged, Refused):
        return _withdraw(view, row, judged, now)
    plan = moment.bounded(view, _mirror(view, row, now), now)
    wakes = [at for at in (plan.wake_at, judged.wake_at) if at is not None]
    reads = (judged.read,) if judged.read is not None else ()
    return msgspec.structs.replace(plan, wake_at=min(wakes, default=None), reads=reads, subject=subject_of(view))


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
        return status_plan(view, _withdrawn_status(view, expired.reason, expired.message, now))
    text = rules.why_deleted(view)
    before = request.status
    after = msgspec.structs.replace(
        before,
        position=0,
        transfers=without_bytes(before.transfers),
        volumes=without_bytes(before.volumes),
    )
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


PAUSE = timedelta(minutes=1)
"""How often the access of a waiting restore is checked again."""

_spec = msgspec.json.Decoder(dict[str, Any])


class _StillAllowed(msgspec.Struct, frozen=True):
    """A waiting restore that goes on: when to requeue it, and what to ask now."""

    wake_at: datetime | None = None
    read: Recheck | None = None


def _is_withdrawn(view: RequestView) -> bool:
    """Whether a restore was withdrawn; that is final."""
    succeeded = view.request.status.condition(SUCCEEDED)
    return succeeded is not None and succeeded.reason in (Reason.RESTORE_WITHDRAWN, Reason.EXPIRED)


def _judge_waiting(view: RequestView, row: VeleroRow, now: datetime) -> _StillAllowed | Refused:
    """Return whether a waiting restore would be handed over today; its requester's access is asked each minute."""
    today = moment.expired(view, now) or _refused_before(view) or rules.restore_spec_today(view)
    if isinstance(today, Refused):
        return today
    try:
        handed_over = _spec.decode(row.spec)
    except (msgspec.DecodeError, RecursionError):
        return _StillAllowed()  # not ours any more: Velero validates it
    field = _differing(handed_over, today)
    if field:
        text = f"spec.restoreSpec.{field} or the policy about it has changed since Velero got the restore"
        return Refused(Reason.POLICY_VIOLATION, f"{text}; create a new one")
    policy = view.acting_policy
    if policy is not None and _exceeds(handed_over, today, policy):
        where = view.request.target or view.request.key.namespace
        text = f"The policy of namespace {where} no longer allows all kinds of this restore"
        return Refused(Reason.POLICY_VIOLATION, f"{text}; create a new one")
    if policy is None or not view.is_by_requester:
        return _StillAllowed(now + PAUSE)
    return _by_access(view, Recheck(options_of(view, policy, handed_over)), row, now)


def _refused_before(view: RequestView) -> Refused | None:
    """Repeat the refusal of a restore whose Velero Restore was observed after it; None if it was not refused."""
    accepted = view.request.status.condition(ACCEPTED)
    return Refused(Reason.RESTORE_WITHDRAWN, accepted.message) if accepted and moment.is_final(view) else None


def _by_access(view: RequestView, query: Recheck, row: VeleroRow, now: datetime) -> _StillAllowed | Refused:
    result = view.access.read_result if view.access is not None else None
    checked = None
    asked_at = row.created  # the hand-over has asked too
    if result is not None and result.query == query and isinstance(result.answer, Rechecked):
        checked = result.answer
        asked_at = result.started
    if now >= asked_at + PAUSE:
        return _StillAllowed(read=query)
    if checked is not None and checked.denied:
        what = f"{access.listed(checked.denied)} {query.options.where}"
        text = f"{query.options.user} may no longer create {what}"
        return Refused(Reason.ACCESS_DENIED, f"{text}; get access and create a new one")
    return _StillAllowed(asked_at + PAUSE)


def _withdraw(view: RequestView, row: VeleroRow, refused: Refused, now: datetime) -> Plan:
    """Delete the Velero Restore, unless it was begun meanwhile, and report why: in this order."""
    text = f"Withdrawn before Velero began it. {refused.message}"
    reason = refused.reason if refused.reason is Reason.EXPIRED else Reason.RESTORE_WITHDRAWN
    after = _withdrawn_status(view, reason, text, now)
    return status_plan(view, after, (Delete(velero.RESTORE, row.key, row.uid, row.version),))


def _withdrawn_status(view: RequestView, reason: Reason, text: str, now: datetime) -> Status:
    """Return the status of a restore whose Velero Restore is deleted and never began."""
    after = msgspec.structs.replace(view.request.status, position=0)
    for kind in (ACCEPTED, SUCCEEDED):
        after = with_condition(view, after, NewCondition(kind, FALSE, reason, text), now)
    return after


_JUDGED = (
    *("backupName", "namespaceMapping", "existingResourcePolicy", "hooks", "resourceModifier", "resourcePolicy"),
    "restorePVs",
)
"""The fields of which a policy allows one value and not another, or by which others are judged."""


def _differing(handed_over: dict[str, Any], today: dict[str, Any]) -> str:
    """Return the field in which Velero was given other than it would get today; empty if none.

    A tenant can edit its spec after the hand-over: what is allowed of the one must not speak for the other.
    """
    values = ((field, _set(handed_over, field), _set(today, field)) for field in _JUDGED)
    return next((field for field, given, now in values if given != now and not _is_stricter(field, given, now)), "")


def _is_stricter(field: str, given: Any, today: Any) -> bool:  # noqa: ANN401 - JSON
    """Whether Velero was given less than it would get today: a policy that allows more withdraws nothing."""
    match field:
        case "restorePVs":
            return given is False
        case "existingResourcePolicy":
            return given in (None, "none")
        case "hooks":
            return given is None
        case "resourceModifier":
            return today is None and given.get("name") == MODIFIER
        case _:
            return False


def _set(spec: dict[str, Any], field: str) -> Any:  # noqa: ANN401 - JSON
    value = spec.get(field)
    return None if value in ({}, "") else value


def _exceeds(handed_over: dict[str, Any], today: dict[str, Any], policy: PolicyRow) -> bool:
    """Whether Velero was given kinds that the policy allows no longer."""
    included = _names_in(handed_over, "includedResources")
    excluded = _names_in(handed_over, "excludedResources")
    allowed = policy.spec.restore.kinds.allowed
    if _names_in(today, "excludedResources") - excluded:
        return True
    if allowed is None:
        return False
    return not included or bool(included.difference(allowed, COME_WITH_CLAIMS, _names_in(today, "includedResources")))


def _names_in(spec: dict[str, Any], field: str) -> set[str]:
    return set(spec.get(field) or ())
