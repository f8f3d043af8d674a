"""What a good backup is, in the one place that defines it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from foresail.backups import Quality, good_backups, in_order, judge

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Row:
    """A backup as any capability has it."""

    name: str
    phase: str = "Completed"
    items: int | None = 100
    selection: str = "all"
    started: datetime | None = NOON


def row(number: int, **changed: object) -> Row:
    """Return the run of an hour."""
    return Row(**{"name": f"b{number}", "started": NOON + number * timedelta(hours=1), **changed})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "quality"),
    [
        ({}, Quality.GOOD),
        ({"items": None}, Quality.GOOD),  # Velero has not said how many
        ({"items": 0}, Quality.EMPTY),
        ({"items": 10}, Quality.SHRUNK),
        ({"items": 11}, Quality.GOOD),
        ({"items": 1, "selection": "one namespace"}, Quality.GOOD),
        ({"phase": "PartiallyFailed"}, Quality.PARTIAL),
        ({"phase": "PartiallyFailed", "items": 0}, Quality.EMPTY),
        ({"phase": "Failed"}, Quality.FAILED),
        ({"phase": "FailedValidation"}, Quality.FAILED),
        ({"phase": "InProgress"}, Quality.UNFINISHED),
        ({"phase": "Deleting"}, Quality.UNFINISHED),
    ],
)
def test_the_quality_of_a_run_after_a_good_one(changed: dict[str, object], quality: Quality) -> None:
    assert judge([row(1), row(2, **changed)])["b2"] is quality


def test_a_failed_run_between_them_does_not_hide_that_a_backup_shrank() -> None:
    runs = [row(1), row(2, phase="Failed", items=None), row(3, items=0), row(4, items=5)]
    assert judge(runs)["b4"] is Quality.SHRUNK
    assert good_backups(runs) == runs[:1]


def test_two_small_runs_in_a_row_are_the_new_normal() -> None:
    runs = [row(1), row(2, items=5), row(3, items=5)]
    assert [run.name for run in good_backups(runs)] == ["b1", "b3"]


def test_runs_are_ordered_by_their_start_and_unfinished_ones_left_out() -> None:
    runs = [row(2), row(1), row(3, phase="InProgress"), row(4, started=None)]
    assert [run.name for run in in_order(runs)] == ["b1", "b2"]
