"""The figures of Rollbacks for Prometheus: by phase and reason, never by namespace."""

from collections import Counter
from collections.abc import Iterable
from typing import get_args

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from foresail.api.rollback import RollbackPhase
from foresail.kube.store import Store
from foresail.rollback.reasons import Reason
from foresail.rollback.rules import is_in_progress
from foresail.rollback.status import SUCCEEDED, condition, since
from foresail.rollback.view import RollbackRow


class RollbackMetrics(Collector):
    """The Rollbacks that exist, counted."""

    def __init__(self, rollbacks: Store[RollbackRow]) -> None:
        self._rollbacks = rollbacks

    def describe(self) -> Iterable[Metric]:
        """Return nothing: figures exist only while the operator runs."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Return the current figures."""
        phases = GaugeMetricFamily("foresail_rollbacks", "Rollbacks by phase.", labels=["phase"])
        reasons = GaugeMetricFamily(
            "foresail_rollbacks_by_reason", "Rollbacks by the reason of their condition.", labels=["reason"]
        )
        suspended = GaugeMetricFamily(
            "foresail_rollback_suspended", "Objects that Rollbacks have suspended and not resumed yet."
        )
        oldest = GaugeMetricFamily(
            "foresail_rollback_step_started_timestamp_seconds", "When the oldest step of a Rollback that runs began."
        )
        rows = tuple(self._rollbacks.rows())
        in_phase = Counter(row.status.phase for row in rows)
        because = Counter(
            succeeded.reason for row in rows if (succeeded := condition(row.status, SUCCEEDED)) is not None
        )
        for phase in get_args(RollbackPhase):
            phases.add_metric([phase], float(in_phase[phase]))
        for reason in Reason:
            reasons.add_metric([reason], float(because[reason.value]))
        waiting = sum(not record.resumed for row in rows if is_in_progress(row) for record in row.status.stopped)
        suspended.add_metric([], float(waiting))
        started = [since(row.status, row.created).timestamp() for row in rows if is_in_progress(row)]
        if started:
            oldest.add_metric([], min(started))
        yield from (phases, reasons, suspended, oldest)
