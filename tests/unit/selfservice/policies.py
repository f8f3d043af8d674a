"""Policies for tests, as an administrator writes them."""

from typing import Any

import msgspec

from foresail.api.policy import SelfServicePolicySpec
from foresail.plan import Key
from foresail.tenancy.policies import PolicyRow


def policy(name: str = "team", **spec: Any) -> PolicyRow:  # noqa: ANN401 - a manifest
    return PolicyRow(Key("", name), msgspec.convert({"namespaceSelector": {}, **spec}, SelfServicePolicySpec))
