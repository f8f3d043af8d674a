"""How long Velero waits for snapshots: each claim has its share of one hour, whatever the tenant writes."""

from typing import Any

import pytest

from foresail.cron.duration import length_of
from foresail.selfservice.access.rules import holds_claims
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.specs.snapshot_timeout import BUDGET, SHORTEST, within_budget
from tests.unit.selfservice.policies import policy

FIELD = "csiSnapshotTimeout"


@pytest.mark.parametrize(
    ("asked", "claims", "handed_over"),
    [
        ("", 0, None),
        ("", 6, None),  # Velero's own 10 minutes
        ("", 7, "514s"),
        ("5m", 12, "5m"),
        ("5m", 13, "276s"),
        ("0", 7, "514s"),  # Velero takes its own for it
        ("", 120, "30s"),
        ("20s", 120, "20s"),
    ],
)
def test_each_claim_has_its_share(asked: str, claims: int, handed_over: str | None) -> None:
    spec = {FIELD: asked} if asked else {}
    made = within_budget(spec, claims, policy())
    assert isinstance(made, dict)
    assert made.get(FIELD) == handed_over


@pytest.mark.parametrize("claims", range(1, 121))
def test_all_claims_together_take_an_hour_at_most(claims: int) -> None:
    for asked in ({}, {FIELD: "10m"}, {FIELD: "9999h"}, {FIELD: "1ns"}, {FIELD: "0s"}):
        made = within_budget(asked, claims, policy())
        assert isinstance(made, dict)
        length = length_of(made.get(FIELD) or "10m")
        assert length is not None
        assert claims * length <= BUDGET


def test_too_many_claims_are_refused_with_what_to_do() -> None:
    found = within_budget({}, BUDGET // SHORTEST + 1, policy())
    assert isinstance(found, Refused)
    assert found.reason is Reason.POLICY_VIOLATION
    assert found.message.startswith("The namespace has 121 volume claims")
    assert "snapshotVolumes: false" in found.message
    assert len(found.message.split()) <= 30


def test_a_backup_without_snapshots_and_a_required_timeout_have_no_total() -> None:
    assert within_budget({"snapshotVolumes": False}, 500, policy()) == {"snapshotVolumes": False}
    required = policy(backup={"required": {FIELD: "10m"}})
    assert within_budget({FIELD: "10m"}, 500, required) == {FIELD: "10m"}
    assert isinstance(within_budget({FIELD: "10m"}, 500, policy(backup={"defaults": {FIELD: "10m"}})), Refused)


@pytest.mark.parametrize(
    ("spec", "holds"),
    [
        ({}, True),
        ({"includedNamespaceScopedResources": ["configmaps"]}, False),
        ({"includedNamespaceScopedResources": ["pvc"]}, True),
        ({"includedNamespaceScopedResources": ["*"]}, True),
        ({"excludedNamespaceScopedResources": ["persistentvolumeclaims"]}, False),
    ],
)
def test_a_backup_that_leaves_claims_out_is_told(spec: dict[str, Any], holds: bool) -> None:
    assert holds_claims(spec) is holds
