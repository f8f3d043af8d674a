"""Whether one more backup fits: how many a namespace may have stored, and how many on their way at once."""

from foresail.selfservice.policy.observe import PolicyRow
from foresail.selfservice.reasons import Reason, Refused


def counted(stored: int, expired: int, quota: int | None) -> int:
    """Return how many stored backups count against a quota.

    Of those that have expired, as many as the quota do not count: short-lived backups must not fill the bucket until
    Velero collects them, once an hour.
    """
    return stored - min(expired, quota or 0)


def over_quota(policy: PolicyRow, stored: int, active: int, expired: int = 0) -> Refused | None:
    """Say why one more backup does not fit beside those that a namespace has; None if it does.

    `stored` counts every backup of the namespace that exists, `active` those that Velero has not finished.
    """
    quotas = policy.spec.quotas
    stored = counted(stored, expired, quotas.stored)
    if quotas.stored is not None and stored >= quotas.stored:
        return Refused(
            Reason.QUOTA_EXCEEDED,
            f"{stored} of {quotas.stored} backups are stored: delete one (set spec.deleteBackup of its NonAdminBackup "
            f"to true), or ask the administrator to raise quotas.stored of SelfServicePolicy {policy.name}",
        )
    if quotas.active is not None and active >= quotas.active:
        wait = "this one starts when one of them has ended" if quotas.active else "none may start"
        return Refused(
            Reason.QUOTA_EXCEEDED,
            f"{active} of {quotas.active} backups at once are under way: {wait}; to have more at once, ask the "
            f"administrator to raise quotas.active of SelfServicePolicy {policy.name}",
        )
    return None


def over_restore_quota(policy: PolicyRow, stored: int, active: int) -> Refused | None:
    """Say why one more restore does not fit beside those that a namespace has; None if it does."""
    quotas = policy.spec.quotas.restores
    if quotas.stored is not None and stored >= quotas.stored:
        return Refused(
            Reason.QUOTA_EXCEEDED,
            f"{stored} of {quotas.stored} restores exist: delete a NonAdminRestore, or ask the administrator to raise "
            f"quotas.restores.stored of SelfServicePolicy {policy.name}",
        )
    if quotas.active is not None and active >= quotas.active:
        wait = "starts automatically when one finishes" if quotas.active else "no restore may start"
        return Refused(
            Reason.QUOTA_EXCEEDED,
            f"Limit of {quotas.active} concurrent restores reached; {wait}. To raise it, ask the administrator about "
            f"quotas.restores.active of SelfServicePolicy {policy.name}",
        )
    return None
