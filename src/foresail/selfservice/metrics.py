"""What can be measured of self-service: by namespace and by what happened, never by object.

Each replica counts what it sees, and the one that leads shows it. After a change of the lead the figures of two are
in sight for a while: of several take the highest, not the sum.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from prometheus_client import Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from foresail.api.policy import Quotas
from foresail.kube.clock import now
from foresail.kube.reflector import Change
from foresail.kube.store import Store
from foresail.plan import Key, Kind
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from foresail.selfservice.garbage.decide import KINDS as GARBAGE
from foresail.selfservice.policy.quota_ledger import QuotaLedger
from foresail.selfservice.policy.quotas import counted
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests.rules import waiting_for
from foresail.selfservice.requests.status import (
    ACCEPTED,
    DATA_INCOMPLETE,
    FALSE,
    IN_DELETION,
    QUEUED,
    SUCCEEDED,
    TRUE,
    changed,
)
from foresail.selfservice.rows.requests import RequestRow, Status
from foresail.selfservice.rows.velero import VeleroRow
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.policies import PolicyRow

_BUCKETS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0)
_SCHEDULES = "NonAdminSchedules by state: Scheduled, or the reason why no run starts."
_TURN = 500  # namespaces after which other tasks get a turn
_NOTHING = Status()
_COUNTED = {
    (QUEUED, TRUE): "created",
    (ACCEPTED, FALSE): "refused",
    (SUCCEEDED, TRUE): "ended",
    (SUCCEEDED, FALSE): "ended",
    (DATA_INCOMPLETE, TRUE): "data_incomplete",
}
_MEANING = {
    "created": ("Velero Backups and Restores created for tenants' requests.", ("namespace", "kind")),
    "refused": ("Requests refused, permanently or until something changes.", ("namespace", "kind", "reason")),
    "ended": ("Backups and restores that have finished.", ("namespace", "kind", "result")),
    "data_incomplete": ("Completed backups that lack data or kinds.", ("namespace", "kind", "reason")),
    "failed_deletions": ("Deletions of backups that Velero failed.", ("namespace",)),
}

Labels = tuple[str, ...]


class States(NamedTuple):
    """How many objects are in which state; their controllers count them."""

    schedules: Mapping[str, int]  # NonAdminSchedules, by what they wait for
    locations: Mapping[str, int]  # NonAdminBackupStorageLocations


_NO_STATES = States({}, {})


class SelfServiceMetrics(Collector):
    """Counts the outcomes of requests, and computes the use of namespaces at each scrape."""

    def __init__(
        self,
        namespaces: Store[NamespaceRow],
        ledger: QuotaLedger,
        policy: Callable[[str], PolicyRow | None],
        expirations: Callable[[str], Iterable[datetime]],
        adoptable: Callable[[], Mapping[str, int]] = dict,
        states: States = _NO_STATES,
    ) -> None:
        self._namespaces = namespaces
        self._ledger = ledger
        self._policy = policy
        self._quotas: dict[Key, tuple[NamespaceRow, Quotas | None]] = {}  # of the namespace as it was then
        self.now = now
        self._expirations = expirations  # of the ended backups of a namespace, by its UID
        self._adoptable = adoptable  # Velero Backups without a NonAdminBackup, by what their records are
        self._counts: dict[str, Counter[Labels]] = {name: Counter() for name in _MEANING}
        self._waited: dict[Labels, tuple[int, float]] = {}  # how many, and how long in all
        self._labels: dict[str, set[tuple[str, Labels]]] = {}  # by namespace, what of it is counted and waited
        self._failing: Counter[Labels] = Counter()
        self._removed: Counter[Labels] = Counter({(kind.name,): 0 for kind in GARBAGE})
        self._waiting: Counter[Labels] = Counter()
        self._waiting_requests: Counter[Labels] = Counter()
        self._states = states
        self._wait = Histogram(
            "foresail_selfservice_queue_wait_seconds",
            "Time that a tenant's backup or restore waited until Velero started it.",
            labelnames=("kind",),
            buckets=_BUCKETS,
            registry=None,
        )
        for family in (BACKUPS, RESTORES):
            self._wait.labels(family.kind.name)  # from the start: else the first one would be no increase

    # What the controller reports

    def changed(self, family: Family, change: Change[RequestRow]) -> None:
        """Count each condition of a request that has come to say something new."""
        old = change.old
        new = change.new
        namespace = change.key.namespace
        before = _deletion_failed(old)
        after = _deletion_failed(new)
        _shift(self._failing, (namespace,) if before else None, (namespace,) if after else None)
        _shift(self._waiting_requests, _waits_for(family, old), _waits_for(family, new))
        if change.initial or new is None:
            return
        for condition in changed(old.status if old is not None else _NOTHING, new.status):
            name = _COUNTED.get((condition.type, condition.status))
            is_removal = condition.type == ACCEPTED and condition.reason == family.not_found
            if name is not None and not is_removal:
                self._count(name, (namespace, family.kind.name, condition.reason))
        if after and after != before:  # each attempt is reported with the time of the next
            self._count("failed_deletions", (namespace,))

    def _count(self, name: str, labels: Labels) -> None:
        counted_labels = labels[: len(_MEANING[name][1])]
        self._counts[name][counted_labels] += 1
        self._labels.setdefault(labels[0], set()).add((name, counted_labels))

    def waited(self, family: Family, change: Change[VeleroRow]) -> None:
        """Keep who waits for Velero, and measure how long one waited that Velero has just begun with."""
        before = _waits(family, change.old)
        after = _waits(family, change.new)
        _shift(self._waiting, before, after)
        if before is None or after is not None or change.new is None:
            return
        seconds = max((self.now() - change.new.created).total_seconds(), 0.0)
        self._wait.labels(family.kind.name).observe(seconds)
        count, total = self._waited.get(before, (0, 0.0))
        self._waited[before] = count + 1, total + seconds
        self._labels.setdefault(before[0], set()).add(("", before))

    def removed(self, kind: Kind) -> None:
        """Count an object without an owner that was deleted."""
        self._removed[(kind.name,)] += 1

    def policies_changed(self) -> None:
        """Forget which quotas namespaces have."""
        self._quotas.clear()

    def gone(self, namespace: str) -> None:
        """Forget what was counted in a namespace."""
        self._quotas.pop(Key("", namespace), None)
        for name, labels in self._labels.pop(namespace, ()):
            if name:
                del self._counts[name][labels]
            else:
                del self._waited[labels]

    # What a scrape reads

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the registry must not collect before there are figures."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Read the figures of this moment."""
        return chain.from_iterable(self.parts())

    def parts(self) -> Iterable[Iterable[Metric]]:
        """Copy what was counted for another thread, then read how full the namespaces are, some at a time."""
        for namespace in self._labels.keys() - {key.name for key in self._namespaces}:
            self.gone(namespace)  # counted after its namespace was deleted
        yield _Counted(
            {name: dict(counts) for name, counts in self._counts.items()},
            dict(self._waited),
            dict(self._waiting),
            dict(self._waiting_requests),
            dict(self._failing),
            dict(self._removed),
            tuple(self._wait.collect()),
            {(record,): number for record, number in self._adoptable().items()},
        ).families()
        yield (
            _states_family("schedules", _SCHEDULES, self._states.schedules),
            _states_family("locations", "NonAdminBackupStorageLocations by state.", self._states.locations),
        )
        yield from self._fullness()

    def _fullness(self) -> Iterable[Iterable[Metric]]:
        fullness: list[_Fullness] = []
        for number, key in enumerate(tuple(self._namespaces), start=1):
            namespace_fullness = self._fullness_of(key)
            if namespace_fullness is not None:
                fullness.append(namespace_fullness)
            if number % _TURN == 0:
                yield ()
        yield _fullness_families(fullness)

    def _fullness_of(self, key: Key) -> "_Fullness | None":
        row = self._namespaces.get(key)
        if row is None:
            return None
        quotas = self._quotas_of(key, row)
        stored, active = self._ledger.usage(row.uid, key.name)
        if quotas is None:
            return _Fullness(key.name, stored, active, None, None) if stored else None
        if quotas.stored is not None and stored >= quotas.stored:
            instant = self.now()
            expired = sum(expiration <= instant for expiration in self._expirations(row.uid))
            stored = counted(stored, expired, quotas.stored)
        return _Fullness(key.name, stored, active, quotas.stored, quotas.active)

    def _quotas_of(self, key: Key, row: NamespaceRow) -> Quotas | None:
        """Return the quotas of a namespace; the selectors are matched only after a change of it or of a policy."""
        known = self._quotas.get(key)
        if known is not None and known[0] is row:
            return known[1]
        policy = self._policy(key.name)
        quotas = policy.spec.quotas if policy is not None else None
        self._quotas[key] = row, quotas
        return quotas


