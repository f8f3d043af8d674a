"""What a scrape shows of Schedules: numbers of all, and series of those that need attention."""

import time
from datetime import timedelta

import msgspec
import pytest

from foresail.api import nonadmin, velero
from foresail.api.metadata import Metadata
from foresail.api.schedule_policy import Objective, SchedulePolicySpec, ScheduleSelector
from foresail.kube.clock import now
from foresail.kube.store import Store
from foresail.plan import Key
from foresail.schedules import metrics as module
from foresail.schedules.controller import Schedules
from foresail.schedules.metrics import ScheduleMetrics, figures_of
from foresail.schedules.observe import BackupRow, LocationRow, ScheduleRow, ScheduleView, location_row
from foresail.schedules.results import good_since, last_ended
from foresail.schedules.rules import judge
from foresail.schedules.settings import Settings
from foresail.slots.policy_timing import PolicyRow
from tests.unit.schedules.rows import AVAILABLE, DAY, HOUR, MINUTE, NOON, backup, schedule, view, watched

YEARLY = "0 0 1 1 *"
Found = dict[tuple[str, ...], float]


def shown(metrics: ScheduleMetrics) -> Found:
    """Return each figure by its short name and the values of its labels, without the histogram."""
    return {
        (sample.name.removeprefix("foresail_schedule"), *sample.labels.values()): sample.value
        for family in metrics.collect()
        if family.type == "gauge"
        for sample in family.samples
    }


def of(found: Found, name: str) -> set[str]:
    """Return the names in all series that are about one Schedule."""
    return {key[0] for key in found if name in key[1:]}


def named(name: str, row: ScheduleRow) -> ScheduleRow:
    return msgspec.structs.replace(row, key=Key("velero", name), uid=name)


def ran(row: ScheduleRow, phase: str = "Completed") -> tuple[BackupRow, ...]:
    slot = now() - HOUR
    return (backup(phase, slot, schedule=row.key.name, schedule_uid=row.uid, completed=slot + MINUTE),)


def known(metrics: ScheduleMetrics, each: ScheduleView, *, ago: timedelta = timedelta()) -> None:
    metrics.record(each, judge(each, now() - ago))


def healthy(name: str, **changed: object) -> ScheduleRow:
    row = schedule(text=YEARLY, created=now() - HOUR, last_backup=now() - HOUR)
    return watched(named(name, msgspec.structs.replace(row, **changed)))


@pytest.fixture
def metrics() -> ScheduleMetrics:
    return ScheduleMetrics(Store[LocationRow](), tuple)


def test_a_healthy_schedule_is_counted_and_has_no_series_of_its_own(metrics: ScheduleMetrics) -> None:
    row = healthy("fine")
    known(metrics, view(row, *ran(row)))
    found = shown(metrics)
    assert found["s", "velero", "healthy"] == 1
    assert sum(value for key, value in found.items() if key[0] == "s") == 1
    assert found["s_next_run_timestamp_seconds", "velero"] > now().timestamp()
    assert found["s_oldest_success_timestamp_seconds", "velero"] < now().timestamp()
    assert of(found, "fine") == set()


def test_a_bucket_of_a_tenant_that_is_unreachable_alarms_no_administrator() -> None:
    """Its owner makes it available or not; self-service counts it."""
    store = Store[LocationRow]()
    for name, notes in (("default", None), ("shop-mine", {nonadmin.LOCATION_ORIGIN: "shop"})):
        meta = Metadata(name=name, namespace="velero", annotations=notes)
        row = location_row(velero.Location(meta, status=velero.LocationStatus(phase="Unavailable")))
        store.put(row.key, row)
    found = shown(ScheduleMetrics(store, tuple))
    assert {key[2] for key in found if key[0].endswith("location_available")} == {"default"}


