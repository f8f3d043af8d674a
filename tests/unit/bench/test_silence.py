"""Silence is a claim with evidence: who is measured must have asked something."""

from types import SimpleNamespace
from typing import Any

import pytest

from bench import MeasurementError
from bench.silence import heard


def test_a_user_of_whom_the_audit_log_has_nothing_is_not_the_one_that_is_measured() -> None:
    """Writes per request were 0 for weeks: those of another ServiceAccount were counted."""
    asked: Any = {"who-works": ["a request"], "somebody-else": []}
    cluster: Any = SimpleNamespace(audit=asked.__getitem__)
    assert len(heard(cluster, "who-works")) == 1
    with pytest.raises(MeasurementError, match="nothing of somebody-else"):
        heard(cluster, "somebody-else")
