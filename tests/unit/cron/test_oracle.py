import pytest

from bench.cron_oracle import compare
from foresail.cron import Dialect
from testbed.oracle import Oracle

SAMPLE = 5_000


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle()


@pytest.mark.repeats
@pytest.mark.parametrize("dialect", Dialect)
def test_the_engine_agrees_with_the_go_library_on_a_fixed_sample(oracle: Oracle, dialect: Dialect) -> None:
    report = compare(oracle, dialect, SAMPLE, seed=2026)
    for (kind, outcome), count in sorted(report.kinds.items()):
        print(f"{count / report.specs:6.1%}  {kind}: {outcome}")
    assert report.specs == SAMPLE
    assert len(report.zones) >= 40
    assert report.fires > 10 * SAMPLE
    assert {outcome for _, outcome in report.kinds} == {"fires", "never", "refused"}
    assert report.differences == []
