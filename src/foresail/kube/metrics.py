"""What can be measured from outside: most of it is read when someone asks, and costs nothing before."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Protocol, runtime_checkable

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from foresail.kube.events import Events
from foresail.kube.execute import Executor
from foresail.kube.loop import Loop
from foresail.kube.reflector import Interest

CONTENT_TYPE = CONTENT_TYPE_LATEST
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


@runtime_checkable
class InParts(Protocol):
    """A collector that has many figures."""

    def parts(self) -> Iterable[Iterable[Metric]]:
        """Give the figures in parts: other tasks run between two of them, and any thread may go through a part."""


def parts_of(collector: Collector) -> Iterable[Iterable[Metric]]:
    """Return the parts of any collector: if it has none, each family is one."""
    return collector.parts() if isinstance(collector, InParts) else ((family,) for family in collector.collect())


class Metrics(Collector):
    """The figures of one process, in a registry of their own."""

    def __init__(
        self,
        loops: Sequence[Loop[Any]],
        executor: Executor,
        events: Events,
        is_leader: Callable[[], bool],
        others: Sequence[Collector] = (),
    ) -> None:
        self._loops, self._executor, self._events, self._is_leader = loops, executor, events, is_leader
        self._others = others
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        looks = Histogram(
            "foresail_reconcile_seconds",
            "How long one look at one object took, its writes included.",
            ["controller", "outcome"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        for loop in loops:
            loop.looked = _observer(looks, loop.controller.name)

    def parts(self) -> Iterable[Iterable[Metric]]:
        """Read the figures of this moment in parts.

        Those about objects are the leader's alone: what another replica last knew grows old.
        """
        yield from parts_of(self._registry)
        for each in self._others if self._is_leader() else ():
            yield from parts_of(each)

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the figures are not asked for before there is an event loop."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Read the figures of this moment."""
        yield _gauge("foresail_leader", "1 if this replica leads, 0 if it follows.", (), [((), self._is_leader())])
        yield _counter(
            "foresail_writes",
            "Writes that were sent, by kind and verb.",
            ("kind", "verb"),
            self._executor.writes.items(),
        )
        yield _counter(
            "foresail_events",
            "Events that were written, that would have repeated another, and that were dropped.",
            ("outcome",),
            [((outcome,), self._events.outcomes[outcome]) for outcome in ("written", "repeated", "dropped")],
        )
        yield from self._queues()
        yield from self._stores()

    def _queues(self) -> Iterable[Metric]:
        queues = [((loop.controller.name,), loop.queue, loop.is_working) for loop in self._loops]
        by = ("controller",)
        yield _gauge(
            "foresail_queue_depth",
            "Objects that wait for a look; on a follower, those that it has not looked at yet.",
            by,
            [(name, len(queue)) for name, queue, _ in queues],
        )
        yield _gauge(
            "foresail_queue_age_seconds",
            "How long the oldest of them has waited; 0 on a follower, which has nobody to look.",
            by,
            [(name, queue.age() if working else 0.0) for name, queue, working in queues],
        )
        yield _gauge(
            "foresail_queue_timers",
            "Objects that wait for an instant.",
            by,
            [(name, queue.waiting_for_an_instant) for name, queue, _ in queues],
        )

    def _stores(self) -> Iterable[Metric]:
        watches = [
            (_watch_labels(loop.controller.name, watch.reflector.interest), watch)
            for loop in self._loops
            for watch in loop.watches
        ]
        by = ("controller", "kind", "selector")
        yield _gauge(
            "foresail_store_objects",
            "Objects that are known.",
            by,
            [(names, len(watch.reflector.store)) for names, watch in watches],
        )
        yield _gauge(
            "foresail_unreadable_objects",
            "Objects of a wrong shape, which are left alone.",
            by,
            [(names, len(watch.reflector.store.unread)) for names, watch in watches],
        )
        yield _counter(
            "foresail_watch_restarts",
            "How often a watch was opened again.",
            by,
            [(names, watch.reflector.restarts) for names, watch in watches],
        )
        yield _counter(
            "foresail_watch_failures",
            "Lists and watches that failed, by cause.",
            (*by, "cause"),
            [((*names, cause.value), count) for names, watch in watches for cause, count in watch.failures.items()],
        )
        yield _gauge(
            "foresail_store_age_seconds",
            "Seconds since the API server last confirmed the store, by an event, a bookmark or a list.",
            by,
            [(names, watch.age()) for names, watch in watches],
        )


class _Collected(Collector):
    """Figures that were read before."""

    def __init__(self, parts: Iterable[Iterable[Metric]]) -> None:
        self._parts = parts

    def collect(self) -> Iterable[Metric]:
        return chain.from_iterable(self._parts)


def text(parts: Iterable[Iterable[Metric]]) -> bytes:
    """Return figures in the format that Prometheus reads; any thread may do it."""
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


def _watch_labels(controller: str, interest: Interest[Any, Any]) -> tuple[str, ...]:
    """Return what distinguishes a watch: one kind may be watched twice, with different selectors."""
    return controller, interest.kind.name, ",".join(interest.selectors.values())


def _observer(looks: Histogram, controller: str) -> Callable[[str, float], None]:
    def observe(outcome: str, seconds: float) -> None:
        looks.labels(controller, outcome).observe(seconds)

    return observe
