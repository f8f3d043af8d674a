"""Which replica shows which figures."""

from types import SimpleNamespace
from typing import Any

from prometheus_client import Gauge

from foresail.kube.metrics import Metrics, text


def test_figures_about_objects_are_shown_by_the_leader_alone_and_by_no_former_one() -> None:
    overdue = Gauge("overdue_seconds", "What the last reconcile found.", registry=None)
    overdue.set(7)
    leads = True
    nothing: Any = SimpleNamespace(writes={}, outcomes={"written": 0, "repeated": 0, "dropped": 0})
    metrics = Metrics((), nothing, nothing, lambda: leads, [overdue])
    assert b"\noverdue_seconds 7.0\n" in text(metrics.parts())
    leads = False
    assert b"overdue_seconds" not in text(metrics.parts())
