"""Months of random CronJobs, each fire primed once at the fire minus the warm-up; `make primer-year` does a year."""

from collections.abc import Callable

import pytest

from tests.worlds.year_of_primers import Year, live_and_compare

CLUSTERS = (1, 6)  # clocks change in both zones
CRON_JOBS = 2
DAYS = 120


@pytest.mark.repeats
def test_each_fire_that_nothing_disturbs_is_primed_once_and_nothing_is_held_outside_of_a_window(
    figure: Callable[[str], None],
) -> None:
    year = Year()
    for number in CLUSTERS:
        year.add(live_and_compare(number, CRON_JOBS, seed=2026, days=DAYS))
    assert year.differences == []
    assert year.exactly > 100
    assert year.disturbed > 0
    assert year.restarts > 5
    figure(
        f"primers: {DAYS} days with {year.fires} fires, {year.exactly} undisturbed, the latest {year.latest:.3f} s late"
    )
