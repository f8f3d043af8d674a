"""By when a check must have passed again, and that its figure goes with it."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from foresail.api.restore_check import CheckedBackups, CheckResult, RestoreCheckSpec, RestoreCheckStatus, Result
from foresail.kube.store import Store
from foresail.plan import Key
from foresail.proof.checks.metrics import CheckMetrics
from foresail.proof.checks.rows import BackupRow, CheckRow, OwnedObject
from foresail.proof.checks.rules import pass_due, waiting_since

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def check(schedule: str | None = None, passed: datetime | None = None, *, suspend: bool = False) -> CheckRow:
    spec = RestoreCheckSpec(CheckedBackups("nightly"), schedule=schedule, deadline="30m", suspend=suspend)
    status = RestoreCheckStatus(last_passed=passed)
    return CheckRow(Key("velero", "nightly"), "u", "1", 1, NOON, spec, status, "velero")


def backup(completed: datetime, phase: str = "Completed") -> BackupRow:
    return BackupRow(Key("velero", f"nightly-{completed:%H%M}"), "b", phase, {}, "", completed)


@pytest.mark.parametrize(
    ("passed", "due"),
    [
        (None, NOON.replace(hour=18, minute=30)),
        (NOON.replace(hour=18, minute=5), NOON.replace(day=17, hour=6, minute=30)),
        (NOON - 30 * HOUR, NOON.replace(hour=18, minute=30)),  # before it was created
    ],
)
def test_a_check_by_schedule_must_pass_by_its_next_run_after_the_last_pass(
    passed: datetime | None, due: datetime
) -> None:
    assert pass_due(check("0 6,18 * * *", passed), ()) == due


@pytest.mark.parametrize(
    ("passed", "completed", "due"),
    [
        (None, (), None),
        (None, (NOON + HOUR, NOON + 2 * HOUR), NOON + 1.5 * HOUR),
        (None, (NOON - 9 * HOUR,), NOON + HOUR / 2),  # the backup is older than the check
        (NOON + 2 * HOUR, (NOON + HOUR,), None),
        (NOON + 2 * HOUR, (NOON + HOUR, NOON + 3 * HOUR, NOON + 4 * HOUR), NOON + 3.5 * HOUR),
    ],
)
def test_a_check_after_each_backup_must_pass_after_the_first_one_since_the_last_pass(
    passed: datetime | None, completed: tuple[datetime, ...], due: datetime | None
) -> None:
    partial = backup(NOON + HOUR / 2, "PartiallyFailed")
    assert pass_due(check(passed=passed), [partial, *map(backup, completed)]) == due


def test_deletion_of_the_backup_that_waits_moves_nothing() -> None:
    waits = check()
    since = waiting_since(waits, [backup(NOON + HOUR), backup(NOON + 2 * HOUR)])
    assert since == NOON + HOUR
    recorded = msgspec.structs.replace(waits, status=RestoreCheckStatus(waiting_since=since))
    assert pass_due(recorded, [backup(NOON + 2 * HOUR)]) == NOON + 1.5 * HOUR
    assert pass_due(recorded, []) == NOON + 1.5 * HOUR
    passed = RestoreCheckStatus(waiting_since=since, last_passed=NOON + 3 * HOUR)
    assert pass_due(msgspec.structs.replace(waits, status=passed), [backup(NOON + 2 * HOUR)]) is None


@pytest.mark.parametrize("schedule", ["0 6 * * *", None, "nonsense"])
def test_a_check_that_cannot_run_is_not_due(schedule: str | None) -> None:
    assert pass_due(check(schedule, suspend=schedule != "nonsense"), [backup(NOON)]) is None


def test_the_figure_exists_before_the_first_check_has_ended() -> None:
    checks, row = Store[CheckRow](), check("0 6 * * *")
    checks.put(row.key, row)
    metrics = CheckMetrics(checks, Store[OwnedObject](), {row.key: NOON})
    found = {
        each.name: each.value
        for family in metrics.collect()
        for each in family.samples
        if not each.labels.get("result")
    }
    assert found == {
        "foresail_restore_check_pass_due_timestamp_seconds": NOON.timestamp(),
        "foresail_restore_check_sandboxes": 0.0,
    }


def test_checks_of_tenants_are_counted_by_their_last_result_and_have_no_series_of_their_own() -> None:
    checks = Store[CheckRow]()
    results: tuple[Result | None, ...] = ("Pass", "Pass", "Fail", None)
    for number, result in enumerate(results):
        last = CheckResult("i", "b", "u", NOON, NOON, result, "r", "m") if result is not None else None
        row = msgspec.structs.replace(check(), key=Key("shop", str(number)), status=RestoreCheckStatus(last=last))
        checks.put(row.key, row)
    found = [each for family in CheckMetrics(checks, Store[OwnedObject](), {}).collect() for each in family.samples]
    counted = {each.labels["result"]: each.value for each in found if each.name.endswith("_tenant_checks")}
    assert counted == {"Pass": 2.0, "Fail": 1.0, "NotChecked": 1.0}
    assert len(found) == len(counted) + 1, "and the number of sandboxes"


@pytest.mark.parametrize(
    ("reason", "unfenced"), [("Complete", 1.0), ("PodsNotReady", 1.0), ("RestoreFailed", 1.0), ("NotFenced", 0.0)]
)
def test_pods_without_a_fence_are_counted_whatever_became_of_them(reason: str, unfenced: float) -> None:
    checks = Store[CheckRow]()
    last = CheckResult("i", "b", "u", NOON, NOON, "Fail", reason, "m", fence="NotEnforced")
    row = msgspec.structs.replace(check(), status=RestoreCheckStatus(last=last))
    checks.put(row.key, row)
    found = [each for family in CheckMetrics(checks, Store[OwnedObject](), {}).collect() for each in family.samples]
    assert [each.value for each in found if each.name.endswith("_unfenced")] == [unfenced]
