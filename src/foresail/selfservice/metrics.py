"""What can be measured of self-service: by namespace and by what happened, never by object.

Each replica counts what it sees, and the one that leads shows it. After a change of the lead the figures of two are
in sight for a while: of several take the highest, not the sum.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

from prometheus_client import Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from foresail.kube.clock import now
from foresail.kube.reflector import Change
from foresail.kube.store import Store
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from foresail.selfservice.observe import NamespaceRow, RequestRow, Status, VeleroRow
from foresail.selfservice.places import Places
from foresail.selfservice.policy import PolicyRow
from foresail.selfservice.reasons import Reason
from foresail.selfservice.status import ACCEPTED, FALSE, IN_DELETION, NOTABLE, QUEUED, SUCCEEDED, TRUE, changed

_BUCKETS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0)
_NOTHING = Status()
_COUNTED = {
    (QUEUED, TRUE): "created",
    (ACCEPTED, FALSE): "refused",
    (SUCCEEDED, TRUE): "ended",
    (SUCCEEDED, FALSE): "ended",
    (NOTABLE, TRUE): "notable",
}
_MEANING = {
    "created": ("How many Velero Backups and Restores were made for requests.", ("namespace", "kind")),
    "refused": ("How often a request was refused, for good or for now.", ("namespace", "kind", "reason")),
    "ended": ("How many backups and restores have ended.", ("namespace", "kind", "result")),
    "notable": ("How many complete backups have something that is worth a look.", ("namespace", "kind", "reason")),
    "failed_deletions": ("How often Velero was asked to delete a backup and could not.", ("namespace",)),
}

Labels = tuple[str, ...]
T = TypeVar("T")


class SelfServiceMetrics(Collector):
    """Counts what requests came to, and reads how full the namespaces are when someone asks."""

    def __init__(
        self, namespaces: Store[NamespaceRow], places: Places, policy: Callable[[str], PolicyRow | None]
    ) -> None:
        self._namespaces = namespaces
        self._places = places
        self._policy = policy
        self._counts: dict[str, Counter[tuple[str, Labels]]] = {}  # by namespace
        self._failing: Counter[Labels] = Counter()
        self._waiting: Counter[Labels] = Counter()
        self._waited: dict[str, dict[Labels, tuple[int, float]]] = {}  # by namespace: how many, and how long in all
        self._wait = Histogram(
            "foresail_selfservice_queue_wait_seconds",
            "How long a tenant's backup or restore waited for Velero to begin.",
            labelnames=("kind",),
            buckets=_BUCKETS,
            registry=None,
        )
        for family in (BACKUPS, RESTORES):
            self._wait.labels(family.kind.name)  # from the start: else the first one would be no increase

    # What the controller tells

    def changed(self, family: Family, change: Change[RequestRow]) -> None:
        """Count each condition of a request that has come to say something new."""
        old, new, namespace = change.old, change.new, change.key.namespace
        before, after = _deletion_failed(old), _deletion_failed(new)
        _shift(self._failing, (namespace,) if before else None, (namespace,) if after else None)
        if change.initial or new is None:
            return
        for each in changed(old.status if old is not None else _NOTHING, new.status):
            name = _COUNTED.get((each.type, each.status))
            is_removal = each.type == ACCEPTED and each.reason == family.not_found
            if name is not None and not is_removal:
                self._count(name, (namespace, family.kind.name, each.reason))
        if after and after != before:  # each attempt is told with the time of the next
            self._count("failed_deletions", (namespace,))

    def _count(self, name: str, labels: Labels) -> None:
        counts = self._counts.setdefault(labels[0], Counter())
        counts[name, labels[: len(_MEANING[name][1])]] += 1

    def waited(self, family: Family, change: Change[VeleroRow]) -> None:
        """Keep who waits for Velero, and measure how long one waited that Velero has just begun with."""
        before, after = _waits(family, change.old), _waits(family, change.new)
        _shift(self._waiting, before, after)
        if before is None or after is not None or change.new is None:
            return
        seconds = max((now() - change.new.created).total_seconds(), 0.0)
        self._wait.labels(family.kind.name).observe(seconds)
        here = self._waited.setdefault(before[0], {})
        count, total = here.get(before, (0, 0.0))
        here[before] = count + 1, total + seconds

    def gone(self, namespace: str) -> None:
        """Forget what was counted in a namespace."""
        self._counts.pop(namespace, None)
        self._waited.pop(namespace, None)

    # What is asked

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the figures are not asked for before there are any."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Read the figures of this moment; those of a namespace go with it."""
        for name, (meaning, labels) in _MEANING.items():
            counter = CounterMetricFamily(f"foresail_selfservice_{name}", meaning, labels=labels)
            for counts in self._present(self._counts):
                for (of, found), count in counts.items():
                    if of == name:
                        counter.add_metric(found, count)
            yield counter
        yield from self._wait.collect()
        yield from self._queue()
        yield from self._fullness()

    def _queue(self) -> Iterable[Metric]:
        waited = SummaryMetricFamily(
            "foresail_selfservice_waited_seconds",
            "How many Velero has begun with, and how long they waited in all.",
            labels=("namespace", "kind"),
        )
        for here in self._present(self._waited):
            for labels, (count, total) in here.items():
                waited.add_metric(labels, count, total)
        yield waited
        waiting = GaugeMetricFamily(
            "foresail_selfservice_waiting", "How many Velero has yet to begin with.", labels=("namespace", "kind")
        )
        for labels, number in self._waiting.items():
            waiting.add_metric(labels, number)
        yield waiting
        failing = GaugeMetricFamily(
            "foresail_selfservice_failing_deletions",
            "How many backups are to be deleted that Velero could not delete when it was last asked.",
            labels=("namespace",),
        )
        for labels, number in self._failing.items():
            failing.add_metric(labels, number)
        yield failing

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

    def _present(self, counts: dict[str, T]) -> Iterable[T]:
        """Return what was counted in namespaces that are there, and forget what came after its namespace had gone."""
        for namespace in [each for each in counts if Key("", each) not in self._namespaces]:
            del counts[namespace]
        return counts.values()


def _deletion_failed(row: RequestRow | None) -> str:
    """Return in words that Velero could not delete the backup of a request; empty if it has not been so."""
    said = row.status.condition(IN_DELETION) if row is not None else None
    return said.message if said is not None and said.reason == Reason.DELETION_FAILED else ""


def _waits(family: Family, row: VeleroRow | None) -> Labels | None:
    """Return where a tenant's backup or restore waits for Velero; None if it does not, or is nobody's."""
    if row is None or row.owner is None or not row.request_uid or not row.is_waiting:
        return None
    return row.owner.namespace, family.kind.name


def _shift(counts: Counter[Labels], before: Labels | None, after: Labels | None) -> None:
    """Count one where it is now, and no more where it was."""
    for labels, step in ((before, -1), (after, 1)):
        if labels is not None:
            counts[labels] += step
            if not counts[labels]:
                del counts[labels]
