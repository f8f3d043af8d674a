"""What can be measured of Primers: by namespace and by what happened, never by object."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta

from prometheus_client import Histogram
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from foresail.api.primer import PrimerStatus
from foresail.kube.clock import now
from foresail.kube.reflector import Change
from foresail.primers.observe import PlaceholderRow, PrimerRow
from foresail.primers.shape import amounts

_KEPT = timedelta(minutes=15)
"""For how long the figures of a namespace can be scraped after its last Primer."""

_MOST_LEFT = 1_000
_BUCKETS = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)


class PrimerMetrics(Collector):
    """Counts what was held and lost, and how long runs waited for their first pod."""

    def __init__(self) -> None:
        self._lost: Counter[str] = Counter()
        self._held: dict[str, dict[str, float]] = {}  # by namespace and resource
        self._left: dict[str, datetime] = {}  # by namespace, since when it has neither Primers nor placeholders
        self._there: Counter[str] = Counter()  # by namespace, the Primers and placeholders that there are
        self._delay = Histogram(
            "foresail_primer_start_delay_seconds",
            "From the fire of a CronJob until its first pod ran.",
            labelnames=("warm",),
            buckets=_BUCKETS,
            registry=None,
        )

    # What the controller tells

    def changed(self, change: Change[PrimerRow]) -> None:
        """Count the losses and the start delays that have come to stand in a status."""
        self._count(change)
        if change.old is not None and change.new is not None:
            self.recorded(change.old.status, change.new.status)

    def recorded(self, was: PrimerStatus, status: PrimerStatus) -> None:
        """Count what a status has more than the one before it."""
        before = {each.uid: each for each in was.cron_jobs}
        for primed in status.cron_jobs:
            old = before.get(primed.uid)
            lost, known = primed.warming, old.warming if old else None
            if lost is not None and lost.lost and (known is None or known.attempt != lost.attempt or not known.lost):
                self._lost[lost.lost] += 1
            for each in primed.start_delays:
                if old is None or not old.start_delays or each.fire > old.start_delays[-1].fire:
                    self._delay.labels(str(each.warm).lower()).observe(each.seconds)

    def held(self, change: Change[PlaceholderRow]) -> None:
        """Add up what a placeholder has held, once it is gone."""
        row = change.old
        if change.new is None and row is not None and row.scheduled is not None:
            seconds = max((now() - row.scheduled).total_seconds(), 0.0)
            held = self._held.setdefault(change.key.namespace, {})
            for name, amount in amounts(row.requests).items():
                held[name] = held.get(name, 0.0) + float(amount) * seconds
        self._count(change)

    def _count(self, change: Change[PrimerRow] | Change[PlaceholderRow]) -> None:
        """Forget what was held in a namespace a while after its last Primer and placeholder, so that it is scraped."""
        namespace = change.key.namespace
        self._there[namespace] += (change.new is not None) - (change.old is not None)
        self._left.pop(namespace, None)
        if not self._there[namespace]:
            del self._there[namespace]
            if namespace in self._held:
                self._left[namespace] = now()
        for each, since in list(self._left.items()):  # the longest ago comes first
            if len(self._left) <= _MOST_LEFT and now() - since < _KEPT:
                break
            del self._left[each], self._held[each]

    # What is asked

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the figures are not asked for before there are any."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Read the figures of this moment."""
        yield from self._delay.collect()
        lost = CounterMetricFamily(
            "foresail_primer_lost", "Placeholders that were lost before their fire, by cause.", labels=("cause",)
        )
        for cause, count in self._lost.items():
            lost.add_metric((cause,), count)
        yield lost
        held = CounterMetricFamily(
            "foresail_primer_held_seconds",
            "Amount of a resource times the seconds for which placeholders held it; a namespace is dropped 15 minutes "
            "after its last Primer.",
            labels=("namespace", "resource"),
        )
        for namespace, amounts_of in self._held.items():
            if namespace in self._left and now() - self._left[namespace] >= _KEPT:
                continue
            for resource, amount in amounts_of.items():
                held.add_metric((namespace, resource), amount)
        yield held
