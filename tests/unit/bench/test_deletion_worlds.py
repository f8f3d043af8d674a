"""The model of `make deletion-worlds` finds what it must, and a small sample of worlds has nothing wrong."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bench.deletion_worlds.__main__ import KINDS
from bench.deletion_worlds.faults import FAULTS, planted
from bench.deletion_worlds.model import DAY, HOUR, Copy, Judge, Moment, Origin, Report

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
CALM = Moment(NOON, timedelta(), is_available=True, restored=frozenset(), grace=timedelta())
FOUND_IN = {"last": 5, "grace": 1, "breaker": 26, "clock": 9, "shadow": 2, "version": 4}
"""A world in which the model finds a planted fault; others follow it, until one does."""

MOST = 30


def copy(days: int, **changes: object) -> Copy:
    at = NOON - timedelta(days=days)
    made = Copy(f"c{days}", f"u{days}", Origin.RUN, at, at, "Completed", 1000, marked=at, grace=DAY)
    return replace(made, **changes)  # type: ignore[arg-type]


def wrongs(gone: Copy, *others: Copy, moment: Moment = CALM) -> list[str]:
    report = Report()
    copies = {each.name: each for each in (gone, *others)}
    Judge("w", report).requested(gone, copies, moment)
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
    ],
    ids=["failed", "partial", "empty", "shrunk", "by hand"],
)
def test_the_model_finds_that_the_last_one_went(newer: dict[str, object], why: list[str]) -> None:
    assert wrongs(copy(3), copy(1, **newer)) == why


@pytest.mark.parametrize(
    ("moment", "why"),
    [
        (replace(CALM, skew=HOUR), "the clock was wrong"),
        (replace(CALM, is_available=False), "its location was not available"),
        (replace(CALM, restored=frozenset({"c3"})), "a restore read it"),
    ],
)
def test_the_model_finds_doubts(moment: Moment, why: str) -> None:
    assert wrongs(copy(3), copy(1), moment=moment) == [why]


def test_the_model_finds_a_short_grace_period_and_a_long_list() -> None:
    late = replace(CALM, grace=5 * DAY)
    assert wrongs(copy(3, grace=5 * DAY), copy(1), moment=late) == ["its grace period was not over"]
    report = Report()
    judge, copies = Judge("w", report), {each.name: each for each in map(copy, range(2, 42))}
    for days in range(41, 20, -1):
        judge.requested(copies.pop(f"c{days}"), copies, CALM)
    assert len(report.wrong) == 11, "ten go without an approval, and so does nothing beyond them"


@pytest.mark.parametrize("seed", [2, 3])
def test_a_sample_of_worlds_has_nothing_wrong(seed: int) -> None:
    report = Report()
    KINDS[seed % 2](seed, report).live()
    assert (report.worlds, report.wrong, report.unreported, report.starved) == (1, [], [], [])


@pytest.mark.repeats
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    report, first = Report(), FOUND_IN[name]
    with planted(name):
        for seed in range(first, first + MOST):
            KINDS[seed % 2](seed, report).live()
            if report.wrong:
                return
    pytest.fail(f"nobody noticed the fault {name}")
