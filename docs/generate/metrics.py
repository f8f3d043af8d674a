"""Every metric and every alert: from the collectors of the operator, and from the rules of the chart."""

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from docs.generate.tables import code, table
from foresail.kube.metrics import Metrics
from foresail.primers.metrics import PrimerMetrics
from foresail.proof.checks.controller import RestoreChecks
from foresail.proof.checks.reads import FileReader
from foresail.protection.controller import ProtectionByLabel
from foresail.rollback.controller import Rollbacks
from foresail.schedules.controller import Schedules
from foresail.schedules.settings import Settings
from foresail.selfservice.controller import SelfService

_RULES = Path(__file__).parents[2] / "charts" / "foresail" / "rules"
_TOP = """# Metrics and alerts

On port 8081 under `/metrics`, beside the usual `process_…` ones.
Those about objects are rebuilt from the cluster at the start, go with the object, and are shown by the replica that leads.
[Schedules](../../concepts/schedules.md#metrics-and-alerts) and [self-service](../self-service.md#metrics-and-alerts) say how they are meant; [the runbooks](../../runbooks.md) what to do when an alert fires.
"""
_ALERTS = """## Alerts

In `charts/foresail/rules`; `monitoring.rules` in the chart's values installs them, and dashboards come with `monitoring.dashboards`.
"""
_SUFFIX = {"counter": "_total"}


def collectors() -> dict[str, Iterable[Collector]]:
    """Return the collectors of every metric, by their heading."""
    nothing: Any = SimpleNamespace(writes={}, refused={}, outcomes={"written": 0, "repeated": 0, "dropped": 0})
    runtime = Metrics((), nothing, nothing, lambda: True)
    return {
        "The runtime": [runtime, *_wrapped(runtime)],
        "Schedules": [Schedules("velero", Settings()).metrics],
        "Self-service": [SelfService("velero").metrics],
        "Primers": [PrimerMetrics()],
        "Protection": [ProtectionByLabel("velero").metrics],
        "Rollbacks": [Rollbacks("velero", nothing).metrics],
        "Restore checks": [RestoreChecks("velero", FileReader(None).run).metrics],
    }


def page() -> str:
    """Return the page."""
    parts = [
        f"## {title}\n\n" + table(("metric", "type", "labels", "meaning"), sorted(_rows(found)))
        for title, found in collectors().items()
    ]
    return "\n".join([_TOP, *parts, _ALERTS, _alerts()])


def _wrapped(of: Metrics) -> list[Collector]:
    return [each for each in of._registry._collector_to_names if isinstance(each, MetricWrapperBase)]


def _rows(found: Iterable[Collector]) -> Iterable[tuple[str, str, str, str]]:
    for collector in found:
        for metric in collector.collect():
            name = metric.name + _SUFFIX.get(metric.type, "")
            labels = ", ".join(map(code, _labels(collector, metric)))
            yield code(name), metric.type, labels, metric.documentation


def _labels(collector: Collector, metric: Metric) -> tuple[str, ...]:
    """Return the names of a metric's labels; of one that is kept as an object, the object knows them."""
    for kept in (collector, *vars(collector).values()):
        if isinstance(kept, MetricWrapperBase) and kept._name == metric.name:
            return tuple(kept._labelnames)
    return tuple(metric._labelnames)  # type: ignore[attr-defined]


def alerts() -> list[dict[str, Any]]:
    """Return the rules of all alerts."""
    files = [yaml.safe_load(file.read_text()) for file in sorted(_RULES.glob("*.yaml"))]
    return [rule for file in files for group in file["groups"] for rule in group["rules"]]


def _alerts() -> str:
    rows = [
        (
            f"[{code(rule['alert'])}](../../runbooks.md#{rule['alert'].lower()})",
            rule["labels"]["severity"],
            rule.get("for", "at once"),
            f"{filled(rule['annotations']['summary'])}. {filled(rule['annotations']['description'])}",
        )
        for rule in alerts()
    ]
    return table(("alert", "severity", "after", "what it says"), rows)


def filled(text: str) -> str:
    """Return a text of an alert with the names of its placeholders."""
    for begin, end in (("{{ $labels.", "‹"), ("{{ $", "‹")):
        text = text.replace(begin, end)
    return (
        text.replace(" | humanizeDuration", "").replace(" | humanize", "").replace(" | toLower", "").replace(" }}", "›")
    )
