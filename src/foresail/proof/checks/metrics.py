"""The figures of RestoreChecks for Prometheus: by check of administrators, which are few; those of tenants counted."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import get_args

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from foresail.api.restore_check import Result
from foresail.kube.store import Store
from foresail.plan import Key
from foresail.proof.checks.reasons import Reason
from foresail.proof.checks.rows import CheckRow, OwnedObject


class CheckMetrics(Collector):
    """The last result of each check, when it must pass again, and the sandboxes that exist."""

    def __init__(
        self, checks: Store[CheckRow], sandboxes: Store[OwnedObject], pass_due: Mapping[Key, datetime | None]
    ) -> None:
        self._checks = checks
        self._sandboxes = sandboxes
        self._pass_due = pass_due

    def describe(self) -> Iterable[Metric]:
        """Return nothing: figures exist only while the operator runs."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Return the current figures."""
        named = {
            name: GaugeMetricFamily(f"foresail_restore_check_{name}", text, labels=["name"])
            for name, text in (
                ("passed", "Whether the last check passed: 1 or 0."),
                ("last_timestamp_seconds", "When the last check ended."),
                ("last_passed_timestamp_seconds", "When a check last passed; 0 if none has."),
                ("pass_due_timestamp_seconds", "When a check must have passed again at the latest."),
                ("restore_seconds", "How long Velero took for the last restore."),
                ("ready_seconds", "How long it took from the start of the last restore until all pods were ready."),
                ("unfenced", "Whether pods of the last check ran without a closed network: 1 or 0."),
                ("items_expected", "Objects of the backup that the sandbox had to take."),
                ("items_found", "Objects that arrived in the sandbox."),
            )
        }
        rows = self._checks.rows()
        for row in [check for check in rows if not check.is_tenants]:
            due = self._pass_due.get(row.key)
            if due is not None:
                named["pass_due_timestamp_seconds"].add_metric([row.key.name], due.timestamp())
            last = row.status.last
            passed = row.status.last_passed
            if last is None:
                continue
            figures = {
                "passed": float(last.result == "Pass"),
                "last_timestamp_seconds": last.completed.timestamp(),
                "last_passed_timestamp_seconds": passed.timestamp() if passed is not None else 0.0,
                "restore_seconds": last.restore_seconds,
                "ready_seconds": last.ready_seconds,
                "unfenced": float(last.fence == "NotEnforced" and last.reason != Reason.NOT_FENCED),
                "items_expected": float(last.items_expected),
                "items_found": float(last.items_found),
            }
            for name, value in figures.items():
                if value is not None:
                    named[name].add_metric([row.key.name], value)
        sandboxes = GaugeMetricFamily("foresail_restore_check_sandboxes", "Sandboxes that exist.")
        sandboxes.add_metric([], float(len(self._sandboxes)))
        yield from (*named.values(), sandboxes, _counted(check for check in rows if check.is_tenants))


def _counted(rows: Iterable[CheckRow]) -> Metric:
    """Return how many checks have which last result: a tenant may have as many checks as they like."""
    results = Counter(row.status.last.result if row.status.last is not None else Reason.NOT_CHECKED for row in rows)
    family = GaugeMetricFamily(
        "foresail_restore_check_tenant_checks", "RestoreChecks of all tenants by their last result.", labels=["result"]
    )
    for result in (*get_args(Result), Reason.NOT_CHECKED):
        family.add_metric([result], float(results[result]))
    return family
