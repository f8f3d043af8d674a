"""The moment of a restore: it acts when it was asked for or not at all.

A restore overwrites what came after its request, so a refusal is final and a wait ends. Only its requester starts it
again, by an edit of its spec: `foresail restore retry` is one. A backup may wait.

All times are the API server's: it has recorded when a restore was asked for, and the operator's clock may be slow.
"""

from datetime import datetime, timedelta

import msgspec

from foresail.api.instants import instant, stamp
from foresail.cron.duration import length_of
from foresail.plan import Plan
from foresail.selfservice.families import RESTORES
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.requests.rules import is_refused
from foresail.selfservice.requests.status import ACCEPTED, CREATED
from foresail.selfservice.requests.view import RequestView
from foresail.selfservice.rows.requests import RequestRow

_AN_HOUR = timedelta(hours=1)


def is_final(view: RequestView) -> bool:
    """Whether a restore was refused or has expired, and nobody has edited it since."""
    request = view.request
    accepted = request.status.condition(ACCEPTED)
    return view.family is RESTORES and _is_about(request) and is_refused(RESTORES, request.status.phase, accepted)


def is_asked_again(view: RequestView) -> bool:
    """Whether an accepted restore was edited since; what is recorded is about an earlier request then."""
    return view.family is RESTORES and not _is_about(view.request)


def starting_deadline(view: RequestView, now: datetime) -> datetime | None:
    """Return until when a restore may start; None if it has no limit: a backup, or one that nobody has asked for.

    What was promised to this request holds, whatever the policy says now.
    """
    request = view.request
    policy = view.policy
    if view.family is not RESTORES or request.restored_by:
        return None
    promised = instant(request.status.starting_deadline)
    if promised is not None and (request.status.phase == CREATED or _is_about(request)):
        return promised
    length = length_of(policy.spec.restore.starting_deadline) if policy is not None else None
    return _asked(request, now - view.skew) + (_AN_HOUR if length is None else length)


def expired(view: RequestView, now: datetime) -> Refused | None:
    """Report that a restore can start no more; None if it can, or may wait."""
    by = starting_deadline(view, now)
    if by is None or now - view.skew < by:
        return None
    name = view.request.key.name
    again = "create another one"
    if view.request.status.phase != CREATED:
        again = f"ask again with foresail restore retry {name} --namespace {view.request.key.namespace}"
    return Refused(Reason.EXPIRED, f"The restore did not start until {stamp(by)}, so it does not run; {again}")


def until(view: RequestView, message: str, now: datetime) -> str:
    """Return a message about a wait, with the end of the wait."""
    by = starting_deadline(view, now)
    return message if by is None else f"{message}. It expires at {stamp(by)}"


def bounded(view: RequestView, plan: Plan, now: datetime) -> Plan:
    """Return a Plan that wakes at the end of the wait at the latest."""
    by = starting_deadline(view, now)
    if by is None or by <= now - view.skew:
        return plan
    at = by + view.skew
    return msgspec.structs.replace(plan, wake_at=at if plan.wake_at is None else min(plan.wake_at, at))


def _is_about(request: RequestRow) -> bool:
    """Whether what is recorded is about the current spec; a request that a restore brought back was not asked for."""
    accepted = request.status.condition(ACCEPTED)
    if accepted is None or accepted.observed_generation != request.generation:
        return False
    return accepted.reason != Reason.RESTORED_FROM_BACKUP


def _asked(request: RequestRow, now: datetime) -> datetime:
    """Return when a restore was asked for: its creation, or the last edit; now if that cannot be known."""
    accepted = request.status.condition(ACCEPTED)
    if accepted is not None and accepted.reason == Reason.RESTORED_FROM_BACKUP:
        return now  # released just now, by who removed the label
    if request.generation <= 1:
        return request.created
    return now if request.edited is None else max(request.created, min(request.edited, now))
