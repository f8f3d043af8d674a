"""When skipImmediately is applied, what is remembered of it, and what an edit does."""

from datetime import timedelta

import msgspec
import pytest

from foresail.api.instants import stamp
from foresail.plan import Patch
from foresail.schedules.decide import decide, reasons_to_report
from foresail.schedules.observe import ScheduleRow, VeleroServer
from foresail.schedules.reasons import Reason
from foresail.schedules.rules import judge
from foresail.schedules.settings import Settings
from foresail.schedules.status import last_observed, pause_annotation
from foresail.slots.observed import Observed
from foresail.slots.rules import is_edited, stored_text
from foresail.slots.skip_immediately import is_new, is_skipped, is_unpaused, turned_true
from tests.unit.schedules.rows import DAY, HOUR, MINUTE, NOON, schedule, view, watched

SEEN = Observed("0 * * * *")
PAUSED = Observed("0 * * * *", paused="2026-03-10T10:00:00Z")
CONSUMED = Observed("0 * * * *", consumed=True)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (schedule(), True),
        (schedule(phase="Enabled"), False),
        (schedule(phase="FailedValidation"), False),
        (schedule(last_backup=NOON), False),
        (schedule(last_skipped=NOON), False),
        (schedule(annotations={"foresail.dev/observed": "{}"}), True),
    ],
)
def test_a_schedule_is_new_until_any_controller_has_worked_on_it(row: ScheduleRow, expected: bool) -> None:
    assert is_new(row) is expected


@pytest.mark.parametrize(
    ("paused", "previous", "expected"),
    [(False, PAUSED, True), (True, PAUSED, False), (False, SEEN, False), (True, SEEN, False), (False, None, False)],
)
def test_unpaused_means_that_the_pause_was_seen(paused: bool, previous: Observed | None, expected: bool) -> None:
    assert is_unpaused(schedule(paused=paused), previous) is expected


@pytest.mark.parametrize(
    ("skip", "previous", "expected"),
    [
        (True, None, True),
        (True, SEEN, True),
        (True, CONSUMED, False),
        (None, SEEN, False),
        (False, SEEN, False),
        (False, None, False),
    ],
)
def test_the_field_turns_true_once_until_it_is_consumed(
    skip: bool | None, previous: Observed | None, expected: bool
) -> None:
    assert turned_true(schedule(skip=skip), previous) is expected


def expected_skip(field: bool | None, default: bool, occasion: str) -> bool:
    """Say in the words of the issue whether skipImmediately is applied."""
    effective = default if field is None else field
    return effective and (occasion in ("new", "unpaused") or (occasion == "seen" and field is True))


@pytest.mark.parametrize("default", [False, True])
@pytest.mark.parametrize("field", [None, True, False])
@pytest.mark.parametrize("occasion", ["new", "unpaused", "seen", "consumed", "paused"])
def test_it_is_applied_on_an_occasion_and_never_otherwise(occasion: str, field: bool | None, default: bool) -> None:
    rows = {
        "new": (schedule(skip=field), None),
        "unpaused": (schedule(skip=field, phase="Enabled"), PAUSED),
        "seen": (schedule(skip=field, phase="Enabled"), SEEN),
        "consumed": (schedule(skip=field, phase="Enabled"), CONSUMED),
        "paused": (schedule(skip=field, paused=True), None),
    }
    row, previous = rows[occasion]
    assert is_skipped(row, previous, default=default) is expected_skip(field, default, occasion)


def test_applied_it_is_one_patch_with_the_field_taken_and_nothing_is_due() -> None:
    plan = decide(view(schedule(skip=True)), NOON + timedelta(seconds=0.7))
    assert plan.actions == ()
    assert plan.status is not None
    assert plan.status.body == {
        "metadata": {"annotations": {"foresail.dev/observed": '{"schedule":"0 * * * *","consumed":true}'}},
        "spec": {"skipImmediately": None},
        "status": {"phase": "Enabled", "lastSkipped": "2026-03-10T12:00:00Z"},
    }
    assert plan.status.resource_version == "7"
    assert [note.reason for note in plan.notes] == ["Skipped"]
    assert plan.wake_at == NOON + HOUR


def test_put_back_without_a_pause_it_stays_and_that_is_reported_once() -> None:
    row = watched(schedule(skip=True, last_skipped=NOON), consumed=True)
    plan = decide(view(row), NOON + 5 * MINUTE)
    (note,) = plan.notes
    assert note.reason == "SkipNotApplied"
    assert "ignored until the next unpause" in note.message
    (patch,) = plan.writes
    assert isinstance(patch, Patch)
    assert patch.body == {
        "metadata": {
            "annotations": {"foresail.dev/observed": '{"schedule":"0 * * * *","consumed":true,"ignored":true}'}
        }
    }
    told = watched(row, consumed=True, ignored=True)
    later = decide(view(told), NOON + 6 * MINUTE)
    assert (later.writes, later.notes) == ((), ())