def test_all_schedules_have_series_where_they_are_wanted(metrics: ScheduleMetrics) -> None:
    row = healthy("fine")
    known(metrics, view(row, *ran(row)))
    metrics.shows_all = True
    found = shown(metrics)
    assert found["_overdue_seconds", "velero", "fine"] == 0
    assert found["_last_result", "velero", "fine", "Completed"] == 1
    assert {"_next_run_timestamp_seconds", "_last_success_timestamp_seconds"} < of(found, "fine")


def test_what_needs_attention_has_series_of_its_own_and_says_why(metrics: ScheduleMetrics) -> None:
    failing, paused = healthy("failing"), watched(healthy("paused", paused=True), paused="2026-01-01T00:00:00Z")
    invalid = healthy("invalid", text="99 * * * *")
    held = healthy("held", text="* * * * *", created=now() - DAY)
    known(metrics, view(failing, *ran(failing, "Failed")))
    known(metrics, view(paused))
    known(metrics, view(invalid))
    known(metrics, view(held, location=msgspec.structs.replace(AVAILABLE, phase="Unavailable")))
    late = healthy("late", text="* * * * *", last_backup=now() - 3 * MINUTE)
    known(metrics, view(late), ago=3 * MINUTE)  # nobody came to it since
    found = shown(metrics)
    for state in ("failing", "paused", "invalid", "held", "late"):
        assert found["s", "velero", state] == 1, state
    assert found["_last_result", "velero", "failing", "Failed"] == 1
    assert "_paused_since_timestamp_seconds" in of(found, "paused")
    assert found["_invalid", "velero", "invalid", "InvalidSchedule"] == 1
    assert found["_held", "velero", "held", "LocationUnavailable"] == 1
    assert found["_overdue_seconds", "velero", "late"] > 60


@pytest.mark.parametrize(
    ("changed", "place", "reason"),
    [
        ({"text": "0 0 30 2 *"}, AVAILABLE, "NeverFires"),
        ({"location": "far"}, None, "LocationUnavailable"),
        ({}, msgspec.structs.replace(AVAILABLE, is_read_only=True), "LocationUnavailable"),
    ],
)
def test_what_can_never_run_is_shown_before_it_is_due(
    metrics: ScheduleMetrics, changed: dict[str, object], place: LocationRow | None, reason: str
) -> None:
    known(metrics, view(healthy("never", **changed), location=place))
    found = shown(metrics)
    assert found["s", "velero", "invalid"] == 1
    assert found["_invalid", "velero", "never", reason] == 1


def test_a_backup_that_velero_has_not_begun_is_counted_until_it_has() -> None:
    controller, row = Schedules("velero", Settings()), healthy("fine")
    known(controller.metrics, view(row))

    def waits() -> list[float]:
        found = shown(controller.metrics)
        return [found[f"s_{name}", "velero"] for name in ("waiting_backups", "oldest_waiting_backup_seconds")]

    assert waits() == [0, 0]
    for age, phase in ((3, "New"), (7, ""), (9, "Queued"), (60, "InProgress"), (90, "Completed")):
        made = backup(phase, now() - age * MINUTE)
        controller.backups.put(made.key, made)
    assert waits() == [3, pytest.approx(9 * 60, abs=2)]
    for made in tuple(controller.backups.by("state", "waiting")):
        controller.backups.put(made.key, msgspec.structs.replace(made, phase="InProgress"))
    assert waits() == [0, 0]


def test_a_run_that_is_due_for_a_moment_is_not_late(metrics: ScheduleMetrics) -> None:
    row = healthy("burst", text="* * * * *", last_backup=now() - MINUTE)
    known(metrics, view(row), ago=MINUTE)
    assert shown(metrics)["s", "velero", "late"] == 0


