"""Who shows which figures."""

from prometheus_client import CollectorRegistry, Gauge

from foresail.kube.metrics import OfTheLeader


def test_figures_about_objects_are_shown_by_the_leader_alone_and_by_no_former_one() -> None:
    overdue = Gauge("overdue_seconds", "What the last look found.", registry=None)
    overdue.set(7)
    leads = True
    registry = CollectorRegistry()
    registry.register(OfTheLeader(overdue, lambda: leads))
    assert registry.get_sample_value("overdue_seconds") == 7
    leads = False
    assert registry.get_sample_value("overdue_seconds") is None
