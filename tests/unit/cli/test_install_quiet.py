"""When Velero is restarted: not while it begins a run, or is about to."""

from datetime import datetime, timedelta

import msgspec
import pytest

from foresail.cli.install.hand_over import is_quiet, readable
from foresail.schedules.observe import ScheduleRow
from tests.unit.schedules.rows import DAY, HOUR, MINUTE, NOON, schedule, wire

SECOND = timedelta(seconds=1)
RAN = schedule(text="0 * * * *", last_backup=NOON)


@pytest.mark.parametrize(
    ("row", "instant", "expected"),
    [
        (RAN, NOON + 5 * MINUTE, True),
        (RAN, NOON + HOUR - 20 * SECOND, True),
        (RAN, NOON + HOUR - 10 * SECOND, False),  # it comes due while Velero restarts
        (RAN, NOON + HOUR + 10 * SECOND, False),  # Velero begins it within the minute
        (RAN, NOON + HOUR + 3 * MINUTE, True),  # something blocks it
        (schedule(paused=True, last_backup=NOON), NOON + HOUR - 10 * SECOND, True),
        (schedule(text="bad"), NOON, True),
    ],
)
def test_a_restart_waits_for_a_moment_without_runs(row: ScheduleRow, instant: datetime, expected: bool) -> None:
    assert is_quiet([row], "UTC", instant) is expected


def test_expressions_are_read_in_veleros_time_zone() -> None:
    nightly = schedule(text="0 3 * * *", last_backup=NOON - DAY / 2)
    assert is_quiet([nightly], "UTC", NOON.replace(hour=2) - SECOND)
    assert not is_quiet([nightly], "Europe/Berlin", NOON.replace(hour=2) - SECOND)


def test_a_schedule_that_cannot_be_read_is_left_out() -> None:
    fine = wire({"schedule": "@daily", "template": {}})
    assert [row.text for row in readable([msgspec.Raw(fine), msgspec.Raw(b'{"metadata":{"name":"x"}}')])] == ["@daily"]
