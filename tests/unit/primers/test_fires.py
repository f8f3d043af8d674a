"""When a CronJob fires, whatever a tenant writes into its schedule."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from foresail.api.batch import CronJob
from foresail.cron import Dialect, Schedule, parse
from foresail.cron.shift import Shifted
from foresail.primers.decide import decide
from foresail.primers.fires import Fires, duty_cycle, fires, shifted
from foresail.primers.reasons import Reason
from foresail.primers.rows import LONGEST_SCHEDULE, CronJobRow, cron_job_row
from foresail.reporting import Because
from tests.unit.primers.rows import cron_job, primer, primer_view
from tests.unit.primers.test_shape import MEGABYTE, kept_after

NOW = datetime(2026, 1, 2, 2, 55, tzinfo=UTC)
WARM_UP = timedelta(minutes=10)


def read(text: str) -> CronJobRow:
    template: dict[str, object] = {"spec": {"containers": []}}
    wire = {
        "metadata": {"name": "daily", "namespace": "reports", "uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"schedule": text, "jobTemplate": {"spec": {"template": template}}},
    }
    return cron_job_row(msgspec.json.decode(msgspec.json.encode(wire), type=CronJob))


def test_a_schedule_that_is_too_long_is_not_primed_and_the_event_names_the_limit() -> None:
    text = "0," * LONGEST_SCHEDULE + "0 3 * * *"
    plan = decide(primer_view(cron_job(text), primer=primer(method="CronJob")), NOW)
    assert plan.actions == ()
    assert plan.notes[0].reason == Reason.INVALID.value
    assert f"{LONGEST_SCHEDULE} characters" in plan.notes[0].message


def test_of_a_schedule_that_is_too_long_no_more_is_kept_than_tells_so() -> None:
    row = read("0," * MEGABYTE + "0 3 * * *")
    assert len(row.text) == LONGEST_SCHEDULE + 1
    assert isinstance(fires(row, "UTC", NOW), Because)
    assert kept_after(read(f"{n}," * MEGABYTE) for n in range(3)) < MEGABYTE


@pytest.mark.parametrize(("length", "parsed"), [(9, 1), (LONGEST_SCHEDULE - 9, 3)], ids=["short", "long"])
def test_only_short_schedules_are_cached(length: int, parsed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def counted(text: str, dialect: Dialect, zone: str) -> Schedule:
        calls.append(text)
        return parse(text, dialect, zone)

    monkeypatch.setattr("foresail.primers.fires.parse", counted)
    row = cron_job(f"{',17' * (length // 3)} 4 * * *"[1:])
    for _ in range(3):
        assert isinstance(fires(row, "UTC", NOW), Fires)
    assert len(calls) == parsed
    for _ in range(2):
        assert duty_cycle(row, "UTC", WARM_UP) == 1
        assert isinstance(shifted(row, "UTC", WARM_UP, NOW), Shifted)
    assert len(calls) == (parsed if parsed == 1 else parsed + 4)
