"""Checks in the namespaces of tenants: whether one is served, what bounds it, and when it may start.

Everything in such a RestoreCheck was written by a tenant. Its spec is replaced by one within the policy's bounds, and
a run is counted in an object that the tenant cannot delete.
"""

from datetime import datetime, timedelta
from enum import Enum, auto

import msgspec

from foresail.api.policy import RestoreChecksPolicy
from foresail.api.selectors import selects
from foresail.cron.duration import length_of
from foresail.plan import Claim
from foresail.proof.checks.reasons import Reason
from foresail.proof.checks.rows import LARGEST_SPEC, MOST_VALUES, CheckRow, RequestRow
from foresail.proof.checks.view import CheckView, Tenant

LONGEST_DEADLINE = "15m"
"""Of a tenant's check: while it runs, those of other tenants wait."""

MOST_EVIDENCE = 3
"""Records of a tenant's check in Velero's namespace."""

_NO_POLICY = RestoreChecksPolicy()


class Turn(Claim, Enum):
    """What a decision about a tenant's check says about its turn."""

    TAKES = auto()
    WAITS = auto()


class Wait(msgspec.Struct, frozen=True):
    """Why a check that is due does not start."""

    reason: Reason
    message: str
    until: datetime | None = None
    turn: Turn | None = None


# Whether it is served


def bounded(view: CheckView) -> CheckView:
    """Return a view with a tenant's check within its bounds; that of an administrator as it is."""
    if view.check is None or view.tenant is None:
        return view
    return msgspec.structs.replace(view, check=limited(view.check, view.tenant.policy))


def limited(check: CheckRow, policy: RestoreChecksPolicy | None) -> CheckRow:
    """Return a check within the bounds of tenants; `refusal` reports what a spec must not have at all."""
    spec = check.spec
    rules = policy or _NO_POLICY
    within = msgspec.structs.replace(
        spec,
        namespaces=(check.key.namespace,),
        deadline=min(spec.deadline, LONGEST_DEADLINE, key=lambda length: length_of(length) or timedelta()),
        evidence=min(spec.evidence, MOST_EVIDENCE),
    )
    return msgspec.structs.replace(check, spec=within, most_objects=rules.maximum_objects)


def refusal(check: CheckRow, tenant: Tenant) -> tuple[Reason, str] | None:
    """Return why a check is not served; None if it is."""
    namespace = check.key.namespace
    policy = tenant.policy
    if tenant.namespace is None or tenant.namespace.is_terminating:
        return Reason.NOT_ALLOWED, f"Namespace {namespace} is being deleted"
    if policy is None or not policy.maximum:
        text = f"RestoreChecks are not enabled in namespace {namespace}; ask a cluster administrator to enable them"
        return Reason.NOT_ALLOWED, text
    wrong = _not_for_tenants(check, policy)
    if wrong:
        return Reason.NOT_ALLOWED, wrong
    if tenant.rank >= policy.maximum:
        text = f"The policy serves {policy.maximum} RestoreChecks of namespace {namespace}, the oldest first"
        return Reason.QUOTA_EXCEEDED, f"{text}; delete one, or ask for more"
    return None


def _not_for_tenants(check: CheckRow, policy: RestoreChecksPolicy) -> str:
    """Return what a tenant's spec must not have, and what to do; empty if it is in order."""
    spec = check.spec
    here = check.key.namespace
    others = sorted(set(spec.custom_resources or ()) - set(policy.custom_resources))
    wrong = (
        (
            check.is_oversized,
            f"spec is larger than {LARGEST_SPEC // 1024} KiB of JSON or has more than {MOST_VALUES} values; shorten it",
        ),
        (
            spec.backups.schedule is not None or spec.backups.selector is not None,
            "spec.backups: schedule and selector are for administrators; use nonAdminSchedule or nonAdminBackups",
        ),
        (spec.depth != "Objects", f"spec.depth: {spec.depth} is for administrators; use Objects"),
        (
            any(namespace != here for namespace in spec.namespaces or ()),
            f"spec.namespaces: a check here restores namespace {here} only; remove the field",
        ),
        (
            bool(length_of(spec.keep_failed)),
            "spec.keepFailed: the sandbox of a tenant's check is never kept; remove the field",
        ),
        (
            bool(others),
            f"spec.customResources: the policy does not allow {others[0][:253] if others else ''}; remove it, or ask",
        ),
    )
    return next((text for is_wrong, text in wrong if is_wrong), "")


# Which backups


def is_chosen(check: CheckRow, request: RequestRow, schedule: RequestRow | None) -> bool:
    """Whether a check is about a NonAdminBackup of its own namespace."""
    chosen = check.spec.backups
    if request.is_terminating or request.key.namespace != check.key.namespace:
        return False
    if chosen.non_admin_schedule is not None:
        return schedule is not None and request.schedule_uid == schedule.uid
    return chosen.non_admin_backups is not None and selects(chosen.non_admin_backups, request.labels)


# When it starts


def wait(check: CheckRow, tenant: Tenant, run: str, now: datetime) -> Wait | None:
    """Return why a check that is due does not start now; None if it does."""
    rules = tenant.policy or _NO_POLICY
    again = may_start_at(check, tenant, run)
    if again is not None and again > now:
        text = f"The policy allows one check of a RestoreCheck and {rules.maximum} of the namespace"
        return Wait(Reason.TOO_SOON, f"{text} each {rules.minimum_interval}; the next starts automatically", again)
    if not tenant.is_free:
        text = "Few checks of all tenants run at a time, one of a namespace; this one starts when it is its turn"
        return Wait(Reason.WAITING_FOR_TURN, text, tenant.busy_until, Turn.WAITS)
    return None


def may_start_at(check: CheckRow, tenant: Tenant, run: str) -> datetime | None:
    """Return when the intervals of this check and of its namespace are over; None if nothing started lately.

    A start of this very run was counted before a crash, and nothing has run for it.
    """
    rules = tenant.policy or _NO_POLICY
    starts = [(start.created, start.check) for start in tenant.starts if start.created is not None and start.run != run]
    times = sorted(created for created, _ in starts)
    own = [created for created, name in starts if name == check.key.name]
    blocking = [max(own)] if own else []
    if len(times) >= max(rules.maximum, 1):
        blocking.append(times[-max(rules.maximum, 1)])
    return max(blocking) + interval(tenant) if blocking else None


def interval(tenant: Tenant | None) -> timedelta:
    """Return how long a start counts; nothing without a policy or a namespace."""
    if tenant is None or tenant.policy is None or tenant.namespace is None:
        return timedelta()
    return length_of(tenant.policy.minimum_interval) or timedelta()


def busy_until(row: CheckRow) -> datetime | None:
    """Return until when the run of a check takes the turn; None if it has none.

    A run that nobody ends, because its reconcile always fails, must not keep all other tenants waiting.
    """
    run = row.status.run
    return None if run is None or row.is_terminating else run.started + 2 * (length_of(LONGEST_DEADLINE) or timedelta())
