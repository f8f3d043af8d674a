"""What is measured of requests to the API server, under the names that client-go gives to the same figures."""

import time
from collections import Counter
from collections.abc import Iterable
from types import SimpleNamespace

import aiohttp
from prometheus_client import Histogram
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)  # client-go's
_NO_ANSWER = "<error>"  # client-go's word


class RequestMetrics(Collector):
    """Counts requests and measures how long their answers took to begin; several clients may share one."""

    def __init__(self) -> None:
        self._answers: Counter[tuple[str, str, str]] = Counter()  # by code, method and host
        self._seconds = Histogram(
            "rest_client_request_duration_seconds",
            "Time from a request to the API server until its answer begins; of a watch, until it is open.",
            labelnames=("verb", "host"),
            buckets=_BUCKETS,
            registry=None,
        )

    def tracing(self) -> aiohttp.TraceConfig:
        """Return what a session needs to measure each of its requests."""
        trace = aiohttp.TraceConfig()
        trace.on_request_start.append(self._started)
        trace.on_request_end.append(self._answered)
        trace.on_request_exception.append(self._failed)
        return trace

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the figures are not asked for before there are any."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Read the figures of this moment."""
        yield from self._seconds.collect()
        total = CounterMetricFamily(
            "rest_client_requests",
            "Requests to the API server, by the code of the answer.",
            labels=("code", "method", "host"),
        )
        for labels, count in self._answers.items():
            total.add_metric(labels, count)
        yield total

    async def _started(self, _: object, context: SimpleNamespace, __: object) -> None:
        context.begun = time.perf_counter()

    async def _answered(self, _: object, context: SimpleNamespace, end: aiohttp.TraceRequestEndParams) -> None:
        host = end.url.authority
        self._answers[str(end.response.status), end.method, host] += 1
        self._seconds.labels(end.method, host).observe(time.perf_counter() - context.begun)

    async def _failed(self, _: object, __: object, end: aiohttp.TraceRequestExceptionParams) -> None:
        self._answers[_NO_ANSWER, end.method, end.url.authority] += 1
