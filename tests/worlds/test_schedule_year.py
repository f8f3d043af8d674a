"""A year of random Schedules has exactly the slots of the rules; `make schedule-year` does it with a thousand."""

import time
from collections.abc import Callable

import pytest

from tests.worlds.year_of_schedules import Year, live_and_compare

CLUSTERS = range(4, 10)  # both dialects, both defaults
SCHEDULES = 4


@pytest.mark.timed
def test_a_year_of_schedules_has_exactly_the_slots_that_the_rules_give(figure: Callable[[str], None]) -> None:
    began = time.process_time()
    year = Year()
    for number in CLUSTERS:
        year.add(live_and_compare(number, SCHEDULES, seed=2026))
    seconds = time.process_time() - began
    assert year.differences == []
    assert year.schedules == len(CLUSTERS) * SCHEDULES
    assert min(year.runs - 1000, year.late - 50, year.skips - 30, year.restarts - 200) > 0, year
    assert seconds < 60
    figure(f"schedules: a year with {year.runs} runs, {year.late} late, {year.skips} skips, in {seconds:.1f} s of CPU")
