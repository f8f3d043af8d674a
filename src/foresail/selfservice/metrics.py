"""What can be measured of self-service: by namespace and by what happened, never by object."""

from collections import Counter
from collections.abc import Callable, Iterable

from prometheus_client import Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from foresail.kube.clock import now
from foresail.kube.reflector import Change
from foresail.kube.store import Store
from foresail.selfservice.families import Family
from foresail.selfservice.observe import NamespaceRow, RequestRow, Status, VeleroRow
from foresail.selfservice.places import Places
from foresail.selfservice.policy import PolicyRow
from foresail.selfservice.status import changed

_BUCKETS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0)
_NOTHING = Status()


class SelfServiceMetrics(Collector):
    """Counts what requests came to, and reads how full the namespaces are when someone asks."""

    def __init__(
        self, namespaces: Store[NamespaceRow], places: Places, policy: Callable[[str], PolicyRow | None]
    ) -> None:
        self._namespaces = namespaces
        self._places = places
        self._policy = policy
        self._said: Counter[tuple[str, str, str]] = Counter()
        self._wait = Histogram(
            "foresail_selfservice_queue_wait_seconds",
            "How long a tenant's backup or restore waited for Velero to begin.",
            labelnames=("kind",),
            buckets=_BUCKETS,
            registry=None,
        )

    # What the controller tells

    def changed(self, family: Family, change: Change[RequestRow]) -> None:
        """Count each condition of a request that has come to say something new."""
        if change.initial or change.new is None:
            return
        before = change.old.status if change.old is not None else _NOTHING
        for each in changed(before, change.new.status):
            self._said[change.key.namespace, family.kind.name, each.reason] += 1

    def waited(self, family: Family, change: Change[VeleroRow]) -> None:
        """Measure how long one waited that Velero has just begun with."""
        old, new = change.old, change.new
        if old is not None and new is not None and old.is_waiting and not new.is_waiting and new.request_uid:
            self._wait.labels(family.kind.name).observe(max((now() - new.created).total_seconds(), 0.0))

    # What is asked

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the figures are not asked for before there are any."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Read the figures of this moment."""
        yield from self._wait.collect()
        said = CounterMetricFamily(
            "foresail_selfservice_conditions",
            "How often a condition came to say this: BackupScheduled, Completed, QuotaExceeded, DeletionFailed, ...",
            labels=("namespace", "kind", "reason"),
        )
        for labels, count in self._said.items():
            said.add_metric(labels, count)
        yield said
        yield from self._fullness()

    def _fullness(self) -> Iterable[Metric]:
        used = GaugeMetricFamily(
            "foresail_selfservice_backups", "How many backups a namespace has.", labels=("namespace", "which")
        )
        limit = GaugeMetricFamily(
            "foresail_selfservice_quota", "How many backups a namespace may have.", labels=("namespace", "which")
        )
        for key in self._namespaces:
            row, policy = self._namespaces.get(key), self._policy(key.name)
            if row is None:
                continue
            stored, active = (count(row.uid, key.name, "") for count in (self._places.stored, self._places.active))
            quotas = policy.spec.quotas if policy is not None else None
            if quotas is None and not stored:
                continue
            used.add_metric((key.name, "stored"), stored)
            used.add_metric((key.name, "active"), active)
            if quotas is not None and quotas.stored is not None:
                limit.add_metric((key.name, "stored"), quotas.stored)
            if quotas is not None and quotas.active is not None:
                limit.add_metric((key.name, "active"), quotas.active)
        yield used
        yield limit
