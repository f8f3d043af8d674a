"""Further attempts at a slot: when one follows a failed run, how it is named, and what ends them."""

from datetime import datetime
from typing import Any

import msgspec
import pytest

from foresail.api.schedule_policy import Retry, SchedulePolicySpec, ScheduleSelector, ScheduleWindow, ScheduleWindows
from foresail.plan import Create, Key
from foresail.schedules.decide import decide
from foresail.schedules.observe import BackupRow, ScheduleRow, ScheduleView
from foresail.schedules.policies import problem_with
from foresail.schedules.reasons import Reason
from foresail.schedules.retries import Attempts, pause_before
from foresail.schedules.rules import judge
from foresail.schedules.slots import backup_name
from foresail.slots.policy_timing import PolicyRow
from tests.unit.schedules.rows import DAY, HOUR, MINUTE, NOON, UID, backup, schedule, view, watched


def under(retry: Retry | None) -> PolicyRow:
    return PolicyRow(Key("", "gold"), SchedulePolicySpec(ScheduleSelector(), retry=retry))


def attempt(number: int, phase: str, ended: datetime | None, **changed: Any) -> BackupRow:  # noqa: ANN401 - any column
    key = Key("velero", backup_name(schedule(), NOON, number))
    return backup(phase, slot=NOON, key=key, completed=ended, **changed)


def seen(*rows: BackupRow, row: ScheduleRow | None = None, retry: Retry | None = None, **changed: Any) -> ScheduleView:  # noqa: ANN401 - any part
    found = row or watched(schedule(last_backup=NOON))
    return view(found, *rows, policy=under(retry or Retry(2)), **changed)


def made(found: ScheduleView, now: datetime) -> str | None:
    (create,) = decide(found, now).actions or (None,)
    assert create is None or isinstance(create, Create)
    return create.key.name if create else None


def attempts(found: ScheduleView, now: datetime) -> Attempts:
    verdict = judge(found, now).attempts
    assert verdict is not None
    return verdict


def test_failed_run_is_repeated_after_the_backoff_under_a_name_of_its_slot() -> None:
    found = seen(attempt(0, "Failed", NOON + MINUTE))
    waits = decide(found, NOON + 2 * MINUTE)
    assert waits.actions == ()
    assert waits.wake_at == NOON + 6 * MINUTE
    plan = decide(found, NOON + 6 * MINUTE)
    (create,) = plan.actions
    assert isinstance(create, Create)
    assert create.key.name == "daily-20260310120000-0f8fad5b-r1"
    assert create.mark == {"foresail.dev/schedule-uid": UID, "foresail.dev/slot": "2026-03-10T12:00:00Z"}
    assert plan.status is None
    assert plan.wake_at == NOON + HOUR
    (note,) = plan.notes
    assert note.reason == "Retrying"
    assert "attempt 2 of 3" in note.message


def test_pause_doubles_and_the_last_attempt_is_reported_as_the_last() -> None:
    first, second = attempt(0, "Failed", NOON + MINUTE), attempt(1, "PartiallyFailed", NOON + 8 * MINUTE)
    assert made(seen(first, second), NOON + 17 * MINUTE) is None
    assert made(seen(first, second), NOON + 18 * MINUTE) == "daily-20260310120000-0f8fad5b-r2"
    third = attempt(2, "Failed", NOON + 20 * MINUTE)
    plan = decide(seen(first, second, third), NOON + 50 * MINUTE)
    assert plan.actions == ()
    assert [(note.reason, "attempts are used up" in note.message) for note in plan.notes] == [("RetriesEnded", True)]


@pytest.mark.parametrize(("kind", "expected"), [("Fixed", [5, 5, 5]), ("Exponential", [5, 10, 20])])
def test_backoff_is_fixed_or_exponential(kind: Any, expected: list[int]) -> None:  # noqa: ANN401 - a literal
    pauses = [pause_before(number, Retry(3, backoff_type=kind)) for number in (1, 2, 3)]
    assert pauses == [each * MINUTE for each in expected]


@pytest.mark.parametrize(
    "rows",
    [
        (attempt(0, "Completed", NOON + MINUTE),),
        (attempt(0, "FailedValidation", None),),
        (attempt(0, "Failed", NOON + MINUTE), attempt(1, "Completed", NOON + 8 * MINUTE)),
        (attempt(0, "Failed", NOON + MINUTE), attempt(1, "InProgress", None)),
        (attempt(0, "Failed", NOON + MINUTE), attempt(1, "Deleting", None)),
        (attempt(0, "Failed", NOON + MINUTE, schedule_uid="7c9e6679-7425-40de-944b-e07fc1f90ae7"),),
        (backup("Failed"),),
    ],
)
def test_nothing_is_repeated_unless_the_last_attempt_failed_as_the_policy_names(rows: tuple[BackupRow, ...]) -> None:
    assert made(seen(*rows), NOON + 40 * MINUTE) is None


def test_without_a_rule_nothing_is_repeated() -> None:
    found = view(watched(schedule(last_backup=NOON)), attempt(0, "Failed", NOON + MINUTE), policy=under(None))
    assert judge(found, NOON + 40 * MINUTE).attempts is None
    assert made(found, NOON + 40 * MINUTE) is None


