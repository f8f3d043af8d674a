"""A fixed sample of perturbations, and guards that are broken to see that the judge notices it: `make perturb`."""

from collections.abc import Callable

import pytest

from tests.worlds.perturb import faults, live, points, sample
from tests.worlds.perturb_faults import FAULTS, planted
from tests.worlds.perturbed_lives import LIVES
from tests.worlds.takeover import Life

MOST = 24  # so many points are tried of each life
FOUND_AT = {
    "cache": ("restore checks", "intermediate with lists after write 79, 16 events"),
    "synced": ("restore checks", "intermediate with lists after write 41, 4 events"),
    "order": ("schedules", "intermediate with lists after write 16, 1 events"),
    "name": ("schedules", "intermediate with lists after write 27, 4 events"),
    "gone": ("restore checks", "skipped at event 159, 16 events"),
    "owner": ("restore checks", "intermediate with lists after write 62, 1 events"),
}
"""A point at which the judge finds a broken guard, by the guard."""


@pytest.mark.repeats
@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.name)
def test_no_perturbation_changes_how_a_life_ends(life: Life, figure: Callable[[str], None]) -> None:
    whole = live(life)
    every = points(whole)
    tried = sample(every, MOST / len(every))
    assert [f"{point}: {each}" for point in tried for each in faults(life, point, whole)] == []
    figure(f"{life.name}: {len(tried)} of {len(every)} perturbations, all end as without")


@pytest.mark.parametrize("guard", FAULTS)
def test_a_broken_guard_is_found(guard: str) -> None:
    name, at = FOUND_AT[guard]
    life = next(each for each in LIVES if each.name == name)
    whole = live(life)
    point = next(each for each in points(whole) if str(each) == at)
    assert list(faults(life, point, whole)) == []
    with planted(guard):
        assert list(faults(life, point, whole)) != []
