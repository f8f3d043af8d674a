"""What the controller of Primers counts before its stores show it."""

from datetime import UTC, datetime

from foresail.plan import Key, Plan
from foresail.primers.controller import Primers
from foresail.primers.decide import decide
from tests.unit.primers.rows import SETTINGS, primer, seen

NOW = datetime(2026, 1, 2, 2, 59, tzinfo=UTC)


def held(primers: Primers, key: Key) -> tuple[int, int]:
    found = primers.observe(key, NOW)
    assert found is not None
    return found.held_here, found.held_in_all


def test_what_another_primer_is_about_to_make_counts_in_its_namespace_and_in_all() -> None:
    primers = Primers(SETTINGS)
    first, here, elsewhere = Key("reports", "warm"), Key("reports", "other"), Key("elsewhere", "other")
    for key in (first, here, elsewhere):
        primers.primers.put(key, primer(key=key, uid=str(key)))
    found = seen()
    primers.begin(first, found, decide(found, NOW), NOW)
    assert [held(primers, key) for key in (first, here, elsewhere)] == [(0, 0), (1, 1), (0, 1)]
    primers.begin(first, found, Plan(), NOW)
    assert held(primers, here) == (0, 0)
