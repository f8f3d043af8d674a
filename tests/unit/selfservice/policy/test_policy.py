"""Which policy holds where, and when a quota is full."""

from typing import Any

import msgspec
import pytest

from foresail.api.selectors import problem_of, selects
from foresail.api.specs import LabelSelector
from foresail.selfservice.policy.quotas import no_policy, over_quota
from foresail.selfservice.reasons import Reason
from foresail.tenancy.policies import policy_for
from tests.unit.selfservice.policies import policy

TEAM = {"matchLabels": {"team": "web"}}


def test_the_highest_priority_applies_and_of_equals_the_first_by_name() -> None:
    low, high = policy("low", priority=-1), policy("high", priority=5)
    other = policy("another", priority=5)
    assert policy_for("shop", {}, [low, high], ()) is high
    assert policy_for("shop", {}, [high, other, low], ()) is other


def test_a_policy_that_does_not_match_does_not_hold_whatever_its_priority() -> None:
    everyone, web = policy("everyone"), policy("web", priority=9, namespaceSelector=TEAM)
    assert policy_for("shop", {"team": "web"}, [everyone, web], ()) is web
    assert policy_for("shop", {"team": "db"}, [everyone, web], ()) is everyone
    assert policy_for("shop", {}, [web], ()) is None


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        ({}, {}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
        ({"matchLabels": {"a": ""}}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, {"a": "2"}, True),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {"a": "1"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"a": ""}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {"a": ""}, False),
        ({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]}, {"a": "1"}, False),
    ],
)
def test_a_selector_means_what_it_means_to_kubernetes(
    selector: dict[str, Any], labels: dict[str, str], expected: bool
) -> None:
    read = msgspec.convert(selector, LabelSelector)
    assert selects(read, labels) is expected
    assert problem_of(read) is None


@pytest.mark.parametrize(
    "requirement",
    [
        {"key": "a", "operator": "In"},
        {"key": "a", "operator": "NotIn", "values": []},
        {"key": "a", "operator": "Exists", "values": ["1"]},
        {"key": "a", "operator": "DoesNotExist", "values": ["1"]},
    ],
)
def test_a_selector_that_cannot_be_read_selects_nothing(requirement: dict[str, Any]) -> None:
    read = msgspec.convert({"matchExpressions": [requirement]}, LabelSelector)
    assert problem_of(read) is not None
    assert not any(selects(read, labels) for labels in ({}, {"a": "1"}, {"a": "2"}, {"b": "1"}))


def test_without_a_policy_a_tenant_is_told_whom_to_ask() -> None:
    refused = no_policy("shop")
    assert refused.reason is Reason.NO_POLICY
    assert "shop; ask a cluster administrator" in refused.message


@pytest.mark.parametrize(
    ("quotas", "stored", "active", "fits"),
    [
        ({}, 10**6, 10**6, True),
        ({"stored": 2}, 1, 99, True),
        ({"stored": 2}, 2, 0, False),
        ({"stored": 2}, 3, 0, False),
        ({"stored": 0}, 0, 0, False),
        ({"active": 1}, 99, 0, True),
        ({"active": 1}, 0, 1, False),
        ({"active": 0}, 0, 0, False),
    ],
)
def test_one_more_backup_fits_or_not(quotas: dict[str, int], stored: int, active: int, fits: bool) -> None:
    refused = over_quota(policy(quotas=quotas), stored, active)
    assert (refused is None) is fits
    assert refused is None or (refused.reason is Reason.QUOTA_EXCEEDED and "SelfServicePolicy team" in refused.message)