class _Fullness(NamedTuple):
    """How many backups a namespace has, and how many it may have."""

    namespace: str
    stored: int
    active: int
    most_stored: int | None
    most_active: int | None


def _states_family(name: str, meaning: str, counts: Mapping[str, int]) -> Metric:
    family = GaugeMetricFamily(f"foresail_selfservice_{name}", meaning, labels=("state",))
    for state, count in sorted(counts.items()):
        family.add_metric((state,), count)
    return family


def _fullness_families(rows: Iterable[_Fullness]) -> Iterable[Metric]:
    used = GaugeMetricFamily(
        "foresail_selfservice_backups",
        "Backups of a namespace that count against its quota.",
        labels=("namespace", "which"),
    )
    limit = GaugeMetricFamily(
        "foresail_selfservice_quota", "Quota of backups of a namespace.", labels=("namespace", "which")
    )
    for fullness in rows:
        used.add_metric((fullness.namespace, "stored"), fullness.stored)
        used.add_metric((fullness.namespace, "active"), fullness.active)
        if fullness.most_stored is not None:
            limit.add_metric((fullness.namespace, "stored"), fullness.most_stored)
        if fullness.most_active is not None:
            limit.add_metric((fullness.namespace, "active"), fullness.most_active)
    yield from (used, limit)


