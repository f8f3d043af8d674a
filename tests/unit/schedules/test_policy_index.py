"""The controller finds the policy and the limit of a Schedule by an index: the same as over all, at any number."""

import gc
import sys
from datetime import timedelta

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.api.marks import SCHEDULE_POLICY_LABEL
from foresail.api.schedule_policy import SchedulePolicy
from foresail.cron import Dialect
from foresail.plan import Key, Plan
from foresail.schedules.controller import Schedules
from foresail.schedules.groups import limited_group
from foresail.schedules.observe import ScheduleView
from foresail.schedules.settings import Settings
from foresail.slots.policy_timing import PolicyRow, policy_for, policy_row
from tests.unit.schedules.rows import AVAILABLE, NOON, schedule, watched

KEYS = [Key("velero", name) for name in ("daily", "web")]
WORDS = st.sampled_from(("web", "db", "daily"))
LABELS = st.dictionaries(WORDS, WORDS, max_size=2)
NAMED: st.SearchStrategy[dict[str, str]] = st.just({}) | st.sampled_from("abcd").map(
    lambda name: {SCHEDULE_POLICY_LABEL: name}
)
OWN = st.builds(lambda labels, named: {**labels, **named}, LABELS, NAMED)
REQUIREMENTS = st.fixed_dictionaries(
    {
        "key": WORDS,
        "operator": st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist")),
        "values": st.lists(WORDS, max_size=2),
    }
)
SPECS = st.fixed_dictionaries(
    {
        "selector": st.fixed_dictionaries(
            {},
            optional={
                "names": st.lists(WORDS, max_size=2),
                "matchLabels": LABELS,
                "matchExpressions": st.lists(REQUIREMENTS, max_size=2),
            },
        ),
        "priority": st.integers(0, 2),
    },
    optional={
        "concurrency": st.fixed_dictionaries(
            {"max": st.integers(1, 3)}, optional={"group": st.sampled_from(("slow", "fast"))}
        )
    },
)


def policy(name: str, spec: object) -> PolicyRow:
    return policy_row(msgspec.convert({"metadata": {"name": name}, "spec": spec}, SchedulePolicy))


def controller_of(labels: list[dict[str, str]]) -> Schedules:
    found = Schedules("velero", Settings(velero_schedules_off=True), Dialect.GOCRON)
    found.locations.put(AVAILABLE.key, AVAILABLE)
    for key, each in zip(KEYS, labels, strict=False):
        found.schedules.put(key, watched(schedule(key=key, labels=each)))
    return found


def observed(controller: Schedules, key: Key) -> ScheduleView:
    view = controller.observe(key, NOON)
    assert isinstance(view, ScheduleView)
    return view


@pytest.mark.repeats
@settings(max_examples=300)
@given(
    st.lists(OWN, min_size=2, max_size=2),
    st.lists(st.tuples(st.sampled_from("abc"), st.none() | SPECS), min_size=1, max_size=8),
)
def test_policy_and_limit_are_those_of_all_policies_after_every_change(
    labels: list[dict[str, str]], changes: list[tuple[str, object]]
) -> None:
    controller = controller_of(labels)
    now: dict[str, PolicyRow] = {}
    for name, spec in changes:
        if spec is None:
            now.pop(name, None)
            controller.policies.remove(Key("", name))
        else:
            now[name] = policy(name, spec)
            controller.policies.put(Key("", name), now[name])
        for key, own in zip(KEYS, labels, strict=True):
            found = observed(controller, key)
            assert found.policy == policy_for(key.name, own, now.values())
            assert found.group == limited_group(found.policy, now.values())


def test_labels_of_a_schedule_that_change_bring_it_under_another_policy() -> None:
    controller = controller_of([{"pool": "a"}])
    for pool in ("a", "b"):
        controller.policies.put(Key("", pool), policy(pool, {"selector": {"matchLabels": {"pool": pool}}}))
    before = observed(controller, KEYS[0]).policy
    controller.schedules.put(KEYS[0], watched(schedule(labels={"pool": "b"})))
    after = observed(controller, KEYS[0]).policy
    assert [each and each.name for each in (before, after)] == ["a", "b"]


def test_a_schedule_that_names_its_policy_gets_that_one_and_no_other() -> None:
    every = policy("every", {"selector": {}, "priority": 9})
    named = policy("nights", {"selector": {"names": ["nobody"]}})
    labels = {SCHEDULE_POLICY_LABEL: "nights"}
    assert policy_for("daily", labels, [every, named]) is named
    assert policy_for("daily", labels, [every]) is None
    assert policy_for("daily", {}, [every, named]) is every


def calls_with(policies: int) -> int:
    """Return how many functions are called to decide about a Schedule that is due, one of whose policies applies."""
    controller = controller_of([{"pool": "p0"}])
    for number in range(policies):
        spec = {
            "selector": {"matchLabels": {"pool": f"p{number}"}},
            "concurrency": {"max": 4},
            "retention": {"daily": 7},
            "spread": {"within": "1s"},
            "windows": {"allowed": [{"schedule": "0 * * * *", "duration": "1h"}]},
        }
        controller.policies.put(Key("", f"p{number}"), policy(f"p{number}", spec))
    decided_by(controller)  # what this remembers is not counted
    count, before = 0, sys.getprofile()

    def count_calls(_frame: object, event: str, _arg: object) -> None:
        nonlocal count
        count += event == "call"

    gc.disable()  # what another test has left and is collected now would be counted
    sys.setprofile(count_calls)
    try:
        plan = decided_by(controller)
    finally:
        sys.setprofile(before)
        gc.enable()
    assert plan.actions
    return count


def decided_by(controller: Schedules) -> Plan:
    now = NOON + timedelta(seconds=5)
    view = controller.observe(KEYS[0], now)
    assert view is not None
    return controller.decide(view, now)


def test_decision_costs_the_same_among_many_policies() -> None:
    assert calls_with(200) == calls_with(2)
