"""What a policy refuses in whole: anything without one, and one more backup or restore beyond a quota."""

from foresail.selfservice.reasons import Reason, Refused
from foresail.tenancy.policies import PolicyRow


def no_policy(namespace: str) -> Refused:
    """Return the refusal in a namespace without a policy."""
    text = f"Self-service is not enabled in namespace {namespace}; ask a cluster administrator to enable it"
    return Refused(Reason.NO_POLICY, text)


def counted(stored: int, expired: int, quota: int | None) -> int:
    """Return how many stored backups count against a quota.

    Once the quota is reached, as many of the expired ones as the quota do not count: short-lived backups must not fill
    the bucket until Velero collects them, once an hour.
    """
    return stored if quota is None or stored < quota else stored - min(expired, quota)


def over_quota(policy: PolicyRow, stored: int, active: int, expired: int = 0) -> Refused | None:
    """Report why one more backup does not fit beside those that a namespace has; None if it does.

    `stored` counts every backup of the namespace that exists, `active` those that Velero has not finished.
    """
    quotas = policy.spec.quotas
    stored = counted(stored, expired, quotas.stored)
    return _reached("backup", "quotas", (stored, quotas.stored), (active, quotas.active), policy)


def over_restore_quota(policy: PolicyRow, stored: int, active: int) -> Refused | None:
    """Report why one more restore does not fit beside those that a namespace has; None if it does."""
    quotas = policy.spec.quotas.restores
    return _reached("restore", "quotas.restores", (stored, quotas.stored), (active, quotas.active), policy)


def _reached(
    word: str, field: str, stored: tuple[int, int | None], active: tuple[int, int | None], policy: PolicyRow
) -> Refused | None:
    """Return what a tenant reads about the first limit that is reached, of how many there are and may be."""
    if _is_reached(*stored):
        text = f"Limit of {stored[1]} stored {word}s reached; delete one with foresail {word} delete, or ask a cluster"
        more = f"administrator to raise {field}.stored of SelfServicePolicy {policy.name}"
        return Refused(Reason.QUOTA_EXCEEDED, f"{text} {more}")
    if _is_reached(*active):
        wait = "starts automatically when one finishes" if active[1] else f"no {word} may start"
        text = (
            f"Limit of {active[1]} concurrent {word}s reached; {wait}. To raise it, ask a cluster administrator about"
        )
        return Refused(Reason.QUOTA_EXCEEDED, f"{text} {field}.active of SelfServicePolicy {policy.name}")
    return None


def _is_reached(count: int, most: int | None) -> bool:
    return most is not None and count >= most