class _Counted(NamedTuple):
    """A copy of the counters at one moment."""

    counts: Mapping[str, Mapping[Labels, int]]
    waited: Mapping[Labels, tuple[int, float]]
    waiting: Mapping[Labels, int]
    waiting_requests: Mapping[Labels, int]
    failing: Mapping[Labels, int]
    removed: Mapping[Labels, int]
    wait: tuple[Metric, ...]
    adoptable: Mapping[Labels, int]

    def families(self) -> Iterable[Metric]:
        """Return what a scrape shows."""
        for name, (meaning, names) in _MEANING.items():
            counter = CounterMetricFamily(f"foresail_selfservice_{name}", meaning, labels=names)
            for labels, count in self.counts[name].items():
                counter.add_metric(labels, count)
            yield counter
        meaning = "Velero objects deleted because their owner did not exist for an hour; never a Backup."
        removed = CounterMetricFamily("foresail_selfservice_garbage_removed", meaning, labels=("kind",))
        for labels, count in self.removed.items():
            removed.add_metric(labels, count)
        yield removed
        yield from self.wait
        waited = SummaryMetricFamily(
            "foresail_selfservice_waited_seconds",
            "Requests that Velero has started, and the total time that they waited.",
            labels=("namespace", "kind"),
        )
        for labels, (number, total) in self.waited.items():
            waited.add_metric(labels, number, total)
        yield waited
        yield _gauge("waiting", "Requests that Velero has not started yet.", ("namespace", "kind"), self.waiting)
        meaning = "Waiting requests by reason: the operator's queue, Velero, a policy, a quota or a storage location."
        yield _gauge("waiting_requests", meaning, ("namespace", "kind", "reason"), self.waiting_requests)
        meaning = "Backups whose last deletion attempt by Velero failed."
        yield _gauge("failing_deletions", meaning, ("namespace",), self.failing)
        meaning = "Velero Backups without a NonAdminBackup that wait for an administrator."
        yield _gauge("adoptable_backups", meaning, ("record",), self.adoptable)


def _gauge(name: str, meaning: str, names: Sequence[str], counts: Mapping[Labels, int]) -> Metric:
    family = GaugeMetricFamily(f"foresail_selfservice_{name}", meaning, labels=names)
    for labels, number in counts.items():
        family.add_metric(labels, number)
    return family


def _deletion_failed(row: RequestRow | None) -> str:
    """Return in words that Velero could not delete the backup of a request; empty if it has not been so."""
    condition = row.status.condition(IN_DELETION) if row is not None else None
    return condition.message if condition is not None and condition.reason == Reason.DELETION_FAILED else ""


def _waits(family: Family, row: VeleroRow | None) -> Labels | None:
    """Return where a tenant's backup or restore waits for Velero; None if it does not, or has no owner."""
    if row is None or row.owner is None or not row.request_uid or not row.is_waiting:
        return None
    return row.owner.namespace, family.kind.name


def _waits_for(family: Family, row: RequestRow | None) -> Labels | None:
    """Return where a request waits, and for what; None if it does not wait."""
    reason = waiting_for(family, row) if row is not None else ""
    return (row.key.namespace, family.kind.name, reason) if row is not None and reason else None


def _shift(counts: Counter[Labels], before: Labels | None, after: Labels | None) -> None:
    """Count one where it is now, and no more where it was."""
    for labels, step in ((before, -1), (after, 1)):
        if labels is not None:
            counts[labels] += step
            if not counts[labels]:
                del counts[labels]
