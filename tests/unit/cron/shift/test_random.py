"""A fixed sample of what `make cron-shift` checks in full."""

import pytest

from bench.cron_shift import run
from bench.shift_brute import inexpressible

SAMPLE = 400


@pytest.mark.repeats
def test_random_shifts_fire_at_each_minute_wanted_and_at_no_other() -> None:
    report = run(SAMPLE, seed=2026)
    assert report.wrong == []
    assert sum(report.kinds.values()) == SAMPLE
    assert {kind.split(":")[0] for kind in report.kinds} == {"exact", "not exact"}
    assert report.fires > 100 * SAMPLE


def test_the_independent_check_tells_what_can_be_said_from_what_cannot() -> None:
    assert inexpressible("0 0 1 * *", "robfig", 0, 900)
    assert inexpressible("0 0 * 3 1", "robfig", 0, 900)
    assert not inexpressible("0 0 1 * *", "robfig", 0, 840)
    assert not inexpressible("0 0 * 5 1", "go-cron", 0, 900)
