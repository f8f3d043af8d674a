"""The line: who stands where, whoever numbers them; and the reports: near at once, far in their own time."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.selfservice.queue.positions import LATEST, NEAR, PER_SECOND, PositionReports, VeleroQueue

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def run(line: VeleroQueue, name: str) -> None:
    line.change(name, is_waiting=False, is_running=True, number=0)


def test_who_waits_has_as_many_before_them_as_their_number_says() -> None:
    line = VeleroQueue()
    for name in "abc":
        line.enter(name)
    assert [line.position(name) for name in "abc"] == [1, 2, 3]
    run(line, "a")
    assert [line.position(name) for name in "abc"] == [1, 2, 3]
    assert line.last == 4
    line.leave("a")
    assert [line.position(name) for name in "abc"] == [0, 1, 2]
    line.leave("b")
    assert line.position("c") == 1


def test_velero_s_own_number_counts_those_that_wait_and_ours_those_that_run_too() -> None:
    line = VeleroQueue()
    for name in "abc":
        line.enter(name)
    run(line, "a")
    line.change("b", is_waiting=True, is_running=False, number=2)
    line.change("c", is_waiting=True, is_running=False, number=1)
    assert (line.position("b"), line.position("c")) == (3, 2)


def test_what_has_begun_and_no_longer_takes_velero_s_time_is_first_still_and_holds_up_nobody() -> None:
    line = VeleroQueue()
    line.enter("a")
    line.enter("b")
    run(line, "a")
    assert line.position("b") == 2
    assert line.change("a", is_waiting=False, is_running=False, number=0)
    assert (line.position("a"), line.position("b")) == (1, 1)


def test_those_that_were_found_stand_by_age_and_before_those_that_come() -> None:
    line = VeleroQueue()
    line.enter("new")
    line.enter("young", NOW)
    line.enter("old", NOW - timedelta(hours=1))
    assert list(line.first()) == ["old", "young", "new"]


def test_progress_of_one_request_moves_no_other() -> None:
    line = VeleroQueue()
    line.enter("a")
    assert line.change("a", is_waiting=False, is_running=True, number=0)
    assert not line.change("a", is_waiting=False, is_running=True, number=0)
    assert not line.leave("never there")


@given(st.lists(st.tuples(st.sampled_from(["enter", "run", "leave"]), st.integers(0, 9))))
def test_the_line_says_what_counting_says(steps: list[tuple[str, int]]) -> None:
    line, waiting, running = VeleroQueue(), list[str](), set[str]()
    for step, number in steps:
        name = str(number)
        if step == "enter" and name not in waiting and name not in running:
            line.enter(name)
            waiting.append(name)
        elif step == "run" and name in waiting:
            run(line, name)
            waiting.remove(name)
            running.add(name)
        elif step == "leave":
            line.leave(name)
            waiting = [each for each in waiting if each != name]
            running.discard(name)
        assert len(line) == len(waiting) + len(running)
        assert {each: line.position(each) for each in waiting} == {
            each: len(running) + place for place, each in enumerate(waiting, 1)
        }
        assert all(line.position(each) == 1 for each in running)


@pytest.mark.parametrize(
    ("shown", "position"),
    [pytest.param(None, 900, id="the first number"), pytest.param(NEAR + 5, NEAR, id="a near one")],
)
def test_near_positions_are_written_at_once(shown: int | None, position: int) -> None:
    assert PositionReports().when("a", shown, position, NOW) is None


def booked(reports: PositionReports, name: str, shown: int, position: int, now: datetime) -> datetime | None:
    """Return when a position is to be told, None for now, and take that instant."""
    at = reports.when(name, shown, position, now)
    if at is not None:
        reports.book(name, at, now)
    return at if at is not None and at > now else None


def test_a_distant_position_just_reported_waits_unless_it_differs_by_a_tenth() -> None:
    reports = PositionReports()
    reports.reported("a", NOW)
    reports.reported("b", NOW)
    later = booked(reports, "a", 500, 499, NOW + timedelta(seconds=1))
    assert later is not None
    assert LATEST <= later - NOW <= LATEST + timedelta(seconds=2)
    soon = booked(reports, "b", 500, 450, NOW + timedelta(seconds=1))
    assert soon is not None
    assert soon - NOW <= timedelta(seconds=3)
    assert booked(reports, "b", 500, 450, soon) is None, "its instant has come"


def test_asking_when_a_position_is_due_reserves_nothing() -> None:
    reports = PositionReports()
    assert reports.when("a", 1000, 500, NOW) == reports.when("b", 1000, 500, NOW)
    assert not reports.is_booked("a")


def test_writes_of_distant_positions_are_limited_per_second_and_each_keeps_its_instant() -> None:
    assert PER_SECOND <= 20
    reports, count = PositionReports(), 10 * PER_SECOND
    instants = [booked(reports, str(number), 1000, 500, NOW) for number in range(count)]
    assert instants == [booked(reports, str(number), 1000, 499, NOW) for number in range(count)]
    seconds = [int(each.timestamp()) for each in instants if each is not None]
    assert max(seconds.count(second) for second in seconds) == PER_SECOND
    assert max(seconds) - min(seconds) == 10 - 1
    reports.forget("7")
    assert not reports.is_booked("7")


def test_those_that_come_late_do_not_come_together() -> None:
    reports, count = PositionReports(), 3 * PER_SECOND
    names = [f"n{number}" for number in range(count)]
    slots = [booked(reports, name, 1_000, 500, NOW) for name in names]
    late = max(each for each in slots if each is not None) + timedelta(seconds=10)
    at_once = [name for name in names if booked(reports, name, 1_000, 500, late) is None]
    assert len(at_once) == PER_SECOND
    for name in at_once:
        reports.reported(name, late)
    later = [booked(reports, name, 1_000, 500, late) for name in names if name not in at_once]
    seconds = [int(each.timestamp()) for each in later if each is not None]
    assert len(seconds) == count - PER_SECOND
    assert max(seconds.count(second) for second in seconds) == PER_SECOND


def test_each_position_is_written_in_the_first_second_with_room() -> None:
    reports, count = (
        PositionReports(),
        40 * PER_SECOND,
    )  # the seconds of those at once reach those of half a minute later
    soon, late = ([f"{word}{number}" for number in range(count)] for word in ("soon", "late"))
    for name in late:
        reports.reported(name, NOW)
    slots: dict[str, int] = {}
    for pair in zip(soon, late, strict=True):
        for name, position in zip(pair, (500, 999), strict=True):
            at = booked(reports, name, 1_000, position, NOW)
            assert at is not None
            slots[name] = int(at.timestamp())
    set_condition = Counter(slots.values())
    assert max(set_condition.values()) == PER_SECOND
    first = int(NOW.timestamp()) + 1
    assert all(set_condition[second] == PER_SECOND for second in range(first, max(slots[name] for name in soon)))
    half_a_minute = first + int(LATEST.total_seconds())
    assert all(set_condition[second] == PER_SECOND for second in range(half_a_minute, max(slots.values())))
    assert min(slots[name] for name in late) == half_a_minute
