"""The rules keep what the real restic keeps: a recorded sample of `make retention-oracle`."""

from pathlib import Path

import msgspec
import pytest

from bench.retention_oracle import History, describe, ours

RECORDED = msgspec.json.decode((Path(__file__).parent / "restic.json").read_bytes(), type=list[History])


@pytest.mark.parametrize("history", RECORDED, ids=[str(number) for number in range(len(RECORDED))])
def test_same_copies_kept_as_by_restic(history: History) -> None:
    assert ours(history) == history.kept, describe(history)


def test_recorded_sample_has_every_rule_and_removes_copies() -> None:
    assert len(RECORDED) == 60
    assert {rule for each in RECORDED for rule, count in each.rules.items() if count} == set(RECORDED[0].rules)
    assert any(each.within_hours for each in RECORDED)
    assert sum(len(each.kept) < len(each.times) for each in RECORDED) > 30
