"""What a policy refuses in whole: anything without one, and one more backup or restore beyond a quota."""

from foresail.selfservice.reasons import Reason, Refused
from foresail.tenancy.policies import PolicyRow


def no_policy(namespace: str) -> Refused:
    """Return the refusal in a namespace without a policy."""
    text = f"Self-service is not enabled in namespace {namespace}; ask a cluster administrator to enable it"
    return Refused(Reason.NO_POLICY, text)


Limit = tuple[int, int | None, Refused]
"""How many there are, how many there may be (None: any number), and what a tenant reads if there are as many."""


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
    too_many = Refused(
        Reason.QUOTA_EXCEEDED,
        f"Limit of {quotas.stored} stored backups reached; delete one with foresail backup delete, or ask a cluster "
        f"administrator to raise quotas.stored of SelfServicePolicy {policy.name}",
    )
    wait = "starts automatically when one finishes" if quotas.active else "no backup may start"
    too_many_at_once = Refused(
        Reason.QUOTA_EXCEEDED,
        f"Limit of {quotas.active} concurrent backups reached; {wait}. To raise it, ask a cluster administrator about "
        f"quotas.active of SelfServicePolicy {policy.name}",
    )
    return _reached((stored, quotas.stored, too_many), (active, quotas.active, too_many_at_once))


def over_restore_quota(policy: PolicyRow, stored: int, active: int) -> Refused | None:
    """Report why one more restore does not fit beside those that a namespace has; None if it does."""
    quotas = policy.spec.quotas.restores
    too_many = Refused(
        Reason.QUOTA_EXCEEDED,
        f"Limit of {quotas.stored} stored restores reached; delete one with foresail restore delete, or ask a cluster "
        f"administrator to raise quotas.restores.stored of SelfServicePolicy {policy.name}",
    )
    wait = "starts automatically when one finishes" if quotas.active else "no restore may start"
    too_many_at_once = Refused(
        Reason.QUOTA_EXCEEDED,
        f"Limit of {quotas.active} concurrent restores reached; {wait}. To raise it, ask a cluster administrator about "
        f"quotas.restores.active of SelfServicePolicy {policy.name}",
    )
    return _reached((stored, quotas.stored, too_many), (active, quotas.active, too_many_at_once))


def _reached(*limits: Limit) -> Refused | None:
    """Return what a tenant reads about the first limit that is reached."""
    return next((refused for count, quota, refused in limits if quota is not None and count >= quota), None)
