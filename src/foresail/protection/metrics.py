"""The figures of protection for Prometheus: by class and reason, which administrators make, never by namespace."""

from collections import Counter
from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from foresail.kube.store import Store
from foresail.plan import Key
from foresail.protection.reasons import Reason
from foresail.protection.rows import ClassRow, ScheduleRow
from foresail.protection.status import READY, Report, State

_NO_CLASS = ""


class ProtectionMetrics(Collector):
    """The last report of each namespace, counted, and the state of each class."""

    def __init__(self, classes: Store[ClassRow], schedules: Store[ScheduleRow]) -> None:
        self._classes, self._schedules = classes, schedules
        self._reports: dict[Key, Report] = {}

    def record(self, key: Key, report: Report) -> None:
        """Record the last report of a namespace."""
        self._reports[key] = report

    def forget(self, key: Key) -> None:
        """Forget a namespace that is deleted."""
        self._reports.pop(key, None)

    def clear(self) -> None:
        """Forget all namespaces."""
        self._reports.clear()

    def describe(self) -> Iterable[Metric]:
        """Return nothing: figures exist only while the operator runs."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Return the current figures."""
        namespaces = GaugeMetricFamily(
            "foresail_protection_namespaces", "Namespaces by class and state.", labels=["class", "state"]
        )
        gaps = GaugeMetricFamily(
            "foresail_protection_gaps", "Namespaces that are not protected as they ask, by reason.", labels=["reason"]
        )
        ready = GaugeMetricFamily(
            "foresail_protection_class_ready", "Whether a ProtectionClass runs as its spec says.", labels=["class"]
        )
        schedules = GaugeMetricFamily(
            "foresail_protection_schedules", "Schedules that the operator keeps for a class.", labels=["class"]
        )
        reports = tuple(self._reports.values())
        states = Counter((report.protection_class, report.state) for report in reports)
        reasons = Counter(reason for report in reports for reason in set(report.gaps))
        rows = tuple(self._classes.rows())
        names = {_NO_CLASS, *(row.name for row in rows), *(name for name, _ in states)}
        for name in sorted(names):
            for state in State:
                namespaces.add_metric([name, state], float(states[name, state]))
        for reason in Reason:
            gaps.add_metric([reason], float(reasons[reason.value]))
        for row in rows:
            condition = next((condition for condition in row.status.conditions if condition.type == READY), None)
            ready.add_metric([row.name], float(condition is not None and condition.status == "True"))
            schedules.add_metric([row.name], float(self._schedules.count("class", row.name)))
        yield from (namespaces, gaps, ready, schedules)
