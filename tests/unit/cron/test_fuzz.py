import pytest

from bench.cron_fuzz import fuzz


@pytest.mark.timed
def test_random_bytes_are_parsed_or_refused_quickly() -> None:
    findings = fuzz(200_000, seed=2026)
    assert findings.failures == []
    assert sum(findings.outcomes.values()) == 200_000
    assert min(findings.outcomes[outcome] for outcome in ("fires", "never", "refused")) > 500