@pytest.mark.parametrize(
    ("row", "changed", "why"),
    [
        (watched(schedule(last_backup=NOON, paused=True), paused="2026-03-10T12:02:00Z"), {}, "was paused"),
        (watched(schedule(last_backup=NOON), ended="2026-03-10T12:00:00Z"), {}, "was paused"),
        (watched(schedule(last_backup=NOON), since="2026-03-10T12:02:00Z"), {}, "was edited"),
        (
            watched(schedule(last_backup=NOON, last_skipped=NOON + MINUTE)),
            {},
            "runs up to 2026-03-10T12:01:00Z were skipped",
        ),
        (watched(schedule(last_backup=NOON)), {"deleted": NOON}, "was deleted"),
        (watched(schedule(last_backup=NOON)), {"retry": Retry(2, backoff="1h")}, "the next run is at 2026-03-10T13:00"),
    ],
)
def test_attempts_end_with_a_reason(row: ScheduleRow, changed: dict[str, Any], why: str) -> None:
    found = seen(attempt(0, "Failed", NOON + MINUTE), row=row, **changed)
    plan = decide(found, NOON + 50 * MINUTE)
    assert plan.actions == ()
    (note,) = [each for each in plan.notes if each.reason == "RetriesEnded"]
    assert why in note.message
    assert len(note.message.split()) <= 30


def monthly(**changed: Any) -> ScheduleView:  # noqa: ANN401 - any field of the policy
    """Return a monthly Schedule whose run failed a minute after noon."""
    spec = SchedulePolicySpec(ScheduleSelector(), retry=Retry(2), **changed)
    row = watched(schedule(text="0 12 10 * *", last_backup=NOON))
    return view(row, attempt(0, "Failed", NOON + MINUTE), policy=PolicyRow(Key("", "gold"), spec))


@pytest.mark.parametrize(
    ("changed", "last", "why"),
    [
        ({"starting_deadline": "1h"}, NOON + 6 * MINUTE + HOUR, "it is past startingDeadline 1h"),
        ({}, NOON + 6 * MINUTE + DAY, "it could have started more than 24h ago"),
        (  # it waits for the window, which opens at 22:00
            {
                "starting_deadline": "1h",
                "windows": ScheduleWindows(allowed=(ScheduleWindow("0 22 * * *", "8h"),)),
            },
            NOON + 11 * HOUR,
            "it is past startingDeadline 1h",
        ),
    ],
)
def test_attempt_that_is_too_late_is_not_made(changed: dict[str, Any], last: datetime, why: str) -> None:
    found = monthly(**changed)
    assert made(found, last) == "daily-20260310120000-0f8fad5b-r1"
    plan = decide(found, last + MINUTE)
    assert plan.actions == ()
    (note,) = [each for each in plan.notes if each.reason == "RetriesEnded"]
    assert why in note.message
    assert len(note.message.split()) <= 30


def test_pause_is_remembered_so_that_unpausing_repeats_nothing() -> None:
    row = watched(schedule(last_backup=NOON, paused=True))
    changes = judge(seen(attempt(0, "Failed", NOON + MINUTE), row=row), NOON + 2 * MINUTE).changes
    assert changes.observed.ended == "2026-03-10T12:00:00Z"
    done = judge(seen(attempt(0, "Completed", NOON + MINUTE), row=row), NOON + 2 * MINUTE).changes
    assert done.observed.ended == ""


@pytest.mark.parametrize(
    ("rows", "changed"),
    [
        ((attempt(0, "Failed", NOON + MINUTE), attempt(1, "Completed", NOON + 8 * MINUTE)), {}),
        ((attempt(0, "Failed", NOON + MINUTE),), {"deleted": NOON}),
    ],
)
def test_attempt_that_was_deleted_is_not_made_again_after_a_restart(
    rows: tuple[BackupRow, ...], changed: dict[str, Any]
) -> None:
    observed = judge(seen(*rows, **changed), NOON + 10 * MINUTE).changes.observed
    row = watched(schedule(last_backup=NOON), **msgspec.structs.asdict(observed))
    after = seen(rows[0], row=row)  # the other Backup is deleted, and a new process does not know of it
    plan = decide(after, NOON + 40 * MINUTE)
    assert plan.actions == ()
    assert plan.status is None
    assert ["a Backup of the slot was deleted" in note.message for note in plan.notes] == [True]


def test_slot_that_succeeds_at_once_costs_no_write() -> None:
    row = watched(schedule(last_backup=NOON))
    assert decide(seen(attempt(0, "Completed", NOON + MINUTE), row=row), NOON + 2 * MINUTE).status is None


def test_next_slot_takes_precedence_and_its_run_starts_over() -> None:
    found = seen(attempt(0, "Failed", NOON + MINUTE))
    assert made(found, NOON + HOUR) == "daily-20260310130000-0f8fad5b"
    following = seen(
        attempt(0, "Failed", NOON + MINUTE),
        backup("InProgress", slot=NOON + HOUR),
        row=watched(schedule(last_backup=NOON + HOUR)),
    )
    assert attempts(following, NOON + HOUR + MINUTE).made == 1


def test_attempt_waits_for_a_busy_schedule_and_an_unavailable_location() -> None:
    failed = attempt(0, "Failed", NOON + MINUTE)
    verdict = judge(seen(failed, backup("InProgress")), NOON + 10 * MINUTE)
    assert verdict.blocked_by is not None
    assert verdict.blocked_by.reason is Reason.BUSY
    assert verdict.due is None
    assert made(seen(failed, location=None), NOON + 10 * MINUTE) is None


def test_more_attempts_than_allowed_by_now_end_them() -> None:
    rows = [attempt(number, "Failed", NOON + MINUTE) for number in range(4)]
    assert attempts(seen(*rows, retry=Retry(1)), NOON + 2 * MINUTE).ended is not None


@pytest.mark.parametrize("text", ["never", "-5m", "25h"])
def test_policy_with_a_wrong_backoff_is_refused(text: str) -> None:
    assert "spec.retry.backoff" in (problem_with(under(Retry(1, backoff=text))) or "")
    assert problem_with(under(Retry(1, backoff="0s"))) is None
