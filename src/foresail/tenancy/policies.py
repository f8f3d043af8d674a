"""Which SelfServicePolicy applies to a namespace; without one there is no self-service."""

from collections.abc import Collection, Iterable, Mapping

from foresail.api.policy import SelfServicePolicy, SelfServicePolicySpec
from foresail.api.selectors import selects
from foresail.plan import Key, Keyed

_SYSTEM = "kube-"


class PolicyRow(Keyed, frozen=True):
    """A policy, as decisions see it."""

    spec: SelfServicePolicySpec

    @property
    def name(self) -> str:
        """Its name; it has no namespace."""
        return self.key.name


def policy_row(wire: SelfServicePolicy) -> PolicyRow:
    """Return the row of a policy."""
    return PolicyRow(Key("", wire.metadata.name), wire.spec)


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
