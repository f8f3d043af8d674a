"""What a SelfServicePolicy lets a restore do with objects that exist, by the operator's own rule."""

from typing import get_args

from foresail.api.policy import ExistingResourcePolicy, SelfServicePolicy
from foresail.selfservice.reasons import Refused
from foresail.selfservice.specs.build import restore_spec
from foresail.tenancy.policies import policy_row


def existing_resource_policies(policy: SelfServicePolicy) -> tuple[str, ...]:
    """Return the values of `existingResourcePolicy` with which the policy does not refuse a restore."""
    row = policy_row(policy)

    def is_allowed(value: str) -> bool:
        asked = {"backupName": "any", "existingResourcePolicy": value}
        return not isinstance(restore_spec(asked, "any", "any", row), Refused)

    return tuple(value for value in get_args(ExistingResourcePolicy) if is_allowed(value))
