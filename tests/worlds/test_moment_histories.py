"""A sample of the random histories of restores, and proof that their witness sees a restore that acts late."""

from collections import Counter
from collections.abc import Callable

import pytest

from foresail.selfservice.requests import moment
from tests.worlds.moment_histories import live

SAMPLE = 16


def test_no_restore_acts_after_it_was_refused_or_has_expired(figure: Callable[[str], None]) -> None:
    counts: Counter[str] = Counter()
    for seed in range(SAMPLE):
        witness = live(seed)
        assert witness.late == [], seed
        counts += witness.counts
    assert all(counts[word] for word in ("acted", "refused", "expired", "asked again", "kills")), counts
    figure(f"{SAMPLE} histories of restores: {dict(counts)}")


@pytest.mark.parametrize(
    ("rule", "broken"),
    [("is_final", lambda _: False), ("expired", lambda *_: None)],
    ids=["a refusal that is not final", "a wait that does not end"],
)
def test_the_witness_sees_a_broken_rule(
    monkeypatch: pytest.MonkeyPatch, rule: str, broken: Callable[..., None]
) -> None:
    monkeypatch.setattr(moment, rule, broken)
    assert any(live(seed).late for seed in range(SAMPLE))
