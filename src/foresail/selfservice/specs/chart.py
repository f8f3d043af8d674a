"""What a spec for Velero may have whatever its policy allows: the fence of the operator's token refuses the rest."""

from collections.abc import Mapping
from typing import Any

from foresail.selfservice.reasons import Reason, Refused
from foresail.tenancy.policies import PolicyRow
from foresail.tenancy.volume_policies import VOLUME_POLICIES

_UPDATE = "update"


def beyond_chart(spec: Mapping[str, Any], path: str, policy: PolicyRow) -> Refused | None:
    """Return why the API server would refuse a spec that the policy allows; None if it would not."""
    chart = policy.chart
    if spec.get("hooks") and not chart.hooks:
        return _refused(f"{path}.hooks", "hooks")
    if spec.get("existingResourcePolicy") == _UPDATE and not chart.update_existing:
        return _refused(f"{path}.existingResourcePolicy {_UPDATE}", "updateExisting")
    if spec.get("namespaceMapping") and not chart.other_namespaces:
        return _refused(f"{path}.namespaceMapping", "otherNamespaces")
    for field, value, allowed in (
        ("resourcePolicy", "resourcePolicies", chart.resource_policies),
        ("resourceModifier", "resourceModifiers", chart.resource_modifiers),
    ):
        name = (spec.get(field) or {}).get("name")
        if name is not None and allowed is not None and name not in (*allowed, *VOLUME_POLICIES):
            return _refused(f"{path}.{field} {name}", value)
    return None


def _refused(field: str, value: str) -> Refused:
    text = f"{field} is off in this cluster, whatever the policy allows; remove it, or ask a cluster administrator"
    return Refused(Reason.POLICY_VIOLATION, f"{text} to set selfService.{value} of the chart")
