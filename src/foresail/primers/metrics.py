"""What can be measured of Primers: by namespace and by what happened; by Primer only of the few that stay cold."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from heapq import nlargest

import msgspec
from prometheus_client import Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from foresail.api.primer import PrimerStatus
from foresail.kube.clock import now
from foresail.kube.failures import Cause
from foresail.kube.reflector import Change
from foresail.plan import Key
from foresail.primers.buffer_rows import BufferRow
from foresail.primers.reasons import Reason
from foresail.primers.rows import PlaceholderRow, PrimerRow, cold_fires
from foresail.primers.shape import amounts

MOST_COLD = 200
"""Of Primers with a series of their own: the coldest ones."""

MOST_COLD_HERE = 10
"""Of those, in one namespace: whoever may edit a CronJob may forge its record."""

MOST_RESOURCES = 10
"""Of one namespace with series of their own; what is held of all others is added up as `other`."""

_KEPT = timedelta(minutes=15)
"""For how long the figures of a namespace can be scraped after its last Primer."""

_PRIMED, _UNKNOWN, _OTHER = "Primed", "Unknown", "other"
_REASONS = frozenset(reason.value for reason in Reason)
_MOST_LEFT = 1_000
_BUCKETS = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)


Requests = tuple[tuple[str, str], ...]


class _Holding(msgspec.Struct, frozen=True):
    """What a placeholder or a buffer holds, and since when."""

    since: datetime
    amounts: dict[str, float]

    def seconds(self) -> dict[str, float]:
        """Return what it has held by now: amount times seconds, by resource."""
        length = max((now() - self.since).total_seconds(), 0.0)
        return {name: amount * length for name, amount in self.amounts.items()}


class _Counted(msgspec.Struct):
    """What is counted in one namespace."""

    held: Counter[str] = msgspec.field(default_factory=Counter)
    refused: Counter[str] = msgspec.field(default_factory=Counter)
    resources: set[str] = msgspec.field(default_factory=set)  # that have a series

    def by_series(self, requests: Requests, times: int = 1) -> dict[str, float]:
        """Return amounts by the series that they count in; a resource without an amount needs none."""
        costs: dict[str, float] = {}
        for name, amount in amounts(requests).items():
            if amount > 0:
                if len(self.resources) < MOST_RESOURCES:
                    self.resources.add(name)
                series = name if name in self.resources else _OTHER
                costs[series] = costs.get(series, 0.0) + float(amount) * times
        return costs


class PrimerMetrics(Collector):
    """Counts what was held, lost and refused, and how long runs waited for their first pod."""

    def __init__(self) -> None:
        self._lost: Counter[str] = Counter()
        self._counted: dict[str, _Counted] = {}  # by namespace
        self._left: dict[str, datetime] = {}  # by namespace, since when it has neither Primers nor placeholders
        self._there: Counter[str] = Counter()  # by namespace, the Primers and placeholders that there are
        self._holding: dict[Key, _Holding] = {}  # by placeholder
        self._cold: dict[Key, int] = {}  # by Primer, of those that are cold
        self._states: Counter[tuple[str, str]] = Counter()  # of CronJobs, by namespace and reason
        self._delay = Histogram(
            "foresail_primer_start_delay_seconds",
            "From the fire of a CronJob until its first pod ran.",
            labelnames=("warm",),
            buckets=_BUCKETS,
            registry=None,
        )

    # From the controller

    def learn_primer(self, change: Change[PrimerRow]) -> None:
        """Count the losses and the start delays that have appeared in a status, and the state of CronJobs."""
        self.learn_state(change)
        if change.old is not None and change.new is not None:
            self.learn_status(change.old.status, change.new.status)

    def learn_state(self, change: Change[PrimerRow]) -> None:
        """Count the states of the CronJobs of a Primer, or of an annotated CronJob."""
        self._count(change)
        for row, count in ((change.old, -1), (change.new, 1)):
            for job in row.status.cron_jobs if row is not None else ():
                self._count_state(change.key.namespace, job.reason, count)
        cold = cold_fires(change.new) if change.new is not None else 0
        if cold:
            self._cold[change.key] = cold
        else:
            self._cold.pop(change.key, None)

    def learn_status(self, was: PrimerStatus, status: PrimerStatus) -> None:
        """Count what a status has more than the one before it."""
        before = {job.uid: job for job in was.cron_jobs}
        for primed in status.cron_jobs:
            old = before.get(primed.uid)
            lost = primed.warming
            known = old.warming if old else None
            if lost is not None and lost.lost and (known is None or known.attempt != lost.attempt or not known.lost):
                self._lost[lost.lost] += 1
            for delay in primed.start_delays:
                if old is None or not old.start_delays or delay.fire > old.start_delays[-1].fire:
                    self._delay.labels(str(delay.warm).lower()).observe(delay.seconds)

    def learn_placeholder(self, change: Change[PlaceholderRow], *, is_owned: bool) -> None:
        """Add up what a placeholder holds, from when it got its node; any tenant can label a pod without an owner."""
        new = change.new
        known = self._holding.get(change.key)
        is_holding = new is not None and new.holds
        if known is None and is_owned and new is not None and new.scheduled is not None and is_holding:
            since = now() if change.initial else new.scheduled  # what was before, the last process has counted
            self._holding[change.key] = _Holding(since, self._of(change.key.namespace).by_series(new.requests))
        elif known is not None and not is_holding:
            self._of(change.key.namespace).held.update(known.seconds())
            del self._holding[change.key]
        self._count(change)

    def learn_buffer(self, change: Change[BufferRow], requests: Requests | None, *, is_owned: bool) -> None:
        """Add up what a buffer of a known owner and PodTemplate holds, from when there is room for all its pods."""
        old = change.old
        new = change.new
        known = self._holding.get(change.key)
        is_live = new is not None and new.is_live
        is_scaled = old is not None and new is not None and old.replicas != new.replicas
        if known is not None and (is_scaled or not is_live):
            self._end_buffer(change.key, known, is_live=is_live)
        if requests is None or new is None or new.provisioned is None:
            return
        if change.key in self._holding or not (is_live and is_owned):
            return
        # The last process has counted what was before, and the size before this one is counted above.
        since = now() if change.initial or known is not None else new.provisioned
        held = self._of(change.key.namespace).by_series(requests, new.replicas)
        self._holding[change.key] = _Holding(since, held)

    def _end_buffer(self, key: Key, holding: _Holding, *, is_live: bool) -> None:
        """Add up what a buffer has held until it was scaled or deleted."""
        self._of(key.namespace).held.update(holding.seconds())
        del self._holding[key]
        if not is_live and key.namespace not in self._there:  # the last Primer is already deleted
            self._left.setdefault(key.namespace, now())

    def count_refusal(self, primer: Key, cause: Cause) -> None:
        """Count a creation that the API server refused for what it is."""
        self._of(primer.namespace).refused[cause.value] += 1
        if primer.namespace not in self._there:  # it was deleted meanwhile
            self._left.setdefault(primer.namespace, now())

    def _of(self, namespace: str) -> _Counted:
        return self._counted.setdefault(namespace, _Counted())

    def _count_state(self, namespace: str, reason: str | None, count: int) -> None:
        # Whoever may edit a CronJob may write any reason into its record.
        known = reason if reason in _REASONS else _UNKNOWN
        state = namespace, _PRIMED if reason is None else known
        self._states[state] += count
        if not self._states[state]:
            del self._states[state]

    def _count(self, change: Change[PrimerRow] | Change[PlaceholderRow]) -> None:
        """Forget the figures of a namespace a while after its last Primer and placeholder, so that they are scraped."""
        namespace = change.key.namespace
        self._there[namespace] += (change.new is not None) - (change.old is not None)
        self._left.pop(namespace, None)
        if not self._there[namespace]:
            del self._there[namespace]
            if namespace in self._counted:
                self._left[namespace] = now()
        for left, since in list(self._left.items()):  # the longest ago comes first
            if len(self._left) <= _MOST_LEFT and now() - since < _KEPT:
                break
            del self._left[left], self._counted[left]

    # For a scrape

    def describe(self) -> Iterable[Metric]:
        """Return nothing: no figures are collected at registration."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Read the figures of this moment."""
        yield from self._delay.collect()
        lost = CounterMetricFamily(
            "foresail_primer_lost", "What was held and lost before its fire, by cause.", labels=("cause",)
        )
        for cause, count in self._lost.items():
            lost.add_metric((cause,), count)
        yield lost
        yield self._held_seconds()
        yield self._refusals()
        states = GaugeMetricFamily(
            "foresail_primer_cronjobs",
            "CronJobs of Primers, by the reason why nothing is held for the next fire; Primed if it is.",
            labels=("namespace", "reason"),
        )
        for labels, count in self._states.items():
            states.add_metric(labels, count)
        yield states
        yield from self._coldest()

    def _held_seconds(self) -> Metric:
        family = CounterMetricFamily(
            "foresail_primer_held_seconds",
            "Amount of a resource times the seconds for which it was held. A namespace is dropped 15 minutes after its "
            f"last Primer. Resources beyond its first {MOST_RESOURCES} are `{_OTHER}`.",
            labels=("namespace", "resource"),
        )
        held = {namespace: Counter(counted.held) for namespace, counted in self._scraped()}
        for key, holding in self._holding.items():
            held.setdefault(key.namespace, Counter()).update(holding.seconds())
        for namespace, amounts_of in held.items():
            for resource, amount in amounts_of.items():
                family.add_metric((namespace, resource), amount)
        return family

    def _refusals(self) -> Metric:
        family = CounterMetricFamily(
            "foresail_primer_refused",
            "What the API server refused to create for Primers: Forbidden by admission or a quota, or Invalid.",
            labels=("namespace", "cause"),
        )
        for namespace, counted in self._scraped():
            for cause, count in counted.refused.items():
                family.add_metric((namespace, cause), count)
        return family

    def _scraped(self) -> Iterable[tuple[str, _Counted]]:
        for namespace, counted in self._counted.items():
            if namespace not in self._left or now() - self._left[namespace] < _KEPT:
                yield namespace, counted

    def _coldest(self) -> Iterable[Metric]:
        cold = GaugeMetricFamily(
            "foresail_primer_cold_fires",
            f"How many fires in a row, up to the last, started cold; of the {MOST_COLD} coldest Primers, "
            f"at most {MOST_COLD_HERE} in a namespace.",
            labels=("namespace", "primer"),
        )
        by_namespace: dict[str, list[tuple[int, Key]]] = {}
        for key, fires in self._cold.items():
            by_namespace.setdefault(key.namespace, []).append((fires, key))
        candidates = [cold for here in by_namespace.values() for cold in nlargest(MOST_COLD_HERE, here)]
        coldest = nlargest(MOST_COLD, candidates)
        for fires, key in coldest:
            cold.add_metric((key.namespace, key.name), fires)
        yield cold
        omitted = len(self._cold) - len(coldest)
        yield GaugeMetricFamily(
            "foresail_primer_cold_omitted", "Primers whose last fire started cold and that have no series.", omitted
        )
