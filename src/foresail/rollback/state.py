"""What the controller of Rollbacks knows: its stores."""

from collections.abc import Iterable

from foresail.api.marks import ROLLBACK_FINALIZER
from foresail.kube.store import Store
from foresail.plan import Key, ReadResult
from foresail.rollback import rules
from foresail.rollback.view import Findings, KeptRow, KeptView, RollbackRow, RollbackView, Survey
from foresail.rollback.volumes import record_of
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.policies import ChartLimits, PolicyRow, policy_for


class RollbackState:
    """The stores; everything else is in the Rollbacks or read live."""

    def __init__(self, velero_namespace: str, never: Iterable[str], chart: ChartLimits) -> None:
        self.never = frozenset((*never, velero_namespace))
        self.chart = chart
        self.rollbacks = Store[RollbackRow]({"namespace": lambda row: [row.key.namespace]})
        self.kept = Store[KeptRow]({"namespace": lambda row: [row.seen.claim.namespace]})
        self.namespaces = Store[NamespaceRow]()
        self.policies = Store[PolicyRow]()

    def view(self, key: Key, read: ReadResult[Survey, Findings] | None) -> RollbackView | None:
        """Return what a decision about a Rollback depends on; None if it is deleted."""
        row = self.rollbacks.get(key)
        if row is None:
            return None
        namespace = self.namespaces.get(Key("", key.namespace))
        policy = None
        if namespace is not None and key.namespace not in self.chart.out_of_reach:
            policy = policy_for(key.namespace, namespace.labels, self.policies.rows(), self.never)
        others = tuple(self.rollbacks.by("namespace", key.namespace))
        blocking, later = rules.blocking(row, others), rules.later(row, others)
        is_shared = any(ROLLBACK_FINALIZER in other.finalizers for other in others if other.key != key)
        keeping = min((volume.key.name for volume in self.kept.by("namespace", key.namespace)), default="")
        return RollbackView(
            row, namespace, policy, self.never, blocking, keeping, read, is_shared, later, self.chart.rollback_volumes
        )

    def kept_view(self, key: Key, read: ReadResult[Survey, Findings] | None) -> KeptView | None:
        """Return what a decision about an old volume depends on; None if it has no mark any more."""
        volume = self.kept.get(key)
        record = record_of(volume.seen) if volume is not None else None
        if volume is None:
            return None
        return KeptView(volume, self.rollbacks.get(record.key) if record is not None else None, read)
