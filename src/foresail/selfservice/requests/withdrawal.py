"""Restores that Velero has and has not begun: deleted when the policy or the requester's access is gone.

A long restore of somebody else may keep one waiting for hours. What Velero has begun cannot be stopped.
"""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from foresail.api import velero
from foresail.plan import Delete, Plan
from foresail.selfservice.access import rules as access
from foresail.selfservice.access.observe import Recheck, Rechecked
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.requests import moment, rules
from foresail.selfservice.requests.authorization import options_of
from foresail.selfservice.requests.observe import RequestView
from foresail.selfservice.requests.plans import status_plan, with_condition
from foresail.selfservice.requests.status import ACCEPTED, FALSE, SUCCEEDED, NewCondition
from foresail.selfservice.rows.requests import Status
from foresail.selfservice.rows.velero import VeleroRow
from foresail.selfservice.specs.kinds import COME_WITH_CLAIMS
from foresail.tenancy.policies import PolicyRow

PAUSE = timedelta(minutes=1)
"""How often the access of a waiting restore is checked again."""

_spec = msgspec.json.Decoder(dict[str, Any])


class StillAllowed(msgspec.Struct, frozen=True):
    """A waiting restore that goes on: when to requeue it, and what to ask now."""

    wake_at: datetime | None = None
    read: Recheck | None = None


def is_withdrawn(view: RequestView) -> bool:
    """Whether a restore was withdrawn; that is final."""
    succeeded = view.request.status.condition(SUCCEEDED)
    return succeeded is not None and succeeded.reason in (Reason.RESTORE_WITHDRAWN, Reason.EXPIRED)


def judge(view: RequestView, row: VeleroRow, now: datetime) -> StillAllowed | Refused:
    """Return whether a waiting restore would be handed over today; its requester's access is asked each minute."""
    today = moment.expired(view, now) or _refused_before(view) or rules.restore_spec_today(view)
    if isinstance(today, Refused):
        return today
    try:
        handed_over = _spec.decode(row.spec)
    except (msgspec.DecodeError, RecursionError):
        return StillAllowed()  # not ours any more: Velero validates it
    policy = view.acting_policy
    if policy is not None and _exceeds(handed_over, today, policy):
        where = view.request.target or view.request.key.namespace
        text = f"The policy of namespace {where} no longer allows all kinds of this restore"
        return Refused(Reason.POLICY_VIOLATION, f"{text}; create a new one")
    if policy is None or not view.is_by_requester:
        return StillAllowed(now + PAUSE)
    return _by_access(view, Recheck(options_of(view, policy, handed_over)), row, now)


def _refused_before(view: RequestView) -> Refused | None:
    """Repeat the refusal of a restore whose Velero Restore was observed after it; None if it was not refused."""
    accepted = view.request.status.condition(ACCEPTED)
    return Refused(Reason.RESTORE_WITHDRAWN, accepted.message) if accepted and moment.is_final(view) else None


def _by_access(view: RequestView, query: Recheck, row: VeleroRow, now: datetime) -> StillAllowed | Refused:
    result = view.access.read_result if view.access is not None else None
    checked, asked_at = None, row.created  # the hand-over has asked too
    if result is not None and result.query == query and isinstance(result.found, Rechecked):
        checked = result.found
        asked_at = result.started
    if now >= asked_at + PAUSE:
        return StillAllowed(read=query)
    if checked is not None and checked.denied:
        what = f"{access.listed(checked.denied)} {query.options.where}"
        text = f"{query.options.user} may no longer create {what}"
        return Refused(Reason.ACCESS_DENIED, f"{text}; get access and create a new one")
    return StillAllowed(asked_at + PAUSE)


def withdraw(view: RequestView, row: VeleroRow, refused: Refused, now: datetime) -> Plan:
    """Delete the Velero Restore, unless it was begun meanwhile, and report why: in this order."""
    text = f"Withdrawn before Velero began it. {refused.message}"
    reason = refused.reason if refused.reason is Reason.EXPIRED else Reason.RESTORE_WITHDRAWN
    after = ended(view, reason, text, now)
    return status_plan(view, after, (Delete(velero.RESTORE, row.key, row.uid, row.version),))


def ended(view: RequestView, reason: Reason, text: str, now: datetime) -> Status:
    """Return the status of a restore whose Velero Restore is deleted and never began."""
    after = msgspec.structs.replace(view.request.status, position=0)
    for kind in (ACCEPTED, SUCCEEDED):
        after = with_condition(view, after, NewCondition(kind, FALSE, reason, text), now)
    return after


def _exceeds(handed_over: dict[str, Any], today: dict[str, Any], policy: PolicyRow) -> bool:
    """Whether Velero was given kinds that the policy allows no longer."""
    included = _names(handed_over, "includedResources")
    excluded = _names(handed_over, "excludedResources")
    allowed = policy.spec.restore.kinds.allowed
    if _names(today, "excludedResources") - excluded:
        return True
    if allowed is None:
        return False
    return not included or bool(included.difference(allowed, COME_WITH_CLAIMS, _names(today, "includedResources")))


def _names(spec: dict[str, Any], field: str) -> set[str]:
    return set(spec.get(field) or ())
