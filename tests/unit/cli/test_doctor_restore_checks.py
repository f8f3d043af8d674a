"""What the doctor says about RestoreChecks: failed ones, and sandboxes that were left."""

from dataclasses import replace
from datetime import timedelta

import pytest

from foresail.api.marks import CHECK_LABEL, CHECKS_LEASE
from foresail.api.metadata import Metadata, Named
from foresail.api.restore_check import CheckResult, CheckRun, RestoreCheckStatus, Result
from foresail.cli.doctor.evidence import CheckSeen
from foresail.cli.doctor.installation import restore_checks
from foresail.plan import Key
from tests.unit.cli.test_doctor import APART, HEALTHY, NOW, OPERATOR

RUN = CheckRun("0123456789", "nightly-1", "u", NOW)


def result(word: Result, kept: timedelta | None = None) -> CheckResult:
    until = None if kept is None else NOW + kept
    return CheckResult("0123456789", "nightly-1", "u", NOW, NOW, word, "Any", "any", kept_until=until)


def said(status: RestoreCheckStatus, *sandboxes: str, namespace: str = HEALTHY.namespace) -> list[str]:
    checks = (CheckSeen(Metadata("nightly", namespace, uid="check"), status),)
    spaces = tuple(Named(Metadata(f"box-{each}", labels={CHECK_LABEL: each})) for each in sandboxes)
    return [each.says for each in restore_checks(replace(HEALTHY, checks=checks, sandboxes=spaces))]


def test_a_failed_check_is_named_and_a_passed_one_is_good() -> None:
    assert said(RestoreCheckStatus(last=result("Fail"))) == ["RestoreCheck nightly failed: any"]
    assert said(RestoreCheckStatus(last=result("Pass"))) == ["every RestoreCheck has passed"]
    assert said(RestoreCheckStatus()) == []


def test_a_failed_check_of_a_tenant_is_the_tenant_s_and_its_sandbox_is_in_use() -> None:
    assert said(RestoreCheckStatus(last=result("Fail")), namespace="red") == []
    assert said(RestoreCheckStatus(run=RUN), "check", namespace="red") == []


def test_a_deployment_of_checks_without_a_leader_is_a_problem_and_nothing_is_said_to_have_passed() -> None:
    apart = replace(APART, key=Key("velero", "foresail-checks"), primers=False, restore_checks=True, lease=CHECKS_LEASE)
    passed = (CheckSeen(Metadata("nightly", HEALTHY.namespace), RestoreCheckStatus(last=result("Pass"))),)
    seen = replace(HEALTHY, operators=(OPERATOR, apart), checks=passed)
    [found] = restore_checks(seen)
    assert found.says == "Deployment velero/foresail-checks: no replica holds the Lease, so no RestoreCheck runs"
    [found] = restore_checks(replace(seen, checks_lease=HEALTHY.primers_lease))
    assert found.says == "every RestoreCheck has passed"


@pytest.mark.parametrize(
    ("status", "owner", "is_left"),
    [
        (RestoreCheckStatus(), "check", True),
        (RestoreCheckStatus(run=RUN), "check", False),
        (RestoreCheckStatus(run=RUN), "another", True),
        (RestoreCheckStatus(last=result("Fail", timedelta(hours=1))), "check", False),
        (RestoreCheckStatus(last=result("Fail", -timedelta(hours=1))), "check", True),
    ],
)
def test_a_sandbox_that_no_check_needs_is_named(status: RestoreCheckStatus, owner: str, is_left: bool) -> None:
    assert (f"sandboxes that no RestoreCheck needs: box-{owner}" in said(status, owner)) == is_left
