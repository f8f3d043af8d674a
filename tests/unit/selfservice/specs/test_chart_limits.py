"""What the chart does not let policies allow is refused with a reason that names the value of the chart."""

from typing import Any

import msgspec
import pytest

from foresail.api.policy import SelfServicePolicySpec
from foresail.plan import Key
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.specs.build import backup_spec, restore_spec
from foresail.selfservice.specs.location import location_spec
from foresail.tenancy.policies import ChartLimits, PolicyRow, Reach

CLOSED = ChartLimits(
    hooks=False, update_existing=False, other_namespaces=False, resource_policies=("ours",), resource_modifiers=()
)
HOOKS = {"resources": [{"name": "x", "pre": [{"exec": {"command": ["dump"]}}]}]}
OPEN = {
    "namespaceSelector": {},
    "backup": {"hooks": {"allowed": True}, "allowed": {"resourcePolicies": ["ours", "theirs"]}},
    "restore": {
        "allowed": {"existingResourcePolicies": ["update"], "resourceModifiers": ["theirs"]},
    },
    "locations": {"allowed": True},
}


def policy(chart: ChartLimits) -> PolicyRow:
    return PolicyRow(Key("", "open"), msgspec.convert(OPEN, SelfServicePolicySpec), chart)


def config_map(name: str) -> dict[str, str]:
    return {"kind": "configmap", "name": name}


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        ({"hooks": HOOKS}, "selfService.hooks"),
        ({"resourcePolicy": config_map("theirs")}, "selfService.resourcePolicies"),
    ],
)
def test_a_backup_beyond_the_chart_is_refused(spec: dict[str, Any], value: str) -> None:
    found = backup_spec(spec, "shop", policy(CLOSED))
    assert isinstance(found, Refused)
    assert found.reason is Reason.POLICY_VIOLATION
    assert value in found.message
    assert isinstance(backup_spec(spec, "shop", policy(ChartLimits())), dict)


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        ({"existingResourcePolicy": "update"}, "selfService.updateExisting"),
        ({"resourceModifier": config_map("theirs")}, "selfService.resourceModifiers"),
    ],
)
def test_a_restore_beyond_the_chart_is_refused(spec: dict[str, Any], value: str) -> None:
    asked = {"backupName": "daily", **spec}
    found = restore_spec(asked, "shop", "shop-daily", policy(CLOSED))
    assert isinstance(found, Refused)
    assert value in found.message
    assert isinstance(restore_spec(asked, "shop", "shop-daily", policy(ChartLimits())), dict)


def test_what_the_chart_lists_is_allowed() -> None:
    assert isinstance(backup_spec({"resourcePolicy": config_map("ours")}, "shop", policy(CLOSED)), dict)


def test_an_endpoint_that_the_chart_does_not_list_is_refused() -> None:
    storage = {"provider": "aws", "objectStorage": {"bucket": "mine"}, "credential": {"name": "keys", "key": "cloud"}}
    found = location_spec(storage, "shop", policy(ChartLimits(endpoints=("https://s3.example.com",))))
    assert isinstance(found, Refused)
    assert "selfService.locations.endpoints" in found.message


@pytest.mark.parametrize(
    ("namespace", "is_out"),
    [("team-a", False), ("team-secret", True), ("argocd", True), ("shop", True), ("teams", True)],
)
def test_namespaces_are_named_or_have_a_prefix(namespace: str, *, is_out: bool) -> None:
    reach = Reach(excluded=("argocd", "team-secret*"), included=("team-*", "argocd"))
    assert (namespace in reach) == is_out


def test_without_a_list_every_namespace_is_in_reach() -> None:
    assert "shop" not in Reach()


def test_a_restore_into_another_namespace_beyond_the_chart_is_refused() -> None:
    asked = {"backupName": "daily", "namespaceMapping": {"shop": "stage"}}
    found = restore_spec(asked, "shop", "shop-daily", policy(CLOSED), "stage")
    assert isinstance(found, Refused)
    assert found.reason is Reason.POLICY_VIOLATION
    assert "selfService.otherNamespaces" in found.message
    assert isinstance(restore_spec(asked, "shop", "shop-daily", policy(ChartLimits()), "stage"), dict)
