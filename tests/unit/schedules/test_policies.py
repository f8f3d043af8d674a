"""Which SchedulePolicy applies to a Schedule, and how its time zone changes the slots."""

from typing import Any

import msgspec
import pytest

from foresail.api.schedule_policy import SchedulePolicy
from foresail.schedules.policies import problem_with, settings_under
from foresail.schedules.reasons import Reason
from foresail.schedules.rules import judge
from foresail.schedules.settings import Settings
from foresail.slots.policy_timing import PolicyRow, policy_for, policy_row
from tests.unit.schedules.rows import DAY, HOUR, NOON, backup, schedule, view, watched


def policy(name: str = "gold", **spec: Any) -> PolicyRow:  # noqa: ANN401 - any field
    """Return a policy for every Schedule, with these fields."""
    wire = {"metadata": {"name": name}, "spec": {"selector": {}, **spec}}
    return policy_row(msgspec.convert(wire, SchedulePolicy))


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({}, True),
        ({"names": ["daily"]}, True),
        ({"names": ["other"]}, False),
        ({"matchLabels": {"team": "web"}}, True),
        ({"matchLabels": {"team": "db"}}, False),
        ({"names": ["daily"], "matchLabels": {"team": "db"}}, False),
        ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["web", "db"]}]}, True),
    ],
)
def test_selection_by_name_and_labels(selector: dict[str, object], expected: bool) -> None:
    found = policy_for("daily", {"team": "web"}, [policy(selector=selector)])
    assert (found is not None) is expected


def test_highest_priority_applies_and_of_equals_the_first_by_name() -> None:
    policies = [policy("b", priority=1), policy("a", priority=1), policy("c")]
    found = policy_for("daily", {}, policies)
    assert found is not None
    assert found.name == "a"


def test_policy_zone_replaces_that_of_the_operator() -> None:
    assert settings_under(policy(timeZone="Asia/Tokyo"), Settings(zone="UTC")).zone == "Asia/Tokyo"
    assert settings_under(policy(), Settings(zone="UTC")).zone == "UTC"
    assert settings_under(None, Settings(zone="UTC")).zone == "UTC"


def test_zone_of_the_policy_moves_the_slots_and_a_zone_in_the_expression_comes_first() -> None:
    tokyo = policy(timeZone="Asia/Tokyo")
    settings = settings_under(tokyo, Settings())
    row = watched(schedule(text="0 3 * * *"), zone="Asia/Tokyo")
    assert judge(view(row, settings=settings, policy=tokyo), NOON).due == NOON + 6 * HOUR - DAY
    named = watched(schedule(text="CRON_TZ=UTC 0 3 * * *"), zone="Asia/Tokyo")
    assert judge(view(named, settings=settings, policy=tokyo), NOON).due == NOON - 9 * HOUR


def test_change_of_the_zone_makes_nothing_due_that_has_passed() -> None:
    ran = watched(schedule(text="0 3 * * *", last_backup=NOON - 9 * HOUR))
    berlin = policy(timeZone="America/New_York")  # there, 03:00 was at 07:00 UTC today
    seen = view(ran, backup(slot=NOON - 9 * HOUR), settings=settings_under(berlin, Settings()), policy=berlin)
    verdict = judge(seen, NOON)
    assert verdict.due is None
    assert verdict.upcoming == NOON - 5 * HOUR + DAY
    assert verdict.changes.observed.zone == "America/New_York"
    assert verdict.edited


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"timeZone": "Mars/Phobos"}, "'Mars/Phobos' is not a time zone"),
        ({"retention": {"daily": 0}}, "spec.retention keeps nothing"),
        ({"retention": {"keepWithin": "0h"}}, "'0h' is not a duration above zero"),
        ({"selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}}, "has no values"),
    ],
)
def test_policy_that_cannot_be_used_refuses_the_run(spec: dict[str, Any], problem: str) -> None:
    broken = policy(**spec)
    said = problem_with(broken)
    assert said is not None
    assert problem in said
    refused = judge(view(policy=broken), NOON).refused
    assert refused is not None
    assert refused.reason is Reason.POLICY_INVALID
    assert "SchedulePolicy gold cannot be used" in refused.message
