"""Which policy applies to a namespace; without one there is no self-service."""

from collections.abc import Collection, Iterable, Mapping

from foresail.api.selectors import selects
from foresail.selfservice.policy.observe import PolicyRow
from foresail.selfservice.reasons import Reason, Refused

_SYSTEM = "kube-"


def policy_for(
    namespace: str, labels: Mapping[str, str], policies: Iterable[PolicyRow], never: Collection[str]
) -> PolicyRow | None:
    """Return the policy of a namespace; None if it has no self-service.

    Of those that match, the highest priority applies; of equals, the first by name. What the cluster itself lives in
    (`kube-*`) and the namespaces in `never`, Velero's and ours, have no policy.
    """
    if is_out_of_reach(namespace, never):
        return None
    matching = (each for each in policies if selects(each.spec.namespace_selector, labels))
    return min(matching, key=lambda each: (-each.spec.priority, each.name), default=None)


def is_out_of_reach(namespace: str, never: Collection[str]) -> bool:
    """Whether a namespace never has self-service, whatever the policies."""
    return namespace.startswith(_SYSTEM) or namespace in never


def no_policy(namespace: str) -> Refused:
    """Return the refusal in a namespace without a policy."""
    text = f"Self-service is not enabled in namespace {namespace}; ask a cluster administrator to enable it"
    return Refused(Reason.NO_POLICY, text)
