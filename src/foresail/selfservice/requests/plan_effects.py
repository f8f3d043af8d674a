"""What a controller must remember of a Plan before the cluster shows it."""

from foresail.plan import Create, Plan
from foresail.selfservice.requests import rules
from foresail.selfservice.requests.status import (
    AUTHORIZED,
    TRUE,
)
from foresail.selfservice.requests.view import RequestView


def reserves_quota(plan: Plan, view: RequestView) -> bool:
    """Whether a Plan records a nacuuid, and so uses quota."""
    body = plan.status.body.get("status") if plan.status else None
    return isinstance(body, dict) and bool(body.get(view.family.reference)) and not rules.has_nacuuid(view.request)


def creates(plan: Plan, view: RequestView) -> bool:
    """Whether a Plan creates the Velero object of a request, which is then in Velero's queue."""
    return any(isinstance(action, Create) and action.kind == view.family.velero for action in plan.actions)


def authorizes(plan: Plan, view: RequestView) -> bool:
    """Whether a Plan records the result of the access check; the next one creates the Velero object."""
    body = plan.status.body.get("status") if plan.status else None
    conditions = body.get("conditions") if isinstance(body, dict) else None
    found = conditions if isinstance(conditions, (list, tuple)) else ()
    is_authorized = any(item.get("type") == AUTHORIZED and item.get("status") == TRUE for item in found)
    return is_authorized and not view.turn.is_blocked and not plan.actions