def test_taken_back_and_set_once_more_it_is_reported_again() -> None:
    told = watched(schedule(last_skipped=NOON), consumed=True, ignored=True)
    assert not judge(view(told), NOON + MINUTE).changes.observed.ignored
    assert decide(view(told), NOON + MINUTE).notes == ()
    paused = watched(schedule(skip=True, paused=True, last_skipped=NOON), consumed=True, ignored=True)
    assert not judge(view(paused), NOON + MINUTE).changes.observed.ignored


def test_a_pause_makes_it_usable_again_and_never_consumes_it() -> None:
    row = watched(schedule(skip=True, paused=True, last_skipped=NOON - DAY), consumed=True)
    verdict = judge(view(row), NOON)
    assert (verdict.skipped, verdict.changes.clears_skip) == (False, False)
    assert verdict.changes.observed == Observed("0 * * * *", paused="2026-03-10T12:00:00Z")
    again = watched(schedule(skip=True, last_skipped=NOON - DAY), paused="2026-03-10T12:00:00Z")
    assert judge(view(again), NOON + HOUR).changes.clears_skip


def test_the_default_of_the_operator_skips_without_touching_the_field_or_counting_as_consumed() -> None:
    verdict = judge(view(schedule(), settings=Settings(skip_immediately=True)), NOON)
    assert verdict.changes.last_skipped == NOON
    assert (verdict.changes.clears_skip, verdict.changes.observed.consumed) == (False, False)


@pytest.mark.parametrize("text", ["nonsense", "0 0 30 2 *", "0 0 13 * 5"])
def test_an_unpause_is_not_forgotten_while_the_expression_cannot_be_read(text: str) -> None:
    """It was skipped only once the expression could be read, and by then the pause was forgotten: a surprise run."""
    row = watched(schedule(text=text, last_backup=NOON - DAY), paused="2026-03-10T10:00:00Z")
    unknown = view(row, server=VeleroServer(None), settings=Settings(skip_immediately=True))
    verdict = judge(unknown, NOON)
    assert verdict.changes.last_skipped == NOON
    assert verdict.changes.observed.paused == ""


def test_the_time_of_a_pause_is_that_at_which_it_was_first_seen() -> None:
    row = watched(schedule(paused=True), paused="2026-03-10T10:00:00Z")
    assert judge(view(row), NOON).changes.observed.paused == "2026-03-10T10:00:00Z"


# Edits


@pytest.mark.parametrize(
    ("previous", "expected"), [(None, False), (SEEN, False), (Observed("5 * * * *"), True), (Observed(""), True)]
)
def test_an_edit_is_an_expression_unlike_the_one_last_seen(previous: Observed | None, expected: bool) -> None:
    assert is_edited(schedule(), previous) is expected


def test_an_edit_brings_no_surprise_run_now_or_after_a_restart() -> None:
    row = watched(schedule(text="30 * * * *", last_backup=NOON - DAY), schedule="0 * * * *")
    first = judge(view(row), NOON + 45 * MINUTE)
    assert (first.edited, first.due, first.upcoming) == (True, None, NOON + 90 * MINUTE)
    remembered_now = first.changes.observed
    assert remembered_now.edited == NOON + 45 * MINUTE
    after = watched(schedule(text="30 * * * *", last_backup=NOON - DAY), since=remembered_now.since)
    assert judge(view(after), NOON + 50 * MINUTE).due is None
    assert judge(view(after), NOON + 90 * MINUTE).fires == NOON + 90 * MINUTE


def test_an_enormous_expression_is_remembered_by_its_digest() -> None:
    huge = "0 " * 500_000
    assert stored_text(huge) == stored_text(str(huge))
    assert len(stored_text(huge)) == 64
    assert stored_text(huge) != stored_text(huge + " ")
    assert stored_text("x" * 1024) == "x" * 1024


def test_what_is_said_of_a_skip_names_the_next_run() -> None:
    (because,) = reasons_to_report(judge(view(schedule(skip=True)), NOON))
    assert because.reason is Reason.SKIPPED
    assert "the next run is at 2026-03-10T13:00:00Z" in because.message


def test_what_is_remembered_survives_being_written_and_read() -> None:
    verdict = judge(view(schedule(skip=True, paused=False)), NOON)
    row = watched(schedule(), **msgspec.to_builtins(verdict.changes.observed))
    assert last_observed(row) == verdict.changes.observed


def test_a_pause_that_no_operator_saw_is_recorded_at_its_end_so_that_the_skip_applies() -> None:
    unseen = watched(schedule(skip=True), consumed=True)
    assert not turned_true(unseen, last_observed(unseen))
    noted = pause_annotation(unseen, NOON)
    ended = msgspec.structs.replace(unseen, annotations={**unseen.annotations, **noted})
    previous = last_observed(ended)
    assert is_unpaused(ended, previous)
    assert is_skipped(ended, previous, default=False)


def test_a_pause_that_was_seen_needs_no_note_and_neither_does_a_schedule_that_is_new() -> None:
    assert pause_annotation(watched(schedule(paused=True), paused=stamp(NOON)), NOON) == {}
    assert pause_annotation(schedule(), NOON) == {}
