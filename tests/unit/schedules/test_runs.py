"""From where the next run is counted, which slot is due, and what holds it."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.cron import Dialect, parse
from foresail.plan import Create, Key, Patch
from foresail.schedules.decide import decide
from foresail.schedules.observe import BackupRow, LocationRow, ScheduleRow, VeleroServer
from foresail.schedules.reasons import Reason
from foresail.schedules.rules import (
    busy,
    is_settling,
    is_version_awaited,
    judge,
    location_unavailable,
    next_reconcile,
    velero_schedules,
)
from foresail.schedules.slots import base_of, last_slot
from foresail.slots.due import due_and_upcoming, missed_before
from foresail.slots.observed import Observed
from tests.unit.schedules.rows import DAY, GO_CRON, HOUR, MINUTE, NOON, UID, backup, schedule, view, watched

CREATED = NOON - DAY
OTHER = "7c9e6679-7425-40de-944b-e07fc1f90ae7"


@pytest.mark.parametrize(
    ("row", "backups", "since", "expected"),
    [
        (schedule(), (), "", CREATED),
        (schedule(last_backup=NOON - HOUR), (), "", NOON - HOUR),
        (schedule(last_backup=CREATED - DAY), (), "", CREATED - DAY),
        (schedule(last_skipped=NOON), (), "", NOON),
        (schedule(last_backup=NOON - HOUR, last_skipped=NOON - 2 * HOUR), (), "", NOON - HOUR),
        (schedule(last_backup=NOON - HOUR, last_skipped=CREATED - DAY), (), "", NOON - HOUR),
        (schedule(last_backup=NOON - HOUR), (), "2026-03-10T11:30:00Z", NOON - 30 * MINUTE),
        (schedule(last_backup=NOON - HOUR), (), "2026-03-09T11:30:00Z", NOON - HOUR),
        (schedule(last_backup=NOON - HOUR), (), "9999-12-31T23:59:59Z", NOON - HOUR),
        (schedule(last_backup=NOON - HOUR), (), "yesterday", NOON - HOUR),
        (schedule(last_backup=NOON - 2 * HOUR), (backup(slot=NOON - HOUR),), "", NOON - HOUR),
        (schedule(last_backup=NOON - 2 * HOUR), (backup(slot=NOON - HOUR, schedule_uid=OTHER),), "", NOON - 2 * HOUR),
        (schedule(last_backup=NOON - 2 * HOUR), (backup(slot=NOON + 400 * DAY),), "", NOON - 2 * HOUR),
    ],
)
def test_the_next_run_is_counted_from_the_latest_of_what_counts(
    row: ScheduleRow, backups: tuple[BackupRow, ...], since: str, expected: datetime
) -> None:
    assert base_of(view(row, *backups), Observed(row.text, since=since), NOON) == expected


def test_a_slot_is_done_if_its_backup_is_there_and_the_status_is_made_good() -> None:
    row = watched(schedule(last_backup=NOON - HOUR), first=stamp(NOON - HOUR))
    plan = decide(view(row, backup("InProgress", slot=NOON)), NOON + MINUTE)
    assert plan.actions == ()
    assert plan.status is not None
    assert plan.status.body == {"status": {"lastBackup": "2026-03-10T12:00:00Z"}}


def test_the_backup_comes_first_and_when_it_was_seen_the_patch_that_says_so() -> None:
    row = watched(schedule(last_backup=NOON - HOUR), first=stamp(NOON - HOUR))
    plan = decide(view(row), NOON)
    (create,) = plan.actions
    assert isinstance(create, Create)
    assert create.key == Key("velero", "daily-20260310120000-0f8fad5b")
    assert create.mark == {"foresail.dev/schedule-uid": UID, "foresail.dev/slot": "2026-03-10T12:00:00Z"}
    assert plan.status is None
    assert plan.wake_at == NOON + HOUR
    made = backup(slot=NOON, phase="New")
    after = decide(view(row, made), NOON)
    assert after.actions == ()
    assert after.status is not None
    assert after.status.body == {"status": {"lastBackup": "2026-03-10T12:00:00Z"}}
    assert after.wake_at == NOON + HOUR


def test_a_patch_that_is_written_anyway_says_it_at_once() -> None:
    plan = decide(view(schedule(last_backup=NOON - HOUR)), NOON)
    assert plan.actions
    assert plan.status is not None
    assert plan.status.body["status"] == {"phase": "Enabled", "lastBackup": "2026-03-10T12:00:00Z"}


def test_after_downtime_there_is_one_late_run_and_the_others_are_counted() -> None:
    row = watched(schedule(last_backup=NOON - 5 * HOUR))
    verdict = judge(view(row), NOON + 20 * MINUTE)
    assert (verdict.fires, verdict.missed) == (NOON, 4)
    assert [note.reason for note in decide(view(row), NOON + 20 * MINUTE).notes] == ["Missed"]


def test_no_more_than_a_hundred_missed_runs_are_counted() -> None:
    every_minute = parse("* * * * *")
    assert missed_before(every_minute, NOON - 7 * DAY, NOON) == 100
    assert missed_before(every_minute, NOON - MINUTE, NOON) == 0


def test_a_terminating_schedule_is_left_alone() -> None:
    plan = decide(view(schedule(is_terminating=True, skip=True)), NOON)
    assert (plan.writes, plan.wake_at) == ((), None)


def test_while_paused_nothing_is_due_and_nothing_is_waited_for() -> None:
    row = watched(schedule(paused=True, last_backup=NOON - 5 * HOUR), paused="2026-03-10T10:00:00Z")
    verdict = judge(view(row), NOON)
    assert (verdict.due, verdict.upcoming, next_reconcile(verdict, NOON)) == (None, None, None)


def test_a_day_that_is_too_rare_for_the_library_runs_when_it_comes() -> None:
    """A Friday 13 January, 13 years ahead: both libraries give up after five."""
    rare = parse("0 0 13 1 5", Dialect.GOCRON)
    created, day = datetime(2023, 2, 1, tzinfo=UTC), datetime(2034, 1, 13, tzinfo=UTC)
    assert due_and_upcoming(rare, created, created) == (None, None)
    assert due_and_upcoming(rare, created, day - timedelta(days=400)) == (None, day)
    assert due_and_upcoming(rare, created, day + HOUR) == (day, None)


def test_a_schedule_that_is_never_due_is_refused_and_requeued_a_day_later() -> None:
    verdict = judge(view(schedule(text="0 0 13 1 5", created=datetime(2023, 2, 1, tzinfo=UTC))), NOON)
    assert verdict.refused is not None
    assert verdict.refused.reason is Reason.NEVER_FIRES
    assert verdict.changes.phase == velero.FAILED_VALIDATION
    assert next_reconcile(verdict, NOON) == NOON + 180 * DAY


@pytest.mark.parametrize("last", [NOON + 30 * DAY, datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)])
def test_a_last_backup_in_the_future_is_ignored_cleared_and_reported(last: datetime) -> None:
    row = watched(schedule(last_backup=last))
    verdict = judge(view(row), NOON + MINUTE)
    assert (verdict.due, verdict.upcoming) == (None, NOON + HOUR)
    plan = decide(view(row), NOON + MINUTE)
    assert [note.reason for note in plan.notes] == ["TimeInFuture"]
    assert plan.status is not None
    assert plan.status.body["status"] == {"lastBackup": None}
    corrected = watched(schedule(), since="2026-03-10T12:01:00Z")
    assert decide(view(corrected), NOON + 2 * MINUTE).writes == ()
    assert judge(view(corrected), NOON + HOUR).fires == NOON + HOUR


def test_a_last_backup_in_the_future_gives_way_to_the_last_slot_that_has_a_backup() -> None:
    row = watched(schedule(last_backup=NOON + 365 * DAY))
    plan = decide(view(row, backup(slot=NOON)), NOON + MINUTE)
    assert plan.status is not None
    assert plan.status.body["status"] == {"lastBackup": "2026-03-10T12:00:00Z"}


@pytest.mark.parametrize("ahead", [MINUTE, 5 * MINUTE])
def test_clocks_of_two_replicas_may_differ_by_minutes(ahead: timedelta) -> None:
    row = watched(schedule(text="* * * * *", last_backup=NOON + ahead))
    verdict = judge(view(row, backup(slot=NOON + ahead)), NOON)
    assert (verdict.in_future, verdict.due, verdict.upcoming) == (None, None, NOON + ahead + MINUTE)


def test_a_schedule_made_by_a_wrong_clock_counts_from_when_it_was_first_seen() -> None:
    first = decide(view(schedule(created=NOON + 365 * DAY)), NOON)
    assert [note.reason for note in first.notes] == ["TimeInFuture"]
    known = watched(schedule(created=NOON + 365 * DAY), since="2026-03-10T12:00:00Z")
    later = decide(view(known), NOON + HOUR)
    assert later.notes == ()
    assert len(later.actions) == 1


def test_a_clock_that_was_behind_runs_no_slot_again_whose_backup_has_expired() -> None:
    behind = judge(view(watched(schedule(last_backup=NOON))), NOON - 2 * HOUR)
    assert behind.changes.clears == ("lastBackup",)
    observed = behind.changes.observed
    corrected = watched(schedule(), since=observed.since, ahead=observed.ahead)
    verdict = judge(view(corrected), NOON + 30 * MINUTE)
    assert (verdict.due, verdict.upcoming) == (None, NOON + HOUR)
    run = judge(view(watched(schedule(last_backup=NOON + HOUR), ahead=observed.ahead)), NOON + 2 * HOUR)
    assert run.changes.observed.ahead == ""


def test_an_edit_in_the_future_counts_from_now() -> None:
    row = watched(schedule(last_backup=NOON - 3 * HOUR), since="9999-12-31T23:59:59Z")
    verdict = judge(view(row), NOON + MINUTE)
    assert (verdict.due, verdict.upcoming) == (None, NOON + HOUR)
    assert verdict.changes.observed.edited == NOON + MINUTE


def test_a_skip_in_the_future_still_skips_what_was_due() -> None:
    row = watched(schedule(last_backup=NOON - 3 * HOUR, last_skipped=NOON + 365 * DAY))
    verdict = judge(view(row), NOON + MINUTE)
    assert (verdict.due, verdict.upcoming, verdict.changes.clears) == (None, NOON + HOUR, ("lastSkipped",))


def test_a_base_of_the_year_one_is_as_good_as_any() -> None:
    verdict = judge(view(watched(schedule(last_backup=datetime(1, 1, 1, tzinfo=UTC)))), NOON + MINUTE)
    assert (verdict.fires, verdict.missed) == (NOON, 100)


# What holds a run


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (backup("", slot=NOON - HOUR), True),
        (backup("New", slot=NOON - HOUR), True),
        (backup("Queued", slot=NOON - HOUR), True),
        (backup("ReadyToStart", slot=NOON - HOUR), True),
        (backup("InProgress", slot=NOON - HOUR), True),
        (backup("WaitingForPluginOperations", slot=NOON - HOUR), True),
        (backup("FinalizingPartiallyFailed", slot=NOON - HOUR), True),
        (backup("APhaseOfTheFuture", slot=NOON - HOUR), True),
        (backup("Completed", slot=NOON - HOUR), False),
        (backup("PartiallyFailed", slot=NOON - HOUR), False),
        (backup("Failed", slot=NOON - HOUR), False),
        (backup("FailedValidation", slot=NOON - HOUR), False),
        (backup("Deleting", slot=NOON - HOUR), False),
        (backup("InProgress"), True),  # by hand, from the schedule
        (backup("InProgress", slot=NOON - HOUR, schedule_uid=OTHER), False),  # of another cluster
        (backup("WaitingForPluginOperations", expires=NOON - MINUTE), False),  # synced only to be deleted
        (backup("InProgress", expires=NOON + MINUTE), True),
    ],
)
def test_a_run_waits_for_the_one_before_it(found: BackupRow, expected: bool) -> None:
    because = busy(view(schedule(), backup(slot=NOON - 2 * HOUR), found), NOON)
    assert (because is not None) is expected
    if because:
        assert str(found.key) in because.message
        assert (found.phase or "New") in because.message


def location(**changed: object) -> LocationRow:
    row = LocationRow(Key("velero", "far"), is_default=False, is_read_only=False, phase="Available", message="")
    return msgspec.structs.replace(row, **changed)


@pytest.mark.parametrize(
    ("found", "named", "problem"),
    [
        (location(), "far", None),
        (location(phase="Unavailable", message="no such bucket"), "far", "velero/far is Unavailable: no such bucket"),
        (location(phase=""), "far", "velero/far is not checked by Velero yet"),
        (location(is_read_only=True), "far", "velero/far is read-only"),
        (None, "far", "BackupStorageLocation far does not exist"),
        (None, "", "there is no default storage location"),
    ],
)
def test_a_run_waits_for_its_location(found: LocationRow | None, named: str, problem: str | None) -> None:
    because = location_unavailable(view(schedule(location=named), location=found), NOON)
    assert (because is not None) is (problem is not None)
    if because and problem:
        assert problem in because.message
        assert because.reason is Reason.LOCATION_UNAVAILABLE


def test_a_run_waits_while_velero_schedules_itself() -> None:
    assert velero_schedules(view(), NOON) is None
    because = velero_schedules(view(server=VeleroServer(Dialect.GOCRON, "v1.18.3", has_schedule_controller=True)), NOON)
    assert because is not None
    assert "--disable-controllers=schedule" in because.message


def test_a_run_waits_until_the_last_pod_with_veleros_controller_has_ended() -> None:
    server = msgspec.structs.replace(GO_CRON, scheduling_pod=Key("velero", "velero-old"))
    because = velero_schedules(view(server=server), NOON)
    assert because is not None
    assert because.reason is Reason.VELERO_SCHEDULES
    assert "Pod velero/velero-old" in because.message


@pytest.mark.parametrize(
    "server",
    [
        msgspec.structs.replace(GO_CRON, has_schedule_controller=True),
        msgspec.structs.replace(GO_CRON, scheduling_pod=Key("velero", "velero-old")),
    ],
)
def test_nothing_is_written_while_velero_runs_the_schedules(server: VeleroServer) -> None:
    for row in (schedule(skip=True), schedule(text="never"), schedule(paused=True)):
        held = decide(view(row, server=server), NOON)
        assert held.writes == ()
        assert {note.reason for note in held.notes} <= {"VeleroSchedules"}
        assert decide(view(row), NOON).writes != ()


def test_our_last_run_is_recorded_even_while_velero_runs_the_schedules() -> None:
    server = msgspec.structs.replace(GO_CRON, has_schedule_controller=True)
    row = schedule(last_backup=NOON - HOUR, skip=True)
    (patch,) = decide(view(row, backup(slot=NOON), server=server), NOON + MINUTE).writes
    assert isinstance(patch, Patch)
    assert patch.body == {"status": {"lastBackup": stamp(NOON)}}


BY_VELERO = backup(key=Key("velero", "daily-20260310120007"), created=NOON + timedelta(seconds=7))


def changed(**columns: object) -> BackupRow:
    return msgspec.structs.replace(BY_VELERO, **columns)


@pytest.mark.parametrize(
    ("found", "fires"),
    [
        (BY_VELERO, False),
        (changed(completed=NOON + MINUTE), False),
        (changed(phase="New"), False),
        (changed(completed=NOON, created=NOON + timedelta(seconds=30)), True),  # synced: another cluster made it
        (changed(phase="FailedValidation"), True),
        (changed(key=Key("velero", "daily-20260310115959")), True),  # of the slot before
        (changed(key=Key("velero", "daily-20260310120201")), True),  # too late for Velero's own controller
        (changed(key=Key("velero", "by-hand-20260310120007")), True),
        (changed(key=Key("velero", "daily-20260310129907")), True),
        (changed(key=Key("velero", "daily-2026031012000")), True),
    ],
)
def test_a_slot_is_not_doubled_that_velero_made_a_backup_for_without_recording_it(
    found: BackupRow, fires: bool
) -> None:
    verdict = judge(view(watched(schedule(last_backup=NOON - HOUR)), found), NOON + 5 * MINUTE)
    is_free = found.is_terminal
    assert (verdict.due == NOON) is fires
    assert (verdict.fires == NOON) is (fires and is_free)
    made = NOON + timedelta(seconds=7)
    assert verdict.changes.last_backup == (None if fires else made), "it is recorded, for the Backup may expire"
    if not fires:
        assert verdict.upcoming == NOON + HOUR


def test_a_blocked_slot_is_not_lost_and_the_first_reason_is_named() -> None:
    row = watched(schedule(last_backup=NOON - HOUR))
    both = view(
        row,
        backup("InProgress", slot=NOON - HOUR),
        location=None,
        server=msgspec.structs.replace(GO_CRON, has_schedule_controller=True),
    )
    verdict = judge(both, NOON + MINUTE)
    assert verdict.blocked_by is not None
    assert (verdict.blocked_by.reason, verdict.due, verdict.fires) == (Reason.VELERO_SCHEDULES, NOON, None)
    assert decide(both, NOON + MINUTE).writes == ()
    assert decide(both, NOON + MINUTE).wake_at == NOON + HOUR
    free = view(row, backup("Completed", slot=NOON - HOUR))
    assert judge(free, NOON + 30 * MINUTE).fires == NOON


@pytest.mark.parametrize(
    ("after", "backups", "expected"),
    [
        (timedelta(seconds=5), (), True),
        (timedelta(seconds=10), (), False),
        (timedelta(seconds=5), (backup("New", slot=NOON),), False),
        (timedelta(seconds=5), (backup("Completed", slot=NOON - HOUR),), True),
        (timedelta(seconds=5), (backup(slot=NOON, schedule_uid=OTHER, key=Key("velero", "theirs")),), True),
    ],
)
def test_it_is_too_early_to_tell_until_the_last_backup_is_seen(
    after: timedelta, backups: tuple[BackupRow, ...], expected: bool
) -> None:
    row = watched(schedule(text="@every 5s", last_backup=NOON))
    assert is_settling(view(row, *backups), NOON + after) is expected
    verdict = judge(view(row, *backups), NOON + after)
    assert verdict.is_settling is expected
    if expected:
        assert verdict.fires is None
        assert next_reconcile(verdict, NOON + after) == NOON + after + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("asked", "expected"), [(None, False), (NOON - timedelta(seconds=9), True), (NOON - timedelta(seconds=10), False)]
)
def test_an_answer_about_the_version_is_awaited_for_a_while(asked: datetime | None, expected: bool) -> None:
    unknown = view(schedule(text="0 0 13 * 5"), server=VeleroServer(None, version_requested=asked))
    assert is_version_awaited(unknown, NOON) is expected
    verdict = judge(unknown, NOON)
    assert verdict.blocked_by is not None
    assert verdict.blocked_by.reason is Reason.DIALECT_UNKNOWN
    assert [note.reason for note in decide(unknown, NOON).notes] == ([] if expected else ["DialectUnknown"])


def test_the_last_slot_is_this_very_schedules() -> None:
    found = (backup(slot=NOON - HOUR), backup(slot=NOON - 2 * HOUR), backup(slot=NOON, schedule_uid=OTHER), backup())
    assert last_slot(view(schedule(), *found), NOON) == NOON - HOUR
    assert last_slot(view(), NOON) is None
