"""A sample of transitions of each kind, and faults that the judge must find; `make transitions` takes 5,400 steps."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from foresail.plan import Plan
from foresail.proof.checks import decide as check_plans
from foresail.proof.checks import status
from foresail.proof.checks.controller import RestoreChecks
from foresail.proof.checks.view import CheckView
from foresail.schedules.controller import Schedules
from tests.worlds.transitions import COURSES, Course, tried

STEPS = 30
_decide: Any = RestoreChecks.decide
_decide_schedule = Schedules.decide


def course(name: str) -> Course:
    return next(each for each in COURSES if each.kind.name == name)


@pytest.mark.repeats
@pytest.mark.parametrize("of", COURSES, ids=lambda of: of.kind.name)
def test_every_state_is_ready_or_says_why_not(of: Course, figure: Callable[[str], None]) -> None:
    report = tried(of, STEPS)
    assert report.failures == []
    figure(f"{of.kind.name}: {report.steps} states, {report.refused} of them refused by the schema")


def crashes(view: CheckView, now: Any) -> Plan:  # noqa: ANN401 - an instant
    assert view.check is None or not view.check.spec.suspend
    plan: Plan = _decide(view, now)
    return plan


def says_it_once(before: Any, after: Any) -> dict[str, Any]:  # noqa: ANN401 - statuses
    return {} if before.conditions else status.patch_body(before, after)


def forgets_to_wake(self: Schedules, view: Any, now: Any) -> Plan:  # noqa: ANN401 - any of its views
    return msgspec.structs.replace(_decide_schedule(self, view, now), wake_at=None)


@pytest.mark.parametrize(
    ("name", "where", "attribute", "fault", "found"),
    [
        ("RestoreCheck", RestoreChecks, "decide", staticmethod(crashes), "a reconcile crashed"),
        ("RestoreCheck", check_plans, "patch_body", says_it_once, "speaks of an earlier generation"),
        ("SchedulePolicy", Schedules, "decide", forgets_to_wake, "stuck after"),
    ],
    ids=["crash", "status", "timer"],
)
def test_a_planted_fault_is_found(
    name: str, where: object, attribute: str, fault: object, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, attribute, fault)
    assert any(found in each for each in tried(course(name), STEPS).failures)
