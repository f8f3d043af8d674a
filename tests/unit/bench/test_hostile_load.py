"""The measurement of a hostile tenant: limits that kill, restarts that are counted, ratios, and bounds that fail."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.hostile_load.__main__ import BOUNDS
from bench.hostile_load.attacks import ATTACKS
from bench.hostile_load.containers import Container, Own, Seen, mebibytes
from bench.hostile_load.neighbour import Times
from bench.memory_group import MemoryGroup

GOOD: dict[str, Any] = {
    "slowdown": 3,
    "restarts": 0,
    "peak_of_limit": 0.5,
    "unfinished": 0,
    "hooks_admitted": 0,
}


def test_quantities_of_memory_are_read() -> None:
    assert (mebibytes("768Mi"), mebibytes("1Gi"), mebibytes("512Ki")) == (768, 1024, 0.5)


def test_the_slowdown_is_that_of_backups_or_restores_whichever_is_worse() -> None:
    alone = Times([2, 2, 4], [1, 1, 1])
    assert Times([4, 4, 40], [1, 1, 1]).slowdown(alone) == 2
    assert Times([2], [5, 5]).slowdown(alone) == 5


@pytest.mark.parametrize("figure", GOOD)
def test_each_bound_can_be_missed(figure: str) -> None:
    assert all(holds(GOOD) for holds in BOUNDS.values())
    worse = {**GOOD, figure: GOOD[figure] + 0.6}
    assert [text for text, holds in BOUNDS.items() if not holds(worse)] == [
        text for text in BOUNDS if text.startswith(f"{figure} ")
    ]


def test_there_are_eight_attacks_and_each_says_what_it_does() -> None:
    assert len(ATTACKS) == 8
    assert all(attack.prepare.__doc__ for attack in ATTACKS.values())


def ran(tmp_path: Path, code: str, until: Callable[[Seen], bool]) -> Seen:
    """Run some Python in a container of 100 MiB until something was seen of it."""
    program = Own([sys.executable, "-c", code], tmp_path / "log")
    with MemoryGroup(f"foresail-{tmp_path.name}", 100) as group:
        if not group.is_limited:
            pytest.skip("no control group can be made here")
        with Container("tried", 100, group, program) as container:
            deadline = time.monotonic() + 20
            while not until(container.seen) and time.monotonic() < deadline:
                time.sleep(0.05)
            return container.looked()


def test_a_process_beyond_its_limit_is_killed_and_counted(tmp_path: Path) -> None:
    seen = ran(tmp_path, "import time; held = 'x' * (200 << 20); time.sleep(60)", lambda seen: seen.restarts > 0)
    assert seen.out_of_memory == seen.restarts
    assert seen.peak_mib >= 100


def test_a_process_within_its_limit_runs_on_and_its_peak_is_kept(tmp_path: Path) -> None:
    code = "import time; held = 'x' * (40 << 20); del held; time.sleep(60)"
    seen = ran(tmp_path, code, lambda seen: seen.peak_mib > 40)
    assert (seen.restarts, seen.out_of_memory) == (0, 0)
    assert 40 < seen.peak_mib < 90
