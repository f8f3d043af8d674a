"""Prometheus metrics of the runtime; most are computed at scrape time."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, chain
from typing import Any, Protocol, runtime_checkable

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from foresail.kube.clock import now
from foresail.kube.events import Events
from foresail.kube.execute import Executor
from foresail.kube.loop import Loop
from foresail.kube.reflector import WatchSpec
from foresail.kube.requests import BUCKETS, Requests
from foresail.kube.watch import Watch

CONTENT_TYPE = CONTENT_TYPE_LATEST
_BUCKETS = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0)  # client-go's without the smallest


@runtime_checkable
class InParts(Protocol):
    """A collector with many samples."""

    def parts(self) -> Iterable[Iterable[Metric]]:
        """Return the metrics in parts: other tasks run between two parts, and any thread may iterate over one."""


def parts_of(collector: Collector) -> Iterable[Iterable[Metric]]:
    """Return the parts of any collector; by default each metric family is one."""
    return collector.parts() if isinstance(collector, InParts) else ((family,) for family in collector.collect())


class Metrics(Collector):
    """The metrics of one process in their own registry."""

    def __init__(
        self,
        loops: Sequence[Loop[Any]],
        executor: Executor,
        events: Events,
        is_leader: Callable[[], bool],
        others: Sequence[Collector] = (),
        *,
        lease: str = "foresail",
        requests: Requests | None = None,
    ) -> None:
        self._loops = loops
        self._executor = executor
        self._events = events
        self._is_leader = is_leader
        self._others = others
        self._lease = lease
        self._registry = CollectorRegistry()
        self._requests = requests or Requests()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        worked, waited = (
            Histogram(f"workqueue_{name}_duration_seconds", text, ["name"], buckets=_BUCKETS, registry=self._registry)
            for name, text in (
                ("work", "How long one reconcile took, its writes included."),
                ("queue", "How long an object waited in the queue before it was reconciled."),
            )
        )
        self._reconciles: Counter[tuple[str, str]] = Counter()  # by controller and outcome
        for loop in loops:
            loop.on_reconciled = self._observer(loop.controller.name, worked)
            loop.queue.on_waited = waited.labels(loop.controller.name).observe

    def parts(self) -> Iterable[Iterable[Metric]]:
        """Collect the current metrics in parts; only the leader has those about objects, because others are stale."""
        yield from parts_of(self._registry)
        for collector in self._others if self._is_leader() else ():
            yield from parts_of(collector)

    def describe(self) -> Iterable[Metric]:
        """Return nothing, because metrics can be collected only while an event loop runs."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Collect the current metrics."""
        yield _gauge(
            "leader_election_master_status",
            "1 if this replica holds the Lease, 0 if not.",
            ("name",),
            [((self._lease,), self._is_leader())],
        )
        yield _counter(
            "foresail_reconciles", "Reconciles by outcome.", ("controller", "outcome"), self._reconciles.items()
        )
        yield _counter(
            "foresail_writes",
            "Writes sent to the API server, by kind and verb.",
            ("kind", "verb"),
            self._executor.writes.items(),
        )
        yield _counter(
            "foresail_refused_writes",
            "Writes that the API server rejected with 400, 403 or 422, including each retry.",
            ("kind", "cause"),
            self._executor.refused.items(),
        )
        yield _counter(
            "foresail_events",
            "Events by outcome: written, repeated (not written again) or dropped.",
            ("outcome",),
            [((outcome,), self._events.outcomes[outcome]) for outcome in ("written", "repeated", "dropped")],
        )
        yield _counter(
            "foresail_failed_changes",
            "Changes of objects that a controller could not process and ignored; the log names the object.",
            ("controller", "kind"),
            [((loop.controller.name, kind), n) for loop in self._loops for kind, n in loop.failed_changes.items()],
        )
        yield from self._queues()
        yield from self._background_reads()
        yield from self._stores()
        yield from _of_requests(self._requests)

    def _observer(self, controller: str, worked: Histogram) -> Callable[[str, float], None]:
        seconds_of = worked.labels(controller)

        def observe(outcome: str, seconds: float) -> None:
            self._reconciles[controller, outcome] += 1
            seconds_of.observe(seconds)

        return observe

    def _queues(self) -> Iterable[Metric]:
        queues = [((loop.controller.name,), loop.queue, loop.is_working) for loop in self._loops]
        yield _gauge(
            "workqueue_depth",
            "Objects that wait to be reconciled; on a follower, those that it has not reconciled yet.",
            ("name",),
            [(name, len(queue)) for name, queue, _ in queues],
        )
        yield _counter(
            "workqueue_adds",
            "Objects that were added to the queue.",
            ("name",),
            [(name, queue.adds) for name, queue, _ in queues],
        )
        yield _counter(
            "workqueue_retries",
            "Objects that were added again after a failure.",
            ("name",),
            [(name, queue.retries) for name, queue, _ in queues],
        )
        yield _gauge(
            "workqueue_unfinished_work_seconds",
            "Seconds that all running reconciles have taken so far, summed up.",
            ("name",),
            [(name, sum(queue.unfinished())) for name, queue, _ in queues],
        )
        yield _gauge(
            "workqueue_longest_running_processor_seconds",
            "Seconds of the longest running reconcile, including the wait until its own writes were observed.",
            ("name",),
            [(name, max(queue.unfinished(), default=0.0)) for name, queue, _ in queues],
        )
        by = ("controller",)
        yield _gauge(
            "foresail_queue_age_seconds",
            "Seconds that the oldest queued object has waited; 0 on a follower, which does not reconcile.",
            by,
            [(name, queue.age() if working else 0.0) for name, queue, working in queues],
        )
        yield _gauge(
            "foresail_failing_objects",
            "Objects whose reconcile has failed five times in a row or more, for whatever cause; 0 on a follower.",
            by,
            [(name, queue.failing if working else 0) for name, queue, working in queues],
        )
        yield _gauge(
            "foresail_queue_timers",
            "Objects that wait for an instant or a back-off.",
            by,
            [(name, queue.delayed) for name, queue, _ in queues],
        )

    def _background_reads(self) -> Iterable[Metric]:
        instant = now()
        pairs = [
            ((loop.controller.name,), loop.background_reads)
            for loop in self._loops
            if loop.background_reads is not None
        ]
        by = ("controller",)
        yield _gauge(
            "foresail_background_reads",
            "Reads that a decision waits for, queued or running.",
            by,
            [(name, len(reads.requested)) for name, reads in pairs],
        )
        yield _gauge(
            "foresail_background_read_age_seconds",
            "Seconds since the oldest of these reads was requested.",
            by,
            [(name, reads.age(instant)) for name, reads in pairs],
        )
        yield _counter(
            "foresail_failed_background_reads",
            "Reads that raised an exception and are retried after a minute; the log has the stack.",
            by,
            [(name, reads.failures) for name, reads in pairs],
        )

    def _stores(self) -> Iterable[Metric]:
        watches = [
            (_watch_labels(loop.controller.name, watch.reflector.spec), watch)
            for loop in self._loops
            for watch in loop.watches
        ]
        streams = [(names, watch) for names, watch in watches if isinstance(watch, Watch)]
        by = ("controller", "kind", "selector")
        yield _gauge(
            "foresail_store_objects",
            "Objects in the store.",
            by,
            [(names, len(watch.reflector.store)) for names, watch in watches],
        )
        yield _gauge(
            "foresail_unreadable_objects",
            "Objects that cannot be decoded and are ignored.",
            by,
            [(names, len(watch.reflector.store.unread)) for names, watch in watches],
        )
        yield _counter(
            "foresail_watch_restarts",
            "How often a watch was opened again; one that several controllers share counts once, for the first.",
            by,
            [(names, watch.reflector.restarts) for names, watch in streams],
        )
        yield _counter(
            "foresail_watch_failures",
            "Lists and watches that failed, by cause; one that several controllers share counts once, for the first.",
            (*by, "cause"),
            [((*names, cause.value), count) for names, watch in streams for cause, count in watch.failures.items()],
        )
        yield _gauge(
            "foresail_store_age_seconds",
            "Seconds since the API server last confirmed the store by an event, a bookmark or a list, or kept an own "
            "write from it. A store whose resourceVersion stands still for 30 minutes is that old.",
            by,
            [(names, watch.age()) for names, watch in watches],
        )
        yield _gauge(
            "foresail_watch_bookmark_age_seconds",
            "Seconds since the last bookmark of a watch; the API server sends about one each minute.",
            by,
            [(names, age) for names, watch in watches if (age := watch.bookmark_age()) is not None],
        )


