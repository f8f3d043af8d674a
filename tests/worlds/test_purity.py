"""`observe`, `decide` and `keys` of every controller set nothing, through long histories with deaths in them."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from foresail.plan import Key, Plan
from foresail.schedules.controller import Schedules
from tests.worlds import (
    process,
    test_primers,
    test_primers_buffer,
    test_protection,
    test_restore_checks,
    test_rollback,
    test_schedules,
    test_selfservice_crashes,
    test_selfservice_turns,
    test_tenant_checks,
)
from tests.worlds.process import Moment
from tests.worlds.purity import Guard


@pytest.fixture
def guard(monkeypatch: pytest.MonkeyPatch) -> Guard:
    found = Guard()
    monkeypatch.setattr(process, "prepare", found)
    return found


def check(guard: Guard, figure: Callable[[str], None], name: str) -> None:
    assert guard.faults == set()
    assert min(guard.calls[each] for each in ("observe", "decide", "keys")) > 0
    figure(f"{name}: {sum(guard.calls.values())} calls of observe, decide and keys set nothing")


def test_schedules_set_nothing(guard: Guard, figure: Callable[[str], None]) -> None:
    test_schedules.deaths([Moment(after=True, write=5)])
    test_schedules.test_an_unavailable_location_blocks_a_slot_until_it_is_back()
    check(guard, figure, "schedules")


def test_primers_set_nothing(guard: Guard, figure: Callable[[str], None]) -> None:
    third = Moment(after=True, write=3)
    test_primers.life_with_death(test_primers.two_pods, test_primers.at(21), third)
    test_primers.life_with_death(test_primers_buffer.one_pod, test_primers.at(22), third, buffers=True)
    test_primers.test_a_refusal_is_shown_word_for_word_and_not_tried_again_before_the_next_fire()
    check(guard, figure, "primers")


def test_restore_checks_set_nothing(guard: Guard, figure: Callable[[str], None]) -> None:
    third = Moment(after=True, write=3)
    test_restore_checks.lived(test_restore_checks.fails, [third])
    test_tenant_checks.lived(test_tenant_checks.passes, [third])
    test_tenant_checks.test_one_check_at_a_time_runs_and_no_tenant_goes_before_another_twice()
    check(guard, figure, "restore checks")


def test_protection_sets_nothing(guard: Guard, figure: Callable[[str], None]) -> None:
    test_protection.test_a_labelled_namespace_is_backed_up_and_its_protection_says_so()
    test_protection.test_a_class_whose_schedule_is_refused_stops_no_other_class()
    check(guard, figure, "protection")


def test_rollbacks_set_nothing(guard: Guard, figure: Callable[[str], None]) -> None:
    test_rollback.test_extras_are_deleted_only_with_prune_and_come_back_with_the_undo()
    check(guard, figure, "rollback")


@pytest.mark.parametrize("story", [test_selfservice_crashes.whole, test_selfservice_crashes.crowded])
def test_self_service_sets_nothing(
    guard: Guard, figure: Callable[[str], None], story: test_selfservice_crashes.Story
) -> None:
    test_selfservice_crashes.deaths(story, [Moment(after=True, write=5)], 16)
    check(guard, figure, f"self-service, {getattr(story, '__name__', '')}")


@pytest.mark.repeats
@pytest.mark.parametrize(
    "life",
    [
        pytest.param(
            test_selfservice_turns.test_velero_gets_a_window_and_a_late_namespace_its_share, marks=pytest.mark.full
        ),
        test_selfservice_turns.test_a_request_whose_object_cannot_be_created_blocks_nobody,
    ],
)
def test_asking_for_the_next_turn_does_not_take_it(
    guard: Guard, figure: Callable[[str], None], life: Callable[[], None]
) -> None:
    life()
    check(guard, figure, "self-service with a window")


def test_the_guard_sees_what_a_decision_remembers(guard: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    decide = Schedules.decide

    def remembering(self: Schedules, seen: Any, now: datetime) -> Plan:  # noqa: ANN401 - as observed
        self._next[Key("", "")] = now
        return decide(self, seen, now)

    monkeypatch.setattr(Schedules, "decide", remembering)
    test_schedules.deaths([])
    assert any("decide changed Guarded._next" in each for each in guard.faults)
