"""Rows of SelfServicePolicies."""

from foresail.api.policy import SelfServicePolicy, SelfServicePolicySpec
from foresail.plan import Key, Keyed


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