class _Collected(Collector):
    """Metrics that were collected before."""

    def __init__(self, parts: Iterable[Iterable[Metric]]) -> None:
        self._parts = parts

    def collect(self) -> Iterable[Metric]:
        return chain.from_iterable(self._parts)


def text(parts: Iterable[Iterable[Metric]]) -> bytes:
    """Render metrics in the Prometheus text format; safe in any thread."""
    return generate_latest(_Collected(parts))


Samples = Iterable[tuple[tuple[str, ...], float]]


def _gauge(name: str, meaning: str, labels: Sequence[str], samples: Samples) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _counter(name: str, meaning: str, labels: Sequence[str], samples: Samples) -> Metric:
    family = CounterMetricFamily(name, meaning, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _of_requests(requests: Requests) -> Iterable[Metric]:
    yield _counter(
        "rest_client_requests",
        "Requests to the API server, by the code of the answer.",
        ("code", "method", "host"),
        requests.answers.items(),
    )
    seconds = HistogramMetricFamily(
        "rest_client_request_duration_seconds",
        "Time from a request to the API server until its answer begins; of a watch, until it is open.",
        labels=("verb", "host"),
    )
    for labels, durations in requests.durations.items():
        bounds = (*(str(bound) for bound in BUCKETS), "+Inf")
        seconds.add_metric(labels, list(zip(bounds, accumulate(durations.counts), strict=True)), durations.total)
    yield seconds


def _watch_labels(controller: str, spec: WatchSpec[Any, Any]) -> tuple[str, ...]:
    """Return the labels of a watch: one kind may be watched twice with different selectors."""
    return controller, spec.kind.name, ",".join(spec.selectors.values())
