"""Restores into another namespace: whether a restore may create its objects there.

The policies of both namespaces must allow it, and that of the target applies: it is there that objects are created.
What the requester may get here and create there is asked before the hand-over, like everything about access.
Until then nothing is said of the target that would tell one which does not exist from one which takes no restores.
"""

from foresail.selfservice.policy.quotas import over_restore_quota
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.requests.observe import RequestView, Target
from foresail.selfservice.specs.values import shown
from foresail.tenancy.policies import PolicyRow

_RESTRICTED = "NonAdminRestore nonAdminRestore.spec.restoreSpec.namespaceMapping is restricted"


def acting_policy(view: RequestView, policy: PolicyRow) -> PolicyRow | Refused:
    """Return the policy that a restore is built by: that of the namespace with the objects, if both allow it."""
    target = view.request.target
    if not target:
        return policy
    if not _allows(policy):
        more = f"a cluster administrator can set restore.intoOtherNamespaces in SelfServicePolicy {policy.name}"
        return Refused(Reason.INVALID_RESTORE_SPEC, f"{_RESTRICTED}; {more}")
    if view.is_from_own_location:
        text = "a backup in a storage location of the tenant is not restored into another namespace"
        return Refused(Reason.INVALID_RESTORE_SPEC, f"{_RESTRICTED}: {text}; remove it")
    acting = view.target.policy if view.target is not None and _is_live(view.target) else None
    if acting is None or not _allows(acting):
        text = f"namespace {shown(target)} does not exist, or its policy does not set restore.intoOtherNamespaces"
        return Refused(Reason.INVALID_RESTORE_SPEC, f"{_RESTRICTED}: {text}: Allowed")
    return acting


def over_quota(target: Target | None) -> Refused | None:
    """Report why the target takes no more restores; its requester asks again, for the wait would be there."""
    if target is None or target.policy is None:
        return None
    over = over_restore_quota(target.policy, target.stored, target.active)
    if over is None:
        return None
    text = f"Namespace {target.name} has as many restores as quotas.restores of its SelfServicePolicy allow"
    return Refused(Reason.POLICY_VIOLATION, f"{text}; when one has finished, run foresail restore retry")


def _allows(policy: PolicyRow) -> bool:
    return policy.spec.restore.into_other_namespaces == "Allowed"


def _is_live(target: Target) -> bool:
    return target.namespace is not None and not target.namespace.is_terminating
