"""Which kinds come back under a policy: a Rollback's plan says what the restore does."""

import pytest

from foresail.api.policy import RestoredKinds
from foresail.selfservice.specs.kinds import restored
from foresail.selfservice.specs.values import Refusal, Violation
from foresail.tenancy.restored_kinds import brings_back

ROLES = "roles.rbac.authorization.k8s.io"


def is_restored(kind: str, kinds: RestoredKinds) -> bool:
    try:
        restored((kind,), (), kinds, "spec", "gold")
    except (Refusal, Violation):
        return False
    return True


@pytest.mark.parametrize(
    ("kind", "kinds", "expected"),
    [
        (ROLES, RestoredKinds(), False),
        (ROLES, RestoredKinds(allowed=(ROLES,)), True),
        (ROLES, RestoredKinds(allowed=(ROLES.title(),)), True),
        (ROLES, RestoredKinds(refused=("secrets",)), True),
        ("secrets", RestoredKinds(refused=("Secrets",)), False),
        ("configmaps", RestoredKinds(allowed=("ConfigMaps",)), True),
        ("configmaps", RestoredKinds(allowed=("secrets",)), False),
        ("events", RestoredKinds(allowed=("events",)), False),
    ],
)
def test_the_plan_of_a_rollback_and_the_restore_agree(kind: str, kinds: RestoredKinds, expected: bool) -> None:
    assert (brings_back(kind, kinds), is_restored(kind, kinds)) == (expected, expected)
