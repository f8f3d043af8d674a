"""The model of `make deletion-worlds` finds what it must, and a small sample of worlds has nothing wrong."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bench.deletion_worlds.__main__ import KINDS
from bench.deletion_worlds.faults import FAULTS, planted
from bench.deletion_worlds.model import DAY, HOUR, MINUTE, Copy, Judge, Moment, Origin, Report

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
CALM = Moment(NOON, timedelta(), is_available=True, restored=frozenset(), grace=timedelta())
FOUND_IN = {
    "last": 16,
    "grace": 0,
    "breaker": 4,
    "new": 6,
    "clock": 14,
    "skew": 14,
    "version": 4,
    "marks": 0,
    "stale": 2,
    "ledger": 34,
    "approval": 9,
    "allowance": 43,
    "expiring": 16,
    "unread": 29,
    "withdraw": 84,
    "data": 20,
    "others": 10,
    "by hand": 2,
    "early": 22,
    "behind": 37,
    "room": 83,
    "due": 1835,
    "slot by hand": 1200,
    "held": 25,
    "again": 27,
    "requested": 145,
    "last good": 19,
}
"""A world in which the model finds a planted fault, by the fault."""


def copy(days: int, **changes: object) -> Copy:
    at = NOON - timedelta(days=days)
    made = Copy(f"c{days}", f"u{days}", Origin.RUN, at, at, "Completed", 1000, marked=at, grace=DAY)
    return replace(made, **changes)  # type: ignore[arg-type]


def wrongs(gone: Copy, *others: Copy, moment: Moment = CALM, is_pinned: bool = False) -> list[str]:
    report = Report()
    copies = {each.name: each for each in (gone, *others)}
    Judge("w", report).requested(gone, copies, moment, is_pinned=is_pinned)
    return [text.split(": ", 2)[2] for text in report.wrong]


def test_the_model_allows_an_old_copy_to_go() -> None:
    assert wrongs(copy(3), copy(1)) == []


@pytest.mark.parametrize(
    ("newer", "why"),
    [
        ({"phase": "Failed"}, ["it was the newest good one", "it was the newest restorable one"]),
        ({"phase": "PartiallyFailed"}, ["it was the newest good one"]),
        ({"items": 0}, ["it was the newest good one", "it was the newest restorable one"]),
        ({"items": 5}, ["it was the newest good one"]),
        ({"origin": Origin.HAND}, ["it was the newest good one", "it was the newest restorable one"]),
        ({"expires": NOON + 40 * MINUTE}, ["it was the newest good one", "it was the newest restorable one"]),
    ],
    ids=["failed", "partial", "empty", "shrunk", "by hand", "expires soon"],
)
def test_the_model_finds_that_the_last_one_went(newer: dict[str, object], why: list[str]) -> None:
    assert wrongs(copy(3), copy(1, **newer)) == why


@pytest.mark.parametrize(
    ("moment", "why"),
    [
        (replace(CALM, skew=HOUR), "the clock was wrong"),
        (replace(CALM, is_available=False), "its location was not available"),
        (replace(CALM, restored=frozenset({"c3"})), "a restore read it"),
        (replace(CALM, is_unread=True), "a policy or a restore could not be read"),
        (replace(CALM, rules=""), "no rules applied"),
        (replace(CALM, keeps=2), "the rules keep it"),
    ],
)
def test_the_model_finds_doubts(moment: Moment, why: str) -> None:
    assert wrongs(copy(3), copy(1), moment=moment) == [why]


def test_the_model_finds_a_pin_and_a_short_grace_period() -> None:
    assert wrongs(copy(3), copy(1), is_pinned=True) == ["it was pinned"]
    late = replace(CALM, grace=5 * DAY)
    assert wrongs(copy(3, grace=5 * DAY), copy(1), moment=late) == ["its grace period was not over"]
    assert wrongs(copy(9, marked=None), copy(1), moment=late) == ["its grace period was not over"]


def long_list(**newer: object) -> tuple[Judge, dict[str, Copy]]:
    """Return 40 old copies, and 20 runs of the last day."""
    runs = []
    for hour in range(20):
        at = NOON - hour * HOUR
        runs.append(replace(copy(1, **newer), name=f"n{hour}", uid=f"n{hour}", slot=at, made=at))
    return Judge("w", Report()), {each.name: each for each in (*map(copy, range(2, 42)), *runs)}


@pytest.mark.parametrize(("newer", "unasked"), [({}, 32), ({"phase": "Failed"}, 12)], ids=["good", "failed"])
def test_the_model_counts_what_goes_beyond_the_runs_of_the_day(newer: dict[str, object], unasked: int) -> None:
    """More than ten, and more than a fifth of 60."""
    judge, copies = long_list(**newer)
    for days in range(41, 2, -1):
        judge.requested(copies[f"c{days}"], copies, CALM, is_pinned=False)
        del copies[f"c{days}"]
    assert len(judge.report.wrong) == 39 - unasked


def test_the_model_knows_an_approval_by_its_rules() -> None:
    judge, copies = long_list(phase="Failed")
    judge.approve("rules", (f"u{days}" for days in range(12, 42)))
    for days in range(41, 11, -1):
        judge.requested(copies[f"c{days}"], copies, CALM, is_pinned=False)
        del copies[f"c{days}"]
    assert not judge.report.wrong
    judge.approve("others", (f"u{days}" for days in range(3, 12)))
    for days in range(11, 2, -1):
        judge.requested(copies[f"c{days}"], copies, CALM, is_pinned=False)
        del copies[f"c{days}"]
    assert not judge.report.wrong, "what was approved leaves the allowance of the others as it is"


def test_the_model_finds_that_new_rules_announce_many() -> None:
    judge, copies = long_list()
    judge.rules_changed("rules", copies.values(), NOON)
    for days in range(2, 15):
        judge.announced(copy(days), (), "rules", NOON)
    assert len(judge.report.wrong) == 3


def test_the_model_finds_what_kept_a_copy_since_its_deletion_was_requested() -> None:
    judge = Judge("w", Report())
    around = {each.name: each for each in map(copy, range(1, 4))}
    judge.carried_out(copy(3), around, CALM, (0, timedelta()), is_pinned=False)
    assert not judge.report.wrong
    judge.carried_out(around["c3"], around, replace(CALM, is_unread=True), (3, 4 * DAY), is_pinned=True)
    assert len(judge.report.wrong) == 4


@pytest.mark.parametrize("seed", [2, 3])
def test_a_sample_of_worlds_has_nothing_wrong(seed: int) -> None:
    report = Report()
    KINDS[seed % 2](seed, report).live()
    assert (report.worlds, report.wrong, report.unreported, report.starved) == (1, [], [], [])


@pytest.mark.repeats
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    report, seed = Report(), FOUND_IN[name]
    with planted(name):
        KINDS[seed % 2](seed, report).live()
    assert report.wrong or report.unreported
    sound = Report()
    KINDS[seed % 2](seed, sound).live()
    assert (sound.wrong, sound.unreported, sound.starved) == ([], [], [])
