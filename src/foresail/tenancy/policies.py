"""Which SelfServicePolicy applies to a namespace; without one there is no self-service."""

from collections.abc import Container, Iterable, Mapping

import msgspec

from foresail.api.policy import SelfServicePolicy, SelfServicePolicySpec
from foresail.api.selectors import precedence, selects
from foresail.plan import Key, Keyed
from foresail.tenancy.namespaces import NOT_LABELLED, AdmissionLabels

REFUSED, ALLOWED = "refused", "allowed"
"""The values of the labels for admission."""

_SYSTEM = "kube-"


class Reach(msgspec.Struct, frozen=True):
    """The namespaces without self-service, by names and prefixes (team-*): those excluded, and those not included."""

    excluded: tuple[str, ...] = ()
    included: tuple[str, ...] = ()  # all if empty

    def __contains__(self, namespace: object) -> bool:
        name = str(namespace)
        is_included = not self.included or any(_fits(name, pattern) for pattern in self.included)
        return not is_included or any(_fits(name, pattern) for pattern in self.excluded)


def _fits(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


class ChartLimits(msgspec.Struct, frozen=True):
    """What the chart lets policies allow; the fence of the operator's token refuses anything beyond it."""

    hooks: bool = True
    update_existing: bool = True
    other_namespaces: bool = True
    from_protection: bool = True
    rollback_volumes: bool = True
    resource_policies: tuple[str, ...] | None = None  # None: any that a policy allows
    resource_modifiers: tuple[str, ...] | None = None
    endpoints: tuple[str, ...] = ()  # of tenants' buckets; any if empty
    out_of_reach: Reach = Reach()


class PolicyRow(Keyed, frozen=True):
    """A policy, as decisions see it, and what the chart lets it allow."""

    spec: SelfServicePolicySpec
    chart: ChartLimits = ChartLimits()

    @property
    def name(self) -> str:
        """Its name; it has no namespace."""
        return self.key.name


def policy_row(wire: SelfServicePolicy, chart: ChartLimits | None = None) -> PolicyRow:
    """Return the row of a policy."""
    return PolicyRow(Key("", wire.metadata.name), wire.spec, chart or ChartLimits())


def policy_for(
    namespace: str, labels: Mapping[str, str], policies: Iterable[PolicyRow], never: Container[str]
) -> PolicyRow | None:
    """Return the policy of a namespace; None if it has no self-service.

    What the cluster itself lives in (`kube-*`) and the namespaces in `never`, Velero's and ours, have no policy.
    """
    if is_out_of_reach(namespace, never):
        return None
    matching = (policy for policy in policies if selects(policy.spec.namespace_selector, labels))
    return min(matching, key=lambda policy: precedence(policy.spec.priority, policy.name), default=None)


def admission_labels(
    namespace: str, labels: Mapping[str, str], policies: Iterable[PolicyRow], never: Container[str]
) -> AdmissionLabels:
    """Return the labels for admission that a namespace should have, by the policy that applies to it."""
    policy = policy_for(namespace, labels, policies, never)
    if policy is None:
        return NOT_LABELLED
    return AdmissionLabels(
        ALLOWED if policy.spec.velero_annotations == "Allowed" else REFUSED,
        ALLOWED if policy.spec.backup.file_system == "Allowed" else REFUSED,
    )


def at_least(labels: AdmissionLabels, current: AdmissionLabels) -> AdmissionLabels:
    """Return labels that refuse whatever one of two refuses: while a policy is unreadable, nothing becomes allowed."""
    values = zip(labels.by_key().values(), current.by_key().values(), strict=True)
    return AdmissionLabels(*(REFUSED if REFUSED in pair else pair[0] or pair[1] for pair in values))


def is_out_of_reach(namespace: str, never: Container[str]) -> bool:
    """Whether a namespace never has self-service, whatever the policies."""
    return namespace.startswith(_SYSTEM) or namespace in never
