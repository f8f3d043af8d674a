"""A year of random schedules has exactly the slots of the rules.

`make schedule-year` does it with a thousand Schedules, `make tenant-schedule-year` with a thousand NonAdminSchedules.
"""

import time
from collections.abc import Callable

import pytest

from tests.worlds import year_of_schedules, year_of_tenants
from tests.worlds.year_of_schedules import Year

CLUSTERS = range(4, 10)  # both dialects, both defaults
UNDER_POLICIES = range(5, 9)
SCHEDULES = 4
TENANTS_CLUSTERS, TENANTS_SCHEDULES = range(2), 3  # each run costs several times as much: it is a request too


@pytest.mark.timed
def test_a_year_of_schedules_has_exactly_the_slots_that_the_rules_give(figure: Callable[[str], None]) -> None:
    began = time.process_time()
    year = Year()
    for number in CLUSTERS:
        year.add(year_of_schedules.live_and_compare(number, SCHEDULES, seed=2026))
    seconds = time.process_time() - began
    assert year.differences == []
    assert year.schedules == len(CLUSTERS) * SCHEDULES
    assert min(year.runs - 1000, year.late - 50, year.skips - 30, year.restarts - 200) > 0, year
    assert seconds < 60
    figure(f"schedules: a year with {year.runs} runs, {year.late} late, {year.skips} skips, in {seconds:.1f} s of CPU")


@pytest.mark.timed
def test_a_year_of_tenants_schedules_has_exactly_the_slots_that_the_rules_give(figure: Callable[[str], None]) -> None:
    began = time.process_time()
    year = Year()
    for number in TENANTS_CLUSTERS:
        year.add(year_of_tenants.live_and_compare(number, TENANTS_SCHEDULES, seed=2026))
    seconds = time.process_time() - began
    assert year.differences == []
    assert year.schedules == len(TENANTS_CLUSTERS) * TENANTS_SCHEDULES
    assert min(year.runs - 100, year.late - 5, year.skips - 3, year.restarts - 80) > 0, year
    assert seconds < 90
    counts = f"{year.runs} runs, {year.late} late, {year.skips} skips"
    figure(f"NonAdminSchedules: a year with {counts}, in {seconds:.1f} s of CPU")


@pytest.mark.timed
def test_a_year_under_policies_has_exactly_the_starts_and_skips_of_their_rules(figure: Callable[[str], None]) -> None:
    year = Year()
    for number in UNDER_POLICIES:
        year.add(year_of_schedules.live_and_compare(number, SCHEDULES, seed=2026, policies=True))
    assert year.differences == []
    assert min(year.runs - 100, year.skips - 40) > 0, year
    figure(f"schedules under policies: a year with {year.runs} runs, {year.late} late, {year.skips} records of skips")
