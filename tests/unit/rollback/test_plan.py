"""The plan of a Rollback promises only what the restore that follows brings back."""

import pytest

from foresail.api.policy import (
    Quotas,
    RestoredKinds,
    RestorePolicy,
    RestoreQuotas,
    RollbackPolicy,
    SelfServicePolicySpec,
)
from foresail.api.rollback import RollbackPlan, RollbackSpec
from foresail.api.specs import LabelSelector
from foresail.rollback.plan import Planned, make_plan
from foresail.rollback.view import Findings, Listed

CONTENTS = {
    "/ConfigMap": ("limits",),
    "/Secret": ("keys",),
    "/LimitRange": ("limits",),
    "/Pod": ("web-0",),
    "networking.k8s.io/NetworkPolicy": ("open", "gone"),
    "rbac.authorization.k8s.io/Role": ("reader",),
    "shop.example/Policy": ("mine",),
}
POLICIES = "networkpolicies.networking.k8s.io"
FINDINGS = Findings(
    listed=(
        Listed("configmaps", "limits", "1"),
        Listed(POLICIES, "open", "2"),
        Listed(POLICIES, "added", "3"),
    )
)


def planned(kinds: RestoredKinds, **spec: object) -> Planned:
    policy = SelfServicePolicySpec(
        namespace_selector=LabelSelector(),
        restore=RestorePolicy(kinds=kinds),
        rollback=RollbackPolicy(enabled=True, prune=True),
    )
    return make_plan(RollbackSpec(to="before", prune=True, **spec), policy, FINDINGS, CONTENTS)  # type: ignore[arg-type]


def names(plan: RollbackPlan) -> dict[str, tuple[str, ...]]:
    groups = ("created", "existing", "extra", "not_compared", "left_out")
    return {group: getattr(plan, group).names for group in groups}


def test_kinds_that_the_policy_refuses_stay_as_they_are_and_none_of_them_is_deleted() -> None:
    found = planned(RestoredKinds())
    assert names(found.plan) == {
        "created": (),
        "existing": ("configmaps/limits",),
        "extra": (),
        "not_compared": ("Secret", "Policy.shop.example"),
        "left_out": ("LimitRange", "Pod", "NetworkPolicy.networking.k8s.io", "Role.rbac.authorization.k8s.io"),
    }
    assert found.pruned == ()


def test_where_the_policy_refuses_nothing_they_come_back_and_are_compared() -> None:
    found = planned(RestoredKinds(refused=()))
    assert found.plan.created.names == (f"{POLICIES}/gone",)
    assert found.plan.existing.names == ("configmaps/limits", f"{POLICIES}/open")
    assert found.plan.extra.names == (f"{POLICIES}/added",)
    assert [pruned.name for pruned in found.pruned] == ["added"]
    assert "Role.rbac.authorization.k8s.io" in found.plan.not_compared.names


@pytest.mark.parametrize("allowed", [("configmaps", "policies.shop.example"), ("ConfigMaps", "Policies")])
def test_where_the_policy_allows_some_kinds_all_others_stay(allowed: tuple[str, ...]) -> None:
    found = planned(RestoredKinds(allowed=allowed)).plan
    assert found.existing.names == ("configmaps/limits",)
    assert found.not_compared.names == ("Policy.shop.example",)
    assert "Secret" in found.left_out.names


def test_a_kind_that_is_asked_for_and_refused_is_in_the_way() -> None:
    found = planned(RestoredKinds(), only=("configmaps", POLICIES)).plan
    text = f"spec.only has {POLICIES}, which the SelfServicePolicy does not let come back: leave it out"
    assert found.in_the_way == (text,)
    volumes = planned(RestoredKinds(allowed=("configmaps",)), volumes="All").plan
    assert "the SelfServicePolicy does not let persistentvolumeclaims come back: leave out spec.volumes" in (
        volumes.in_the_way
    )


def test_a_policy_that_keeps_no_finished_restores_is_in_the_way() -> None:
    """Self-service deletes a restore as soon as it has ended, so nobody sees whether it has brought back all."""
    quotas = Quotas(restores=RestoreQuotas(history=0))
    policy = SelfServicePolicySpec(namespace_selector=LabelSelector(), quotas=quotas)
    found = make_plan(RollbackSpec(to="before"), policy, FINDINGS, CONTENTS)
    assert any("quotas.restores.history" in way for way in found.plan.in_the_way)