def test_the_number_of_series_is_bounded_and_the_most_urgent_are_shown(
    metrics: ScheduleMetrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_SHOWN", 2)
    for number in range(3):
        row = healthy(f"failing-{number}")
        known(metrics, view(row, *ran(row, "Failed")))
    late = healthy("tardy", text="* * * * *", last_backup=now() - 3 * MINUTE)
    known(metrics, view(late), ago=3 * MINUTE)
    found = shown(metrics)
    assert found[("_series_omitted",)] == 2
    assert "_overdue_seconds" in of(found, "tardy")
    assert found["s", "velero", "failing"] == 3
    metrics.forget(late.key)
    found = shown(metrics)
    assert (found[("_series_omitted",)], of(found, "tardy")) == (1, set())


def test_many_schedules_in_one_state_do_not_hide_those_in_another(
    metrics: ScheduleMetrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_SHOWN", 5)
    for number in range(9):
        row = healthy(f"tardy-{number}", text="* * * * *", last_backup=now() - 3 * MINUTE)
        known(metrics, view(row), ago=3 * MINUTE)
    failing = healthy("failing")
    known(metrics, view(failing, *ran(failing, "Failed")))
    found = shown(metrics)
    assert "_last_result" in of(found, "failing")
    assert found[("_series_omitted",)] == 5


def test_a_scrape_of_ten_thousand_schedules_takes_little_time_of_the_event_loop(metrics: ScheduleMetrics) -> None:
    row = healthy("one")
    one = view(row, *ran(row, "Failed"))
    verdict = judge(one, now())
    for number in range(10_000):
        metrics.record(msgspec.structs.replace(one, schedule=named(f"schedule-{number}", row)), verdict)
    begun = time.thread_time()
    parts = list(metrics.parts())  # what the event loop does; the rest is done by another thread
    assert time.thread_time() - begun < 0.05
    samples = [sample for part in parts for family in part for sample in family.samples]
    assert len(samples) < 6 * module.MOST_SHOWN


def test_schedule_that_misses_its_objective_has_a_series_though_its_runs_succeed(metrics: ScheduleMetrics) -> None:
    for name, rpo in (("tight", "30m"), ("loose", "4h")):
        spec = SchedulePolicySpec(ScheduleSelector(), objective=Objective(rpo))
        row = healthy(name)
        known(metrics, view(row, *ran(row), policy=PolicyRow(Key("", name), spec)))
    never = healthy("never", created=now() - DAY)
    known(
        metrics,
        view(never, policy=PolicyRow(Key("", "p"), SchedulePolicySpec(ScheduleSelector(), objective=Objective("12h")))),
    )
    found = shown(metrics)
    assert found["s_objective_exceeded", "velero"] == 2
    assert found["_objective_used_ratio", "velero", "tight"] == pytest.approx(2.0, abs=0.1)
    assert found["_objective_used_ratio", "velero", "never"] == pytest.approx(2.0, abs=0.1)
    assert of(found, "loose") == set()


def test_further_attempts_are_counted_and_are_no_lateness(metrics: ScheduleMetrics) -> None:
    slot = now() - HOUR
    first = backup("", slot)
    again = msgspec.structs.replace(first, key=Key("velero", f"{first.key.name}-r1"))
    metrics.measure_lateness(first, slot)
    metrics.measure_lateness(again, slot)
    samples = {each.name: each.value for family in metrics.collect() for each in family.samples if not each.labels}
    assert samples["foresail_schedule_retries_total"] == 1
    assert samples["foresail_schedule_lateness_seconds_count"] == 1


def test_backup_that_velero_synced_is_no_success_of_this_schedule() -> None:
    row = schedule(created=NOON - DAY)
    synced = backup("Completed", key=Key("velero", "daily-20260310110000"), created=NOON, completed=NOON - HOUR)
    failed = backup("Failed", NOON - 2 * HOUR, completed=NOON - 2 * HOUR)
    found = view(row, synced, failed)
    assert good_since(found) == NOON - DAY
    assert last_ended(found) == failed
    assert figures_of(found, judge(found, NOON)).last_success is None
    own = backup("Completed", NOON - 3 * HOUR, created=NOON, completed=NOON - HOUR)  # restored to the cluster by a sync
    assert last_ended(view(row, own)) == own
