"""Whose turn it is among the checks of tenants, and what an old run counts."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.api.marks import CHECK, CHECK_LABEL, CHECK_NAMESPACE, CHECK_RUN, CHECK_SOURCE
from foresail.api.metadata import Metadata, Named
from foresail.api.nonadmin import NON_ADMIN_SCHEDULE
from foresail.api.pods import ResourceQuota
from foresail.api.restore_check import CheckedBackups, CheckRun, RestoreCheckSpec, RestoreCheckStatus
from foresail.kube.execute import Outcome, Result
from foresail.plan import Key, Plan
from foresail.proof.checks import tenants
from foresail.proof.checks.controller import RestoreChecks
from foresail.proof.checks.reads import FileReader
from foresail.proof.checks.rows import (
    CheckRow,
    QuotaRow,
    RequestRow,
    owned_object_row,
    quota_row,
    request_row,
)
from foresail.proof.checks.tenants import Turn
from foresail.proof.checks.turns import Turns
from foresail.proof.checks.view import CheckView

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
RED, OTHER, BLUE, GREEN = Key("red", "a"), Key("red", "b"), Key("blue", "c"), Key("green", "d")


def check(started: datetime | None, *, is_terminating: bool = False) -> CheckRow:
    run = CheckRun("0123456789", "b", "u", started) if started is not None else None
    spec, status = RestoreCheckSpec(CheckedBackups()), RestoreCheckStatus(run=run)
    return CheckRow(RED, "u", "1", 1, NOON, spec, status, "velero", is_terminating=is_terminating)


@pytest.mark.parametrize(
    ("row", "is_busy"),
    [
        (check(None), False),
        (check(NOON), True),
        (check(NOON - timedelta(minutes=15)), True),
        (check(NOON - timedelta(minutes=30)), False),  # nobody ended it: it must not keep others waiting for ever
        (check(NOON, is_terminating=True), False),
    ],
)
def test_a_run_takes_the_turn_until_it_must_have_ended(row: CheckRow, is_busy: bool) -> None:
    until = tenants.busy_until(row)
    assert (until is not None and until > NOON) == is_busy


def test_namespaces_take_turns_whatever_the_order_of_arrival() -> None:
    turns = Turns(1)
    assert turns.is_free(RED)
    turns.take(RED)
    for each in (OTHER, BLUE, GREEN):
        assert not turns.is_free(each)
        turns.wait(each)
    turns.release(RED)
    order = []
    while len(turns):
        first = turns.next[0]
        assert [each for each in (OTHER, BLUE, GREEN) if turns.is_free(each)] == [first]
        turns.take(first)
        turns.release(first)
        order.append(first)
    assert order == [BLUE, GREEN, OTHER]


def test_two_at_a_time_are_of_two_namespaces() -> None:
    turns = Turns(2)
    for each in (RED, OTHER, BLUE, GREEN):
        turns.wait(each)
    assert [each for each in (RED, OTHER, BLUE, GREEN) if turns.is_free(each)] == [RED, BLUE]
    turns.take(RED)
    turns.release(RED)  # its run is observed
    assert [each for each in (OTHER, BLUE, GREEN) if turns.is_free(each, {RED})] == [BLUE]
    turns.take(BLUE)
    assert [each for each in (OTHER, GREEN) if turns.is_free(each, {RED})] == []
    assert [each for each in (OTHER, GREEN) if turns.is_free(each)] == [GREEN], "red had a turn later than green"
    turns.leave(GREEN)
    assert turns.is_free(OTHER)


def test_a_namespace_that_is_alone_still_has_one_check_at_a_time() -> None:
    turns = Turns(4)
    turns.wait(OTHER)
    assert not turns.is_free(OTHER, {RED})
    assert turns.is_free(OTHER)


@pytest.mark.parametrize("most", [1, 2, 4])
def test_new_namespaces_without_end_do_not_keep_another_waiting_for_ever(most: int) -> None:
    turns = Turns(most)
    turns.take(RED)
    turns.release(RED)
    turns.wait(OTHER)
    for number in range(100):
        turns.wait(Key(f"new-{number}", "a"))
        first = turns.next[0]
        turns.take(first)
        turns.release(first)
        if first == OTHER:
            return
    pytest.fail("a hundred namespaces that came later went first")


def test_a_check_that_leaves_lets_the_next_one_go() -> None:
    turns = Turns(1)
    for each in (RED, BLUE):
        turns.wait(each)
    turns.leave(RED)
    assert (turns.next, turns.is_free(BLUE), turns.is_free(BLUE, {RED})) == ([BLUE], True, False)


@given(st.integers(1, 4), st.lists(st.tuples(st.sampled_from("wltr"), st.integers(0, 5), st.integers(0, 1))))
def test_the_line_is_that_of_all_who_wait(most: int, steps: list[tuple[str, int, int]]) -> None:
    turns, waiting = Turns(most), list[Key]()
    for step, number, which in steps:
        key = Key(f"n{number}", f"c{which}")
        if step == "w" and key not in turns.taken:
            turns.wait(key)
            waiting += [key] if key not in waiting else []
        elif step == "l":
            turns.leave(key)
            waiting = [each for each in waiting if each != key]
        elif step == "t" and turns.is_free(key):
            turns.take(key)
            waiting = [each for each in waiting if each != key]
        elif step == "r":
            turns.release(key)
        assert len(turns) == len(waiting)
        assert len(turns.taken) <= most
        busy = {each.namespace for each in turns.taken}
        free = [each for each in waiting if turns.is_free(each)]
        ready = {each.namespace for each in waiting} - busy
        assert len(free) == min(most - len(turns.taken), len(ready)), "no turn is lost"
        assert set(free) <= set(turns.next), "whoever may go is woken"


@pytest.mark.parametrize("outcome", [Outcome.REQUEUE, Outcome.FAILED, Outcome.REFUSED])
def test_a_check_whose_start_cannot_be_written_lets_the_next_one_go(outcome: Outcome) -> None:
    controller = RestoreChecks("velero", FileReader(None).run, never=(), at_once=1)
    for each in (RED, BLUE):
        controller.settled(each, None, Plan(claims=(Turn.WAITS,)), Result(Outcome.DONE), NOON)
    taking = Plan(claims=(Turn.TAKES,))
    controller.begin(RED, CheckView(RED, None), taking, NOON)
    assert not controller.state.turns.is_free(BLUE)
    assert list(controller.settled(RED, None, taking, Result(outcome), NOON)) == [BLUE]
    assert controller.state.turns.is_free(BLUE)


def test_a_check_whose_reconcile_raises_lets_the_next_one_go() -> None:
    controller = RestoreChecks("velero", FileReader(None).run, never=())
    controller.settled(BLUE, None, Plan(claims=(Turn.WAITS,)), Result(Outcome.DONE), NOON)
    controller.begin(RED, CheckView(RED, None), Plan(claims=(Turn.TAKES,)), NOON)
    assert list(controller.crashed(RED)) == [BLUE]


@pytest.mark.parametrize(
    "labels",
    [
        {f"label-{number}": "x" for number in range(10_000)},
        {f"label-{number}": "x" for number in range(33)},
        {f"{'p' * 253}/{number:063}": "v" * 63 for number in range(6)},
    ],
)
def test_a_request_with_many_or_long_labels_counts_as_one_without(labels: dict[str, str]) -> None:
    metadata = Metadata("a", "red", annotations={"foresail.dev/schedule-uid": "u" * 100_000}, labels=labels)
    row = request_row(Named(metadata))
    assert (row.labels, len(row.schedule_uid)) == ({}, 64)


def test_labels_within_their_bounds_select_a_request() -> None:
    labels = {f"label-{number}": "v" * 48 for number in range(32)}
    assert request_row(Named(Metadata("a", "red", labels=labels))).labels == labels


def test_no_label_of_a_schedule_stays_in_memory() -> None:
    controller = RestoreChecks("velero", FileReader(None).run, never=())
    (spec,) = (each.spec for each in controller.informers if each.spec.kind == NON_ADMIN_SCHEDULE)
    row = spec.row(Named(Metadata("a", "red", uid="u", labels={"a": "b"})))
    assert row == RequestRow(Key("red", "a"), "u", {})


@pytest.mark.parametrize("name", [CHECK, CHECK_NAMESPACE, CHECK_RUN, CHECK_SOURCE])
def test_of_a_long_annotation_only_so_much_stays_as_a_name_has(name: str) -> None:
    row = owned_object_row(Named(Metadata("a", annotations={name: "x" * 100_000})))
    assert max(len(each) for each in (row.check, row.check_namespace, row.run, row.source)) == 253


@pytest.mark.parametrize("namespace", ["red", "foresail-checks"])
def test_of_a_quota_outside_of_sandboxes_only_the_key_stays(namespace: str) -> None:
    metadata = Metadata("a", namespace, "u", labels={CHECK_LABEL: "c"}, annotations={CHECK: "own", CHECK_RUN: "1"})
    row = quota_row(ResourceQuota(metadata))
    assert row == QuotaRow(Key(namespace, "a"), "", "", "", "")
